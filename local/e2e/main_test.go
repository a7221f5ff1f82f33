package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

const (
	region = "local"
	queue  = "test" // of the jobs of all schedules that do not say otherwise
)

// TestMain runs the tests; or one stage alone, when a test has started this
// binary as a process that it can kill.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(runRole(role))
	}
	flag.Parse()
	if err := runManyAtOnce(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := dbtest.Main(m, prepare)
	if code == 0 {
		// Connections to SQS that are kept for the next call are no leak.
		if err := goleak.Find(
			goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// runManyAtOnce lets more tests than processors run at a time, unless -parallel
// says how many: they wait most of the time.
func runManyAtOnce() error {
	if flag.Lookup("test.parallel").Value.String() != strconv.Itoa(runtime.GOMAXPROCS(0)) {
		return nil
	}
	return flag.Set("test.parallel", "12")
}

// prepare fills a new database.
func prepare(ctx context.Context, url string) error {
	if _, err := database.Migrate(ctx, url, region, quiet()); err != nil {
		return err
	}
	db, err := database.Open(ctx, database.Config{URL: url, Region: region})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.EnsurePartitions(ctx)
}
