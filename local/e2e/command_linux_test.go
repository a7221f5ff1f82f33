package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/database/dbtest"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
)

// up starts `fencepost up` with a role, as a process of its own whose runs of commands
// go through SQS.
func (w *world) up(roles string, more ...string) *process {
	w.Helper()
	self, err := os.Executable()
	w.must(err)
	p := &process{w: w, name: roles, log: &journal{}}
	args := append([]string{"up", "--roles", roles, "--database-url", p.address(), "--sqs-queue", "exec=" + w.sqsQueue, "--log-level", "info"}, more...)
	p.cmd = exec.CommandContext(w.ctx, self, args...)
	p.cmd.Env = append(os.Environ(), roleVariable+"="+commandRole, "AWS_ENDPOINT_URL="+w.sqsEndpoint, "AWS_REGION="+sqstest.Region,
		"AWS_ACCESS_KEY_ID="+sqstest.KeyID, "AWS_SECRET_ACCESS_KEY="+sqstest.Secret)
	p.begin()
	w.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it may have ended
	return p
}

// commands makes n due schedules that run a shell command.
func (w *world) commands(n int, command string) {
	w.Helper()
	payload, err := json.Marshal(map[string]string{"command": command})
	w.must(err)
	due := w.now().Truncate(time.Second).Add(-time.Second)
	w.seed(n, "every 1h", due, due.Add(-time.Second), func(s *core.Schedule) {
		s.Job = core.Job{Queue: "exec", Payload: payload}
	})
}

// noted returns how often each run wrote down that it began.
func noted(w *world, file string) map[core.RunKey]int {
	w.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	out := map[core.RunKey]int{}
	for _, id := range strings.Fields(string(text)) {
		key, err := core.ParseRunID(id)
		w.must(err)
		out[key]++
	}
	return out
}

// overdue has what waits for the end of a lease wait no longer.
func (w *world) overdue() {
	w.Helper()
	w.sql("UPDATE runs SET wake_at = now() WHERE state IN ('queued', 'running')")
}

// TestUpOverSQS: claimer and executor are two `fencepost up` that meet at SQS. The
// executor is killed in the middle of 200 runs, and another takes its place.
func TestUpOverSQS(t *testing.T) {
	t.Parallel()
	const n = 200
	w := newWorld(t, dbtest.New(t))
	c := w.sqs()
	c.front.Set("ReceiveMessage", shortPolls)
	w.sqsQueue, w.sqsEndpoint = c.config.Queues[queue], c.front.URL
	file := filepath.Join(t.TempDir(), "began")
	w.commands(n, fmt.Sprintf(`echo "$FENCEPOST_RUN_ID" >> %s; sleep 0.5`, file))
	w.up("claimer")
	first := w.up("executor", "--allow-exec")
	w.until("the executor is in the middle", func() bool {
		return w.count("runs WHERE state = 'succeeded'") >= 50 && len(interrupted(w)) > 0
	})
	first.kill()
	first.gone()
	broken := interrupted(w)
	if len(broken) == 0 || w.count("runs WHERE state = 'succeeded'") == n {
		t.Fatal("the kill came at a moment that proves nothing")
	}
	w.overdue()
	w.up("executor", "--allow-exec")
	end := w.succeeded(n)
	want := map[core.RunKey]int{}
	for _, r := range end {
		want[r.key()] = 1
		if broken[r.key()] {
			want[r.key()] = 2
		}
	}
	got := map[core.RunKey]int{}
	for _, r := range end {
		got[r.key()] = r.Attempt
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts: %s", diff)
	}
	for key, n := range noted(w, file) {
		if n > want[key] {
			t.Errorf("run %s began %d times in %d attempts", key.ID(), n, want[key])
		}
	}
	if sent := c.front.Counts()["SendMessageBatch"]; sent < n/10 {
		t.Errorf("SQS was called %d times to send %d messages", sent, n)
	}
}

// shortPolls has polls end after a second: the emulator goes on with one whose caller
// has gone, and hands it messages.
func shortPolls(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	var in map[string]any
	_ = json.NewDecoder(r.Body).Decode(&in) // the SDK wrote it
	in["WaitTimeSeconds"] = 1
	body, _ := json.Marshal(in) // as it came
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	forward.ServeHTTP(w, r)
}

// TestUpTerminated: SIGTERM ends an executor with 50 live runs. It hands them back,
// and the next one executes them, without an attempt that counts.
func TestUpTerminated(t *testing.T) {
	t.Parallel()
	const n = 50
	w := newWorld(t, dbtest.New(t))
	c := w.sqs()
	c.front.Set("ReceiveMessage", shortPolls)
	w.sqsQueue, w.sqsEndpoint = c.config.Queues[queue], c.front.URL
	dir := t.TempDir()
	file, second := filepath.Join(dir, "began"), filepath.Join(dir, "second")
	w.commands(n, fmt.Sprintf(`echo "$FENCEPOST_RUN_ID" >> %s; [ -e %s ] || exec sleep 600`, file, second))
	w.up("claimer")
	first := w.up("executor", "--allow-exec")
	w.until("50 runs are live", func() bool { return len(noted(w, file)) == n && len(interrupted(w)) == n })
	w.must(os.WriteFile(second, nil, 0o600))
	w.must(first.cmd.Process.Signal(syscall.SIGTERM))
	if err := first.ended(); err != nil {
		t.Errorf("the executor ended with %v\n%s", err, first.log)
	}
	if live := interrupted(w); len(live) > 0 {
		t.Errorf("%d runs were left to the end of their leases", len(live))
	}
	w.up("executor", "--allow-exec")
	end := w.succeeded(n)
	if diff := cmp.Diff(map[int]int{2: n}, attempts(end)); diff != "" {
		t.Errorf("runs by attempts: %s", diff)
	}
	if free := w.count("runs WHERE credits = 1"); free != n {
		t.Errorf("%d of %d first attempts do not count", free, n)
	}
}
