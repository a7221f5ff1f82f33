package up_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/local/up"
)

// python is a process of the example worker.
type python struct {
	*exec.Cmd
	t    *testing.T
	text bytes.Buffer // after Wait
}

// worker starts the example on a queue with a shell command.
func (i *instance) worker(queue, command string) *python {
	i.t.Helper()
	p := &python{Cmd: exec.Command("python3", "../examples/worker.py", "--lease", "5", queue, "--", "sh", "-c", command), t: i.t}
	p.Env = append(os.Environ(), "FENCEPOST_URL="+i.url, "FENCEPOST_API_KEY="+i.key)
	p.Stdout, p.Stderr, p.WaitDelay = &p.text, &p.text, 5*time.Second
	if err := p.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// end asks the worker to end and returns what it said.
func (p *python) end() string {
	p.t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	kill := time.AfterFunc(30*time.Second, func() { _ = p.Process.Kill() })
	defer kill.Stop()
	if err := p.Wait(); err != nil {
		p.t.Errorf("the worker: %v\n%s", err, &p.text)
	}
	return p.text.String()
}

// queued makes a schedule in the queue and triggers it; it returns the path of the run.
func (i *instance) queued(queue string) string {
	i.t.Helper()
	made := i.call("POST", "/v1/schedules", fmt.Sprintf(`{"name":"%s","spec":"@yearly","timeout":"1h","retry":{"initial_delay":"1s"},"job":{"queue":"%s","payload":{"n":7}}}`, queue, queue), 201)
	run := i.call("POST", fmt.Sprintf("/v1/schedules/%v/trigger", made["id"]), "", 202)
	return fmt.Sprintf("/v1/runs/%v", run["id"])
}

func (i *instance) waitFor(run, state string) map[string]any {
	i.t.Helper()
	var got map[string]any
	i.until(run+" to be "+state, func() bool {
		got = i.call("GET", run, "", 200)
		return got["state"] == state
	})
	return got
}

// TestPythonWorker: the example in another language executes runs, and what it holds
// is executed by another when it fails, is asked to end, is killed or is frozen past
// its lease.
func TestPythonWorker(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") == "" && os.Getenv("FENCEPOST_CI") == "" {
			t.Skip("python3 is missing")
		}
		t.Fatal(err)
	}
	queues := []string{"fails", "ended", "killed", "frozen"}
	i := startWith(t, up.Config{DataDir: dataDir(t), WorkerQueues: queues}, "")
	t.Run("fails", func(t *testing.T) {
		run := i.queued("fails")
		w := i.worker("fails", `cat; exit $((2 - FENCEPOST_ATTEMPT))`)
		got := i.waitFor(run, "succeeded")
		if text := fmt.Sprint(got["result"]); got["attempt"] != 2.0 || !strings.Contains(text, "7") {
			t.Errorf("%+v", got)
		}
		w.end()
	})
	for name, stop := range map[string]func(p *python){
		"ended":  func(p *python) { p.end() },
		"killed": func(p *python) { _ = p.Process.Kill() },
		"frozen": func(p *python) { _ = p.Process.Signal(syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			run, began := i.queued(name), filepath.Join(t.TempDir(), "began")
			first := i.worker(name, "touch "+began+"; sleep 60")
			i.until("the job", func() bool { _, err := os.Stat(began); return err == nil })
			stop(first)
			second := i.worker(name, "echo second")
			got := i.waitFor(run, "succeeded")
			if text := fmt.Sprint(got["result"]); !strings.Contains(text, "second") {
				t.Errorf("%+v", got)
			}
			if attempt := got["attempt"]; attempt != 2.0 {
				t.Errorf("attempt %v", attempt)
			}
			second.end()
			if name == "frozen" {
				_ = first.Process.Signal(syscall.SIGCONT)
				if text := first.end(); !strings.Contains(text, "lost") || strings.Contains(text, "succeeded") {
					t.Errorf("thawed, it said %s", text)
				}
			}
		})
	}
	if p := i.worker("other", "true"); p.Wait() == nil || !strings.Contains(p.text.String(), "unknown_queue") {
		t.Errorf("of a wrong queue: %s", &p.text)
	}
}
