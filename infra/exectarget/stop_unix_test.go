//go:build unix

package exectarget_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/exectarget"
)

// patience is how long a test waits for what should come at once.
const patience = 20 * time.Second

// nap is a long wait in short steps. A shell with a trap that is just forking
// loses the child's SIGTERM; this way such a child ends by itself.
const nap = `n=0; while [ $n -lt 3000 ]; do n=$((n + 1)); sleep 0.01; done`

// witness is a named pipe that every process of a command inherits as file 3:
// lines come through it while one lives, and its end once none does.
type witness struct {
	dir   string
	lines chan string
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{dir: t.TempDir(), lines: make(chan string, 10)}
	path := filepath.Join(w.dir, "witness")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		f, err := os.Open(path) // waits for the first writer
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			w.lines <- s.Text()
		}
	}()
	return w
}

// next returns the next line, or "gone" once every process has ended.
func (w *witness) next(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-w.lines:
		if !ok {
			return "gone"
		}
		return line
	case <-time.After(patience):
		t.Fatal("processes are still alive")
		return ""
	}
}

type answer struct {
	raw json.RawMessage
	err error
}

// start executes a command in the background.
func (w *witness) start(t *testing.T, ctx context.Context, cfg exectarget.Config, command string) <-chan answer {
	t.Helper()
	e := execution(t, map[string]any{"command": "exec 3>witness; " + command, "dir": w.dir})
	done := make(chan answer, 1)
	go func() {
		raw, err := exectarget.New(cfg).Execute(ctx, e)
		done <- answer{raw, err}
	}()
	return done
}

func wait(t *testing.T, done <-chan answer) answer {
	t.Helper()
	select {
	case a := <-done:
		return a
	case <-time.After(patience):
		t.Fatal("Execute did not return")
		return answer{}
	}
}

func TestExecuteStopsTheWholeGroup(t *testing.T) {
	t.Parallel()
	long := exectarget.Config{Grace: time.Hour} // SIGTERM alone has to do
	short := exectarget.Config{Grace: 50 * time.Millisecond}
	tests := []struct {
		name    string
		cfg     exectarget.Config
		command string
	}{
		{"a child", long, `echo up >&3; sleep 300; exit 0`},
		{"grandchildren", long, `sleep 300 & (sleep 300; sleep 300) & echo up >&3; sleep 300`},
		{"a command that ignores SIGTERM", short, `trap '' TERM; echo up >&3; sleep 300; sleep 300`},
		{"a grandchild that ignores SIGTERM and keeps the output", short, `(trap '' TERM; echo up >&3; sleep 300) & sleep 300`},
		{"a grandchild that ignores SIGTERM and has no output", short, `(trap '' TERM; echo up >&3; sleep 300) >/dev/null 2>&1 & sleep 300`},
		{"a command that ends well on SIGTERM", long, `trap 'exit 0' TERM; echo up >&3; ` + nap},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			errLost := errors.New("the lease was lost")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			w := newWitness(t)
			done := w.start(t, ctx, tt.cfg, "echo began; "+tt.command)
			if diff := cmp.Diff("up", w.next(t)); diff != "" {
				t.Fatalf("first line (-want +got):\n%s", diff)
			}
			cancel(errLost)
			a := wait(t, done)
			if !errors.Is(a.err, errLost) || core.IsPermanent(a.err) {
				t.Errorf("error %v, want the cause, to be retried", a.err)
			}
			// Some shells add that a child was terminated.
			if out := decode(t, a.raw).Output; !strings.HasPrefix(out, "began\n") {
				t.Errorf("output %q, want what was written before the stop", out)
			}
			if diff := cmp.Diff("gone", w.next(t)); diff != "" {
				t.Errorf("after the stop (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecuteGivesTimeToCleanUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := newWitness(t)
	done := w.start(t, ctx, exectarget.Config{Grace: time.Hour}, `trap 'echo cleaned up; exit 5' TERM; echo up >&3; `+nap)
	w.next(t)
	cancel()
	a := wait(t, done)
	// Some shells add that a child was terminated.
	if r := decode(t, a.raw); r.ExitCode != 5 || !strings.HasSuffix(r.Output, "cleaned up\n") {
		t.Errorf("result %+v, want what the trap said and its code", r)
	}
	if !errors.Is(a.err, context.Canceled) || !strings.HasSuffix(a.err.Error(), "cleaned up") {
		t.Errorf("error %v, want the cause and the output", a.err)
	}
}

func TestExecuteObeysADeadline(t *testing.T) {
	t.Parallel()
	errTimeout := errors.New("the attempt timed out")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errTimeout)
	defer cancel()
	_, err := exectarget.New(exectarget.Config{}).Execute(ctx, execution(t, map[string]any{"command": "sleep 300"}))
	if !errors.Is(err, errTimeout) {
		t.Errorf("error %v, want the cause", err)
	}
}

func TestExecuteStartsNothingOnceStopped(t *testing.T) {
	t.Parallel()
	errLost := errors.New("the lease was lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLost)
	file := filepath.Join(t.TempDir(), "ran")
	_, err := exectarget.New(exectarget.Config{}).Execute(ctx, execution(t, map[string]any{"command": "touch " + file}))
	if !errors.Is(err, errLost) || !strings.HasPrefix(err.Error(), "start command: ") {
		t.Errorf("error %v, want the cause", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran: %v", err)
	}
}

// A daemon that a command starts keeps its output open: the run ends without it.
func TestExecuteDoesNotWaitForWhatACommandLeavesBehind(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	done := w.start(t, t.Context(), exectarget.Config{Grace: 50 * time.Millisecond}, `mkfifo go; (read line <go; echo alive >&3) & echo up`)
	a := wait(t, done)
	if a.err != nil {
		t.Fatal(a.err)
	}
	if diff := cmp.Diff(result{0, "up\n"}, decode(t, a.raw)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	// Only now may the child go on: it says that it was left alone.
	if err := os.WriteFile(filepath.Join(w.dir, "go"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("alive", w.next(t)); diff != "" {
		t.Errorf("the child (-want +got):\n%s", diff)
	}
}
