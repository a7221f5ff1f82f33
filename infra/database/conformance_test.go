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

// TestConformance runs the suite on one database for each isolation level. Each
// subtest has a region of its own, which keeps it apart from the others, and a
// clock of its own in a table, which takes the place of the server's in the
// statements: time stands still unless the suite moves it.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, serializable := range map[string]bool{"read_committed": false, "serializable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.New(t)
			beside := connectPool(t, url)
			if serializable {
				url = dbtest.Serializable(url)
			}
			execute(t, beside, "CREATE TABLE test_clock (region TEXT PRIMARY KEY, at TIMESTAMPTZ NOT NULL)")
			var regions atomic.Int64
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				return harness(t, url, beside, fmt.Sprintf("r%d", regions.Add(1)))
			})
		})
	}
}

func harness(t *testing.T, url string, beside *pgxpool.Pool, region string) storetest.Harness {
	t.Helper()
	execute(t, beside, "INSERT INTO test_clock (region, at) VALUES ($1, now())", region)
	db, err := database.Open(t.Context(), database.Config{
		URL: url, Region: region, MaxConns: 4, ClaimPool: true, Logger: quiet(),
		Rewrite: func(_, text string) string {
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
