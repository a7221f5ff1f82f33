//go:build unix

package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/embedded"
)

// helperDir, when set, makes the test binary a process that runs the database
// of that folder: something that a test can kill.
const helperDir = "EMBEDDED_TEST_HELPER_DIR"

// helperSync, when set, makes the helper wait for the disk.
const helperSync = "EMBEDDED_TEST_HELPER_SYNC"

const (
	testTimeout = 30 * time.Second
	pollPause   = 2 * time.Millisecond

	createNote = "create table note as select 'kept' as text"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		if err := help(context.Background(), dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// help runs the database until standard input ends.
func help(ctx context.Context, dir string) error {
	c := config(dir)
	c.NoSync = os.Getenv(helperSync) == ""
	server, err := embedded.Start(ctx, c)
	if err != nil {
		return err
	}
	fmt.Println(server.URL())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return server.Stop(ctx)
}

func config(dir string) embedded.Config {
	return embedded.Config{DataDir: dir, Clock: clock.System{}, NoSync: true, MaxConnections: 20}
}

// helper is a process of its own that runs a database.
type helper struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	output *bufio.Scanner
}

// startHelper starts binary, or this test binary when it is empty.
func startHelper(t *testing.T, binary, dir string, as *syscall.Credential, env ...string) *helper {
	t.Helper()
	if binary == "" {
		binary = self(t)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Dir, cmd.Env = "/", append(append(os.Environ(), helperDir+"="+dir), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Setpgid: true}
	stdin, err := cmd.StdinPipe()
	check(t, err)
	stdout, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	return &helper{cmd: cmd, stdin: stdin, output: bufio.NewScanner(stdout)}
}

// url waits for the helper's database.
func (h *helper) url(t *testing.T) string {
	t.Helper()
	if !h.output.Scan() || !strings.HasPrefix(h.output.Text(), "postgres://") {
		t.Fatalf("the helper said %q", h.output.Text())
	}
	return h.output.Text()
}

// kill ends the helper, and with it everything that the terminal's signals
// would reach, with SIGKILL.
func (h *helper) kill(t *testing.T) {
	t.Helper()
	check(t, syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL))
	var killed *exec.ExitError
	if err := h.cmd.Wait(); !errors.As(err, &killed) {
		t.Fatalf("the helper was not killed: %v", err)
	}
}

// stop ends the helper in order.
func (h *helper) stop(t *testing.T) {
	t.Helper()
	check(t, h.stdin.Close())
	check(t, h.cmd.Wait())
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	check(t, err)
	return path
}

// folder returns a data folder that the database's user can reach, and removes
// it, with whatever still runs in it, after the test.
func folder(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "fencepost-embedded-")
	check(t, err)
	check(t, os.Chmod(parent, 0o711))
	dir := filepath.Join(parent, "data")
	t.Cleanup(func() {
		check(t, embedded.Remove(context.WithoutCancel(t.Context()), config(dir)))
		check(t, os.RemoveAll(parent))
	})
	return dir
}

func start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(t.Context(), config(dir))
	check(t, err)
	t.Cleanup(func() { check(t, server.Stop(context.WithoutCancel(t.Context()))) })
	return server
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scalar runs a statement and returns the text in its first row, if any.
func scalar(t *testing.T, url, statement string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // the test is about the statement
	var got string
	if err := conn.QueryRow(t.Context(), statement).Scan(&got); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return got
}

// until polls for a condition within a bound.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for !holds() {
		if err := (clock.System{}).Sleep(ctx, pollPause); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func postmaster(t *testing.T, dir string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "postgresql", "postmaster.pid"))
	check(t, err)
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	check(t, err)
	return pid
}

// killServer ends the postmaster and all its children with SIGKILL.
func killServer(t *testing.T, dir string) {
	t.Helper()
	for _, pid := range append([]int{postmaster(t, dir)}, embedded.ServerProcesses(t.Context(), dir)...) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}
