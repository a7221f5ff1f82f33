// Package cli is the command line of Fencepost, and exists so that everything
// the product does can be tried, scripted and looked into from a shell.
//
// A command prints its result to standard output and one line to standard error
// if it fails. It exits with 0 on success, 1 on failure and 2 on a wrong use.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/local/profile"
	"github.com/fencepost/fencepost/local/terminal"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// System is the world around a command. All fields are required.
type System struct {
	Args   []string // without the program's name
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Getenv func(string) string
	Clock  core.Clock
	// Terminal says that a person reads Out: tables get headings and columns.
	Terminal bool
	Version  string
}

// Main runs the process's command and returns its exit code. An interrupt or
// SIGTERM ends the command's context; a second one ends the process.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second after the context has ended, signals have their usual effect
	// again: one signal can arrive twice, from a process and from its group.
	context.AfterFunc(ctx, func() {
		_ = clock.System{}.Sleep(context.Background(), time.Second) // cannot end early
		stop()
	})
	return Run(ctx, System{
		Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		Clock: clock.System{}, Terminal: term.IsTerminal(int(os.Stdout.Fd())), Version: version(),
	})
}

// version is that of the module, or of the commit for a build from a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}

// Run runs one command and returns its exit code.
func Run(ctx context.Context, s System) int {
	root := newRoot(&app{System: s})
	root.SetArgs(append([]string{}, s.Args...))
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	markFailures(root)
	cmd, err := root.ExecuteContextC(ctx)
	var failed *failure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &failed) && !errors.Is(err, errUsage):
		fmt.Fprintf(s.Err, "fencepost: %s\n", oneLine(failed.err.Error()))
		return exitFailure
	default:
		fmt.Fprintf(s.Err, "fencepost: %s (see %s --help)\n", oneLine(err.Error()), cmd.CommandPath())
		return exitUsage
	}
}

// failure is an error of a command that was understood. Any other error that
// cobra returns is about its use.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// markFailures wraps every command below and including cmd.
func markFailures(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		markFailures(child)
	}
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			return &failure{err}
		}
		return nil
	}
}

var errUsage = errors.New("wrong use")

// usageError makes an error that exits with 2.
func usageError(format string, args ...any) error {
	return &wrongUse{fmt.Sprintf(format, args...)}
}

type wrongUse struct{ message string }

func (w *wrongUse) Error() string        { return w.message }
func (w *wrongUse) Is(target error) bool { return target == errUsage }

// oneLine makes an error fit for one line of a terminal.
func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = terminal.Printable(strings.TrimSpace(lines[i]))
	}
	return strings.Join(lines, "; ")
}

// app is what the commands share.
type app struct {
	System
}

// connect returns a client of the API that the environment or the profile
// names.
func (a *app) connect() (*client.Client, error) {
	p, err := profile.Load(a.Getenv)
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{URL: p.URL, Key: p.Key, Clock: a.Clock})
}
