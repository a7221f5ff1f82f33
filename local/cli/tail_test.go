package cli_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/local/cli"
)

// TestTail: runs that come and change while it looks are printed, one line each,
// and Ctrl-C is no error.
func TestTail(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "a", "--spec", "@yearly", "--queue", "mails", "--overlap", "allow")
	before := s.ok("schedules", "trigger", "a")
	for _, args := range [][]string{{"a"}, nil} {
		ctx, stop := context.WithCancel(t.Context())
		read, out := io.Pipe()
		done := make(chan int, 1)
		looked := make(chan struct{})
		go func() {
			done <- cli.Run(ctx, cli.System{
				Args: append([]string{"runs", "tail", "--every", "200ms"}, args...), Out: out, Err: io.Discard,
				Getenv: func(name string) string { return s.env[name] }, Clock: &counting{System: clock.System{}, looked: looked},
			})
			_ = out.Close()
		}()
		<-looked // the runs so far are known
		run := strings.TrimSpace(strings.TrimPrefix(s.ok("schedules", "trigger", "a"), "triggered a: "))
		lines := bufio.NewReader(read)
		line, err := lines.ReadString('\n')
		if err != nil || !strings.HasSuffix(line, "  a  queued  "+run+"\n") || strings.Contains(before, run) {
			t.Errorf("tail %q prints %q, %v", args, line, err)
		}
		s.ok("runs", "cancel", run)
		if line, err = lines.ReadString('\n'); err != nil || !strings.Contains(line, "  a  canceled  "+run) {
			t.Errorf("tail %q prints %q, %v", args, line, err)
		}
		stop()
		if code := <-done; code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// counting says when the first wait begins.
type counting struct {
	clock.System
	looked chan struct{}
	closed bool
}

// Sleep implements core.Clock.
func (c *counting) Sleep(ctx context.Context, d time.Duration) error {
	if !c.closed {
		c.closed = true
		close(c.looked)
	}
	return c.System.Sleep(ctx, d)
}
