package database_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost/fencepost/core/storetest"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// TestConformance runs the suite on one database for each isolation level, where
// each subtest has a region of its own, which keeps it apart from the others.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, serializable := range map[string]bool{"read_committed": false, "serializable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := clocked(t, serializable)
			storetest.Run(t, open)
		})
	}
}

// TestPolicies plays the policy table at one isolation level: its rules rest on
// the statements that the suite above holds to both.
func TestPolicies(t *testing.T) {
	t.Parallel()
	storetest.RunPolicies(t, clocked(t, false))
}

func TestUpkeep(t *testing.T) {
	t.Parallel()
	for name, serializable := range map[string]bool{"read_committed": false, "serializable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.RunUpkeep(t, func(t *testing.T) storetest.Harness { return clocked(t, serializable)(t) })
		})
	}
}

// clocked makes a database for as long as t and opens regions of it. The
// statements read the time from a table, a row for each region, instead of the
// server's clock: it stands still unless the suite moves it.
func clocked(t *testing.T, serializable bool) storetest.Open {
	t.Helper()
	url := dbtest.New(t)
	beside := connectPool(t, url)
	execute(t, beside, "CREATE TABLE test_clock (region TEXT PRIMARY KEY, at TIMESTAMPTZ NOT NULL)")
	if serializable {
		url = dbtest.Serializable(url)
	}
	var regions atomic.Int64
	return func(t *testing.T) storetest.Harness {
		return harness(t, url, beside, fmt.Sprintf("r%d", regions.Add(1)))
	}
}

func harness(t *testing.T, url string, beside *pgxpool.Pool, region string) storetest.Harness {
	t.Helper()
	execute(t, beside, "INSERT INTO test_clock (region, at) VALUES ($1, now())", region)
	db, err := database.Open(t.Context(), database.Config{
		URL: url, Region: region, MaxConns: 4, ClaimPool: true, Logger: quiet(),
		Rewrite: func(_, text string) string {
			text = strings.ReplaceAll(text, "random()", "0.5::FLOAT8")
			return strings.ReplaceAll(text, "now()", "(SELECT tc.at FROM test_clock AS tc WHERE tc.region = '"+region+"')")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return storetest.Harness{
		Store: db, Region: region,
		Advance: func(d time.Duration) {
			t.Helper()
			execute(t, beside, "UPDATE test_clock SET at = at + $2::INTERVAL WHERE region = $1", region, d)
		},
		Alert: func(schedule uuid.UUID) string {
			t.Helper()
			var text string
			err := beside.QueryRow(t.Context(), "SELECT detail FROM alerts WHERE region = $1 AND schedule_id = $2", region, schedule).Scan(&text)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				t.Fatal(err)
			}
			return text
		},
	}
}

func connectPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func execute(t *testing.T, pool *pgxpool.Pool, text string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), text, args...); err != nil {
		t.Fatal(err)
	}
}
