//go:build unix

package embedded_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/infra/embedded"
)

func TestSecondStart(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := startHelper(t, "", dir, nil)
	url := first.url(t)

	_, err := embedded.Start(t.Context(), config(dir))
	var inUse *embedded.InUseError
	if !errors.Is(err, embedded.ErrInUse) || !errors.As(err, &inUse) {
		t.Fatalf("a second start said %v", err)
	}
	if diff := cmp.Diff(&embedded.InUseError{DataDir: dir, PID: first.cmd.Process.Pid}, inUse); diff != "" {
		t.Error(diff)
	}
	if err := embedded.Remove(t.Context(), config(dir)); !errors.Is(err, embedded.ErrInUse) {
		t.Errorf("Remove said %v", err)
	}
	scalar(t, url, createNote)
	first.stop(t)

	server := start(t, dir)
	if got := scalar(t, server.URL(), "select text from note"); got != "kept" {
		t.Errorf("read %q", got)
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	server := start(t, dir)
	if !strings.HasPrefix(server.Kind(), "postgresql ") {
		t.Errorf("kind is %q", server.Kind())
	}
	t.Run("settings", func(t *testing.T) {
		const settings = `select string_agg(current_setting(name), ' ' order by position) from unnest(array[
			'listen_addresses', 'unix_socket_directories', 'max_connections', 'timezone', 'server_encoding', 'fsync'
			]) with ordinality setting(name, position)`
		if diff := cmp.Diff("127.0.0.1  20 UTC UTF8 off", scalar(t, server.URL(), settings)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the password is private and needed", func(t *testing.T) {
		info, err := os.Stat(filepath.Join(dir, "password"))
		check(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the password file has mode %v", info.Mode())
		}
		const stored = "select split_part(rolpassword, '$', 1) from pg_authid where rolname = 'fencepost'"
		if diff := cmp.Diff("SCRAM-SHA-256", scalar(t, server.URL(), stored)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("Wait returns when the server dies, Stop twice does nothing", func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), testTimeout, errors.New("Wait did not return"))
		defer cancel()
		killServer(t, dir)
		check(t, server.Wait(ctx))
		check(t, server.Stop(t.Context()))
		check(t, server.Stop(t.Context()))
	})
}

func TestRefusedPassword(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	startAndKeepRunning(t, dir)
	path := filepath.Join(dir, "password")
	kept, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(path, []byte("another\n"), 0o600))

	_, err = embedded.Start(t.Context(), config(dir))
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a start with another password said %v", err)
	}
	if left := embedded.ServerProcesses(t.Context(), dir); len(left) > 0 {
		t.Errorf("processes %v were left", left)
	}
	check(t, os.WriteFile(path, kept, 0o600))
	start(t, dir)
}

// startAndKeepRunning leaves a server that nobody holds.
func startAndKeepRunning(t *testing.T, dir string) (url string) {
	t.Helper()
	first := startHelper(t, "", dir, nil)
	url = first.url(t)
	first.kill(t)
	return url
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := start(t, dir)
	check(t, first.Stop(t.Context()))
	address, err := url.Parse(first.URL())
	check(t, err)
	var config net.ListenConfig
	stranger, err := config.Listen(t.Context(), "tcp4", address.Host)
	check(t, err)
	defer stranger.Close() //nolint:errcheck // it only keeps the port

	second := start(t, dir)
	if first.URL() == second.URL() {
		t.Errorf("both are at %s", second.URL())
	}
	if got := scalar(t, second.URL(), "select 'here'"); got != "here" {
		t.Errorf("read %q", got)
	}
}

func TestFailedStartQuotesTheLog(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	check(t, start(t, dir).Stop(t.Context()))
	path := filepath.Join(dir, "postgresql", "postgresql.conf")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	check(t, err)
	_, err = io.WriteString(file, "\nno_such_setting = on\n")
	check(t, errors.Join(err, file.Close()))

	_, err = embedded.Start(t.Context(), config(dir))
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("the start said %v", err)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	url := startAndKeepRunning(t, dir)
	check(t, embedded.Remove(t.Context(), config(dir)))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		t.Errorf("the server is still there: %v", conn.Close(t.Context()))
	}
	check(t, embedded.Remove(t.Context(), config(dir)))
}

func TestFolderOutOfReach(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the database as another user")
	}
	parent, err := os.MkdirTemp("", "fencepost-embedded-") // mode 0700
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(parent)) })
	_, err = embedded.Start(t.Context(), config(filepath.Join(parent, "data")))
	if err == nil {
		t.Fatal("it started")
	}
	for _, want := range []string{"may not enter " + parent + ":", `"chmod o+x ` + parent + `"`, "--data"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

func TestUnprivilegedUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("every other test shows it already")
	}
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	parent := filepath.Dir(folder(t))
	check(t, os.Chown(parent, int(nobody.Uid), int(nobody.Gid)))
	binary := filepath.Join(parent, "helper") // the original is out of nobody's reach
	content, err := os.ReadFile(self(t))
	check(t, err)
	check(t, os.WriteFile(binary, content, 0o755))

	dir := filepath.Join(parent, "data")
	for range 2 {
		first := startHelper(t, binary, dir, nobody)
		scalar(t, first.url(t), "create table if not exists note as select 'kept' as text")
		first.stop(t)
	}
	info, err := os.Stat(filepath.Join(dir, "postgresql"))
	check(t, err)
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != nobody.Uid {
		t.Errorf("the data belong to %+v", info.Sys())
	}
}
