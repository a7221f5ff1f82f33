package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/core"
)

// exitPoll is how often a process that is not our child is looked at.
const exitPoll = 50 * time.Millisecond

// process is a server that runs as a process of this machine: our child, or the
// child of a process that died before it.
type process struct {
	pid     int
	program string // base name of its executable, and
	dir     string // its working folder: both tell it from a stranger with its pid
	exited  chan struct{}
	clock   core.Clock
	logger  *slog.Logger
	steps   []stopStep
}

// stopStep is one signal, and how long it may take to have its effect.
type stopStep struct {
	signal  syscall.Signal
	timeout time.Duration // zero means as long as the caller's context lasts
}

// spawn starts a long-lived server. It has no deadline: it ends by a signal.
func (p *process) spawn(path string, args []string, o owner, output *os.File) error {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.dir, serverEnv(), detached(o)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	p.pid, p.exited = cmd.Process.Pid, make(chan struct{})
	go func() {
		defer close(p.exited)
		if err := cmd.Wait(); err != nil {
			p.logger.Debug("database process ended", "program", p.program, "err", err)
		}
	}()
	return nil
}

func (p *process) alive(ctx context.Context) bool {
	if p.exited == nil {
		return isRunning(ctx, p.pid, p.program, p.dir)
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) stop(ctx context.Context) error {
	for i, step := range p.steps {
		if !p.alive(ctx) {
			return nil
		}
		if i > 0 {
			p.logger.WarnContext(ctx, "stopping the database by force", "signal", step.signal.String())
		}
		err := p.stopBy(ctx, step)
		if err == nil {
			return nil
		}
		if i == len(p.steps)-1 {
			return err
		}
	}
	return nil
}

func (p *process) stopBy(ctx context.Context, step stopStep) error {
	if err := p.signal(step.signal); err != nil {
		return err
	}
	if step.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(context.WithoutCancel(ctx), step.timeout, errStopTimeout)
		defer cancel()
	}
	for p.alive(ctx) {
		if err := p.clock.Sleep(ctx, exitPoll); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) signal(signal syscall.Signal) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", p.pid, err)
	}
	if err := handle.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", p.pid, err)
	}
	return nil
}

// run executes a short program within a limit and returns what it printed. On
// failure the error ends with the last lines of that.
func run(ctx context.Context, timeout time.Duration, cmd tool) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s took longer than %v", cmd.path, timeout))
	defer cancel()
	var output bytes.Buffer
	c := exec.CommandContext(ctx, cmd.path, cmd.args...)
	c.Dir, c.Env, c.SysProcAttr = cmd.dir, append(serverEnv(), cmd.env...), detached(cmd.owner)
	c.Stdout, c.Stderr = &output, &output
	c.Cancel = func() error { return killGroup(c.Process.Pid) }
	c.WaitDelay = time.Second
	err := c.Run()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("run %s: %w%s", cmd.path, err, quoteLog(output.String()))
	}
	return strings.TrimSpace(output.String()), nil
}

// tool is a short-lived program: what to run, where and as whom.
type tool struct {
	path  string
	args  []string
	dir   string
	env   []string
	owner owner
}

// serverEnv is the environment of the database's programs. It is small on
// purpose: PGDATA or PGOPTIONS of the user must not reach them, nor secrets.
func serverEnv() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
