package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

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
	first := startHelper(t, "", dir, nil)
	conn, err := pgx.Connect(t.Context(), first.url(t))
	check(t, err)
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // its server is killed
	backend := int(conn.PgConn().PID())
	check(t, conn.PgConn().Conn().SetDeadline(deadline()))
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "select count(*) from generate_series(1, 1000000000000)")
		ended <- err
	}()
	until(t, "the backend computes", func() bool { return cpuTicks(t, backend) > 5 })
	first.kill(t)
	check(t, syscall.Kill(postmaster(t, dir), syscall.SIGKILL))

	server := start(t, dir)
	if got := scalar(t, server.URL(), "select 'fine'"); got != "fine" {
		t.Errorf("read %q", got)
	}
	if err := <-ended; err == nil {
		t.Error("the busy query came to an end")
	}
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

// deadline bounds a connection whose server is about to vanish.
func deadline() time.Time { return time.Now().Add(testTimeout) }

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
