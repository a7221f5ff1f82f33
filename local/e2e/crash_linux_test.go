package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database/dbtest"
	"github.com/fencepost/fencepost/infra/embedded"
)

// Everything is killed in the middle of 500 runs: the database with all its
// processes, the claimer and the executors. When all is started again, every
// slot has its one row and ends, only runs that were alive count an attempt,
// and nothing that had been acknowledged is forgotten.
func TestEverythingKilled(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(string) string{
		"read_committed": func(url string) string { return url },
		"serializable":   dbtest.Serializable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dataFolder(t)
			server := startDatabase(t, dir)
			check(t, prepare(t.Context(), server.URL()))
			w := newWorld(t, at(server.URL()))
			seedOverSeconds(w, 500, 6)
			cl := w.process(claimerRole)
			workers := []*process{w.process(executorRole), w.process(executorRole)}
			w.until("they are in the middle", func() bool {
				return len(keys(w.wrote(workers...), "recorded")) >= 100 && len(interrupted(w)) > 0
			})
			killDatabase(t, dir)
			for _, p := range append(workers, cl) {
				p.kill()
			}
			before := w.wrote(workers...)

			check(t, server.Stop(t.Context())) // gives the folder up
			startDatabase(t, dir)
			w.watch.Reset() // its connections are dead
			broken := interrupted(w)
			claimed := w.count("runs")
			if len(broken) == 0 || claimed == len(keys(before, "end")) {
				t.Fatal("the kill came at a moment that proves nothing")
			}
			checkDurable(w, before)
			w.process(claimerRole)
			second := w.process(executorRole)
			end := w.succeeded(500)
			checkInterrupted(w, end, broken, before, w.wrote(second))
		})
	}
}

// seedOverSeconds makes n schedules of an hour whose first slots are spread
// over the given number of seconds from now.
func seedOverSeconds(w *world, n, seconds int) {
	w.Helper()
	first := w.now().Truncate(time.Second)
	for i := range seconds {
		slot := first.Add(time.Duration(i) * time.Second)
		w.seed((n+i)/seconds, "every 1h", slot, slot.Add(-time.Second), nil)
	}
}

// checkDurable checks that the database, back from its crash, knows what it had
// acknowledged: runs that began were started, runs reported as recorded ended.
func checkDurable(w *world, before map[entry]int) {
	w.Helper()
	state := map[core.RunKey]string{}
	for _, r := range w.runs() {
		state[r.key()] = r.State
	}
	for key := range keys(before, "begin") {
		if s := state[key]; s != string(core.RunRunning) && s != string(core.RunSucceeded) {
			w.Errorf("run %s had begun and is %q after the crash", key.ID(), s)
		}
	}
	for key := range keys(before, "recorded") {
		if s := state[key]; s != string(core.RunSucceeded) {
			w.Errorf("run %s had been recorded and is %q after the crash", key.ID(), s)
		}
	}
}

// dataFolder returns a folder for a database that waits for the disk. It is
// removed, and what runs in it stopped, when the test ends.
func dataFolder(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "fencepost-e2e-")
	check(t, err)
	check(t, os.Chmod(parent, 0o711)) // under root the server runs as another user
	dir := filepath.Join(parent, "data")
	t.Cleanup(func() {
		check(t, embedded.Remove(context.WithoutCancel(t.Context()), databaseConfig(dir)))
		check(t, os.RemoveAll(parent))
	})
	return dir
}

func databaseConfig(dir string) embedded.Config {
	return embedded.Config{DataDir: dir, Clock: clock.System{}}
}

func startDatabase(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(t.Context(), databaseConfig(dir))
	check(t, err)
	t.Cleanup(func() { check(t, server.Stop(context.WithoutCancel(t.Context()))) })
	return server
}

// killDatabase kills every process of the server at once, and again those that
// the server began while it was being listed, until all are gone.
func killDatabase(t *testing.T, dir string) {
	t.Helper()
	left := serverProcesses(t, dir)
	if len(left) < 5 {
		t.Fatalf("found only the processes %v of the server", left)
	}
	deadline := time.After(patience)
	for ; len(left) > 0; left = serverProcesses(t, dir) {
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
		}
		select {
		case <-deadline:
			t.Fatal("the server's processes do not go away")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// serverProcesses lists the processes that work in the server's folder.
func serverProcesses(t *testing.T, dir string) []int {
	t.Helper()
	folder := filepath.Join(dir, "postgresql")
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	check(t, err)
	var out []int
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != folder {
			continue // another's, or gone already
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		check(t, err)
		out = append(out, pid)
	}
	return out
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
