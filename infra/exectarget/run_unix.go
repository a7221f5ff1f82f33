//go:build unix

package exectarget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// What shells say when they could not run a command.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

func (t *Target) run(ctx context.Context, j job, as *account, env []string) (json.RawMessage, error) {
	var out tail
	cmd := exec.CommandContext(ctx, j.shell, "-c", j.command)
	cmd.Dir, cmd.Env = j.dir, env
	cmd.Stdout, cmd.Stderr = &out, &out
	if j.stdin != "" {
		cmd.Stdin = strings.NewReader(j.stdin)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if as != nil && !as.own {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid, Groups: as.groups}
	}
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGTERM) }
	// From the end of ctx, or of the shell, this long until the shell is killed
	// and its outputs are no longer waited for.
	cmd.WaitDelay = t.grace
	if err := cmd.Start(); err != nil {
		_, missing := os.Stat(j.dir)
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case missing != nil && j.dir != "":
			err = fmt.Errorf("its folder: %w", missing) // else the shell would be blamed
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

// lookUp finds a user of this machine. Only root can become another one.
func lookUp(name string) (*account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err // it names the user
	}
	a := &account{home: u.HomeDir}
	if a.uid, err = number(u.Uid); err != nil {
		return nil, err
	}
	if a.gid, err = number(u.Gid); err != nil {
		return nil, err
	}
	me := os.Geteuid()
	if a.own = me == int(a.uid); !a.own && me != 0 {
		return nil, errors.New("only root can run commands as another user; start fencepost as root, or as that user")
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("find the user's groups: %w", err)
	}
	for _, text := range groups {
		g, err := number(text)
		if err != nil {
			return nil, err
		}
		a.groups = append(a.groups, g)
	}
	return a, nil
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("read the user's numbers: %w", err)
	}
	return uint32(n), nil
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
