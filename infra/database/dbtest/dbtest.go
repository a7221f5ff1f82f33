// Package dbtest gives each test a database of its own on a real server,
// because the product's rules live in SQL and a pretended database would not
// keep them.
//
// The server is the one that FENCEPOST_TEST_DATABASE_URL or DATABASE_URL names,
// whose user must be allowed to create databases; without them the program that
// COCKROACH_BINARY names is started as a single node, and without that an
// ephemeral PostgreSQL of the test process. Tests fail when neither can be had:
// a skipped database test would look like a passed one.
package dbtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// Prepare fills the database at the URL with what every test starts from,
// migrations above all. It must close its connections before it returns.
type Prepare func(ctx context.Context, url string) error

// harness is what Main sets up for the functions of this package. A TestMain
// has no other way to hand anything to tests; it is written once, before them.
var harness struct {
	server func() (*server, error)
}

// Main runs the tests of a package and returns the exit code for TestMain. The
// server is started, and prepare run on its template, by the first call of New.
// A nil prepare leaves the databases empty.
func Main(m *testing.M, prepare Prepare) int {
	var started *server
	harness.server = sync.OnceValues(func() (*server, error) {
		var err error
		started, err = startServer(context.Background(), prepare)
		return started, err
	})
	code := m.Run()
	if started == nil {
		return code
	}
	if err := started.close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
		return max(code, 1)
	}
	return code
}

// New returns the URL of a fresh, prepared database that is dropped, whoever is
// still connected, when the test ends. It is fast enough to be called by every
// test and safe to call from parallel ones.
func New(tb testing.TB) string {
	tb.Helper()
	if harness.server == nil {
		tb.Fatal("dbtest: TestMain has to call dbtest.Main")
	}
	server, err := harness.server()
	if err != nil {
		tb.Fatalf("dbtest: %v", err)
	}
	name, err := server.create(tb.Context())
	if err != nil {
		tb.Fatalf("dbtest: %v", err)
	}
	tb.Cleanup(func() {
		// The test's own context has ended by now.
		if err := server.drop(context.WithoutCancel(tb.Context()), name); err != nil {
			tb.Errorf("dbtest: %v", err)
		}
	})
	return server.url(name)
}

// Serializable returns the URL with SERIALIZABLE as the default isolation of
// its sessions, to show that a suite does not depend on READ COMMITTED.
func Serializable(databaseURL string) string {
	separator := "?"
	if strings.Contains(databaseURL, "?") {
		separator = "&"
	}
	return databaseURL + separator + "default_transaction_isolation=" + url.QueryEscape("serializable")
}
