//go:build unix

package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/embedded"
)

func TestNothingInstalled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := config(dir)
	c.BinDirs = []string{}
	_, err := embedded.Start(t.Context(), c)
	if !errors.Is(err, embedded.ErrNoDatabase) {
		t.Fatalf("the start said %v", err)
	}
	want := "start the database in " + dir + `: no database found: install PostgreSQL 15 or later ("apt install postgresql" or "brew install postgresql"), put cockroach on PATH, or start Docker`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestDataOfAnotherServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ file, content, want string }{
		{"postgresql/PG_VERSION", "9.6\n", "holds data of PostgreSQL 9.6"},
		{"cockroach/MARKER", "", "holds data of CockroachDB"},
		{"docker-image", "postgres:17\n", "was made with Docker"},
	} {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()
			c := config(t.TempDir())
			path := filepath.Join(c.DataDir, test.file)
			check(t, os.MkdirAll(filepath.Dir(path), 0o700))
			check(t, os.WriteFile(path, []byte(test.content), 0o600))
			c.BinDirs = []string{"/usr/lib/postgresql/15/bin"}
			_, err := embedded.Start(t.Context(), c)
			if !errors.Is(err, embedded.ErrNoDatabase) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the start said %v", err)
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []embedded.Config{
		{Clock: clock.System{}},
		{DataDir: t.TempDir()},
	} {
		if _, err := embedded.Start(t.Context(), c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestParsePostgresVersion(t *testing.T) {
	t.Parallel()
	type parsed struct {
		Version string
		Major   int
		OK      bool
	}
	for output, want := range map[string]parsed{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": {"15.18", 15, true},
		"postgres (PostgreSQL) 17.6":                           {"17.6", 17, true},
		"postgres (PostgreSQL) 19beta1":                        {"19beta1", 19, true},
		"postgres (PostgreSQL) 9.6.24":                         {"9.6.24", 9, true},
		"something else 15.18":                                 {},
	} {
		version, major, ok := embedded.ParsePostgresVersion(output)
		if diff := cmp.Diff(want, parsed{version, major, ok}); diff != "" {
			t.Errorf("%s: %s", output, diff)
		}
	}
}

func TestDefaultDataDir(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		uid        int
		base, home string
		want       string
	}{
		{0, "/x", "/root", "/var/lib/fencepost"},
		{1000, "/x", "/home/u", "/x/fencepost"},
		{1000, "relative", "/home/u", "/home/u/.local/share/fencepost"},
		{1000, "", "/home/u", "/home/u/.local/share/fencepost"},
		{1000, "", "", ""},
	} {
		got := embedded.DefaultDataDirFor(test.uid, test.base, test.home)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%+v: %s", test, diff)
		}
	}
}

func TestPostgresArgs(t *testing.T) {
	t.Parallel()
	c := embedded.Config{DataDir: "/d", MaxConnections: 100}
	want := []string{"-D", "/d/postgresql"}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1", "port=5001", "unix_socket_directories=", "max_connections=100",
		"password_encryption=scram-sha-256", "shared_buffers=128MB", "max_wal_size=1GB",
		"timezone=UTC", "log_timezone=UTC", "lc_messages=C", "logging_collector=on", "log_directory=log",
		"log_filename=postgresql-%Y%m%d-%H%M%S.log", "log_rotation_age=1d", "log_rotation_size=10MB",
	} {
		want = append(want, "-c", setting)
	}
	if diff := cmp.Diff(want, embedded.PostgresArgs(c, 5001)); diff != "" {
		t.Error(diff)
	}
}

func TestCockroachArgs(t *testing.T) {
	t.Parallel()
	want := []string{
		"start-single-node", "--insecure", "--store=/d/cockroach", "--listen-addr=127.0.0.1:5001",
		"--http-addr=127.0.0.1:0", "--locality=region=local", "--pid-file=/d/cockroach.pid", "--log-dir=/d/log",
	}
	if diff := cmp.Diff(want, embedded.CockroachArgs(embedded.Config{DataDir: "/d"}, 5001)); diff != "" {
		t.Error(diff)
	}
}

func TestDockerArgs(t *testing.T) {
	t.Parallel()
	c := embedded.Config{DataDir: "/d", MaxConnections: 100}
	args := embedded.DockerArgs(c, "secret", 5001)
	line := strings.Join(args, " ")
	for _, want := range []string{
		"run --detach --name fencepost-", "--publish 127.0.0.1:5001:5432", "--env POSTGRES_PASSWORD ",
		"target=/var/lib/postgresql/data", "-c max_connections=100",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %q", want, line)
		}
	}
	if strings.Contains(line, "secret") {
		t.Errorf("the password is in %q", line)
	}
	if diff := cmp.Diff(args, embedded.DockerArgs(c, "secret", 5001)); diff != "" {
		t.Errorf("the container's name is not stable: %s", diff)
	}
	if other := embedded.DockerArgs(c, "other", 5001); cmp.Equal(args, other) {
		t.Error("a new password meets the old volume")
	}
}

func TestQuoteLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	check(t, os.WriteFile(path, []byte(strings.Repeat("an old line\n", 5000)+"the last line\n"), 0o600))
	quoted := embedded.QuoteLog(embedded.ReadTail(path))
	if lines := strings.Count(quoted, "\n"); lines != 12 || !strings.HasSuffix(quoted, "\nthe last line") {
		t.Errorf("%d lines: %q", lines, quoted)
	}
	if got := embedded.QuoteLog(embedded.ReadTail(path + ".missing")); got != "" {
		t.Errorf("a missing log gave %q", got)
	}
}
