//go:build unix

package exectarget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// What shells say when they could not run a command.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

func (t *Target) run(ctx context.Context, j job, env []string) (json.RawMessage, error) {
	var out tail
	cmd := exec.CommandContext(ctx, j.shell, "-c", j.command)
	cmd.Dir, cmd.Env = j.dir, env
	cmd.Stdout, cmd.Stderr = &out, &out
	if j.stdin != "" {
		cmd.Stdin = strings.NewReader(j.stdin)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGTERM) }
	// From the end of ctx, or of the shell, this long until the shell is killed
	// and its outputs are no longer waited for.
	cmd.WaitDelay = t.grace
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("start command: %w", err)
	}
	err := cmd.Wait()
	if ctx.Err() != nil {
		// The shell is gone; what it started may ignore SIGTERM. The number
		// stays the group's as long as one of them lives. No group is no error.
		_ = signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	}
	output := out.text()
	raw, encodeErr := encode(result{exitCode(cmd.ProcessState), output})
	if encodeErr != nil {
		return nil, encodeErr
	}
	if err = failure(ctx, err); err != nil {
		return raw, withOutput(err, output)
	}
	return raw, nil
}

// signalGroup sends sig to the process group that pid leads.
func signalGroup(pid int, sig syscall.Signal) error {
	err := syscall.Kill(-pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// failure turns the error of Wait into the attempt's.
func failure(ctx context.Context, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrWaitDelay):
		return nil // the shell succeeded, a process that it left has the output open
	case ctx.Err() != nil:
		return fmt.Errorf("command stopped: %w", context.Cause(ctx))
	case !errors.As(err, &exit):
		return fmt.Errorf("wait for command: %w", err)
	}
	switch exit.ExitCode() {
	case exitNotFound:
		return fmt.Errorf("%w, command not found", err)
	case exitNotExecutable:
		return fmt.Errorf("%w, command not executable", err)
	}
	return err
}

// exitCode returns the code as a shell would tell it, -1 if it is not known.
func exitCode(state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return state.ExitCode()
}
