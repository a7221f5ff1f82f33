package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/embedded"
)

func TestDataSurviveKillingEverything(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := startHelper(t, "", dir, nil, helperSync+"=1")
	url := first.url(t)
	scalar(t, url, createNote)
	first.kill(t)
	killServer(t, dir)
	until(t, "the server is gone", func() bool { return len(embedded.ServerProcesses(t.Context(), dir)) == 0 })
	recyclePID(t, dir)

	server := start(t, dir)
	if diff := cmp.Diff(url, server.URL()); diff != "" {
		t.Errorf("the address did not stay the same: %s", diff)
	}
	if got := scalar(t, server.URL(), "select text from note"); got != "kept" {
		t.Errorf("read %q after the crash", got)
	}
}

// recyclePID gives the pid in the stale pid file to a stranger of the same
// user, as happens after a reboot; PostgreSQL alone would refuse to start.
func recyclePID(t *testing.T, dir string) {
	t.Helper()
	stranger := exec.CommandContext(t.Context(), "sleep", "60")
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: dataOwner(t, dir)}
	check(t, stranger.Start())
	t.Cleanup(func() {
		if err := stranger.Wait(); err == nil {
			t.Error("the stranger was not alive")
		}
	})
	path := filepath.Join(dir, "postgresql", "postmaster.pid")
	content, err := os.ReadFile(path)
	check(t, err)
	_, rest, _ := strings.Cut(string(content), "\n")
	check(t, os.WriteFile(path, fmt.Appendf(nil, "%d\n%s", stranger.Process.Pid, rest), 0o600))
}

func dataOwner(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Join(dir, "postgresql"))
	check(t, err)
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no owner")
	}
	return &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
}

func TestTakeOver(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := startHelper(t, "", dir, nil)
	url := first.url(t)
	scalar(t, url, createNote)
	pid := postmaster(t, dir)
	first.kill(t)

	server := start(t, dir)
	if diff := cmp.Diff([]any{url, pid}, []any{server.URL(), postmaster(t, dir)}); diff != "" {
		t.Errorf("another server was started: %s", diff)
	}
	if got := scalar(t, server.URL(), "select text from note"); got != "kept" {
		t.Errorf("read %q", got)
	}
	check(t, server.Stop(t.Context()))
	if left := embedded.ServerProcesses(t.Context(), dir); len(left) > 0 {
		t.Errorf("processes %v were left by Stop", left)
	}
}

// A backend that computes does not notice that its postmaster is dead. While it
// lives, PostgreSQL refuses to start in its folder.
func TestBusyChildOfAKilledServer(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	busyServer(t, dir)
	check(t, syscall.Kill(postmaster(t, dir), syscall.SIGKILL))
	server := start(t, dir)
	if got := scalar(t, server.URL(), "select 'fine'"); got != "fine" {
		t.Errorf("read %q", got)
	}
}

// The server still looks alive when the start begins and is dead, with a busy
// child, when the start has found out that it does not answer.
func TestServerThatDiesDuringTakeOver(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	busyServer(t, dir)
	check(t, os.WriteFile(filepath.Join(dir, "port"), []byte(freePort(t)+"\n"), 0o600)) // nobody answers there
	c := config(dir)
	c.Clock = &firstSleep{do: func() { check(t, syscall.Kill(postmaster(t, dir), syscall.SIGKILL)) }}
	server, err := embedded.Start(t.Context(), c)
	check(t, err)
	if got := scalar(t, server.URL(), "select 'fine'"); got != "fine" {
		t.Errorf("read %q", got)
	}
	check(t, server.Stop(t.Context()))
}

func freePort(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	check(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	check(t, errors.Join(err, listener.Close()))
	return port
}

// firstSleep is a clock that does something before its first sleep.
type firstSleep struct {
	clock.System
	once sync.Once
	do   func()
}

func (c *firstSleep) Sleep(ctx context.Context, d time.Duration) error {
	c.once.Do(c.do)
	return c.System.Sleep(ctx, d)
}

// busyServer leaves a server whose starter is dead and that has a backend deep
// in a computation, which must not come to an end.
func busyServer(t *testing.T, dir string) {
	t.Helper()
	first := startHelper(t, "", dir, nil)
	conn, err := pgx.Connect(t.Context(), first.url(t))
	check(t, err)
	check(t, conn.PgConn().Conn().SetDeadline(time.Now().Add(testTimeout)))
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), "select count(*) from generate_series(1, 1000000000000)")
		ended <- errors.Join(err, conn.Close(context.WithoutCancel(t.Context())))
	}()
	t.Cleanup(func() {
		if err := <-ended; err == nil {
			t.Error("the busy query came to an end")
		}
	})
	backend := int(conn.PgConn().PID())
	until(t, "the backend computes", func() bool { return cpuTicks(t, backend) > 5 })
	first.kill(t)
}

func TestInitdbKilledHalfWay(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{true, false} {
		name := "its starter alone"
		if whole {
			name = "its starter and all its processes"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			first := startHelper(t, "", dir, nil)
			staging := filepath.Join(dir, "postgresql.new-*")
			half := filepath.Join(staging, "data", "PG_VERSION")
			until(t, "initdb runs", func() bool { return len(glob(t, half)) > 0 })
			first.kill(t)
			if whole {
				killInitdb(t, dir)
			}
			if len(glob(t, half)) == 0 || len(glob(t, filepath.Join(dir, "postgresql"))) > 0 {
				t.Fatal("the kill came too late to prove anything")
			}

			server := start(t, dir)
			if got := scalar(t, server.URL(), "select 'whole'"); got != "whole" {
				t.Errorf("read %q", got)
			}
			if left := glob(t, staging); whole && len(left) > 0 {
				t.Errorf("%v were left", left)
			}
		})
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	check(t, err)
	return paths
}

// cpuTicks is the processor time that a process has used, in hundredths of a
// second.
func cpuTicks(t *testing.T, pid int) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	check(t, err)
	// The name in parentheses may hold blanks; the eleventh field after it is utime.
	_, rest, _ := strings.Cut(string(content), ") ")
	ticks, err := strconv.Atoi(strings.Fields(rest)[11])
	check(t, err)
	return ticks
}

// killInitdb ends initdb and its children, which all name the data folder.
func killInitdb(t *testing.T, dir string) {
	t.Helper()
	killed := 0
	for _, path := range glob(t, "/proc/[0-9]*/cmdline") {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, []byte(dir)) || !bytes.Contains(line, []byte("postgresql.new-")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		check(t, err)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		killed++
	}
	if killed == 0 {
		t.Fatal("initdb was not found")
	}
}
