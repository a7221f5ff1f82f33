package dbtest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// again runs tests of this binary in a process of its own against a server.
func again(t *testing.T, url, tests string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.count=1", "-test.run="+tests)
	cmd.Env = append(os.Environ(), "FENCEPOST_TEST_DATABASE_URL="+url)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// The parts look at all databases of the server and must not meet each other.
func TestSharedServer(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	t.Run("two processes at the same time", func(t *testing.T) { testTwoProcesses(t, url) })
	t.Run("databases of killed runs are dropped", func(t *testing.T) { testLeftovers(t, url) })
}

func testTwoProcesses(t *testing.T, url string) {
	admin := connect(t, url)
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() {
			output, err := again(t, url, "^(TestEachDatabaseIsItsOwn|TestSerializable)$")
			if err != nil {
				err = fmt.Errorf("%w: %s", err, output)
			}
			ended <- err
		}()
	}
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	// Of all templates only that of this very process is left.
	got := texts(t, admin, "select count(*)::text from pg_database where datname like 'fencepost\\_test\\_%\\_template'")
	if diff := cmp.Diff([]string{"1"}, got); diff != "" {
		t.Error(diff)
	}
}

// Only old ones are dropped, only without a living run, only with a name of this
// package's making.
func testLeftovers(t *testing.T, url string) {
	admin := connect(t, url)
	now := texts(t, admin, "select extract(epoch from now())::int8::text")[0]
	const dead, alive, foreign = "fencepost_test_1000000000_deaddead_1", "fencepost_test_1000000001_alivexxx_1", "fencepost_test_1000000002_notes"
	young := "fencepost_test_" + now + "_deadagen_1"
	connect(t, url+"&application_name="+strings.TrimSuffix(alive, "_1"))
	for _, name := range []string{dead, alive, foreign, young} {
		if _, err := admin.Exec(t.Context(), "create database "+name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := connectAgain(t, url).Exec(context.WithoutCancel(t.Context()), "drop database if exists "+name); err != nil {
				t.Error(err)
			}
		})
	}

	if output, err := again(t, url, "^TestSerializable$"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	got := texts(t, admin, fmt.Sprintf("select datname::text from pg_database where datname in ('%s', '%s', '%s', '%s') order by datname",
		dead, alive, foreign, young))
	if diff := cmp.Diff([]string{alive, foreign, young}, got); diff != "" {
		t.Error(diff)
	}
}

// connectAgain serves a cleanup, in which the test's own context has ended.
func connectAgain(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(ctx); err != nil {
			t.Log(err)
		}
	})
	return conn
}

func TestWithoutAServerTestsFail(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://nobody@127.0.0.1:1/none?sslmode=disable", "host=127.0.0.1"} {
		output, err := again(t, url, "^TestSerializable$")
		if err == nil || !strings.Contains(output, "--- FAIL: TestSerializable") || strings.Contains(output, "SKIP") {
			t.Errorf("with %s: %v: %s", url, err, output)
		}
	}
}
