package database

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/fencepost/fencepost/core"
)

// Inspect looks at the database without changing anything.
func (d *DB) Inspect(ctx context.Context) (core.DatabaseInfo, error) {
	// The first statement of a connection is not timed: it may have to connect.
	if err := d.Ping(ctx); err != nil {
		return core.DatabaseInfo{}, err
	}
	var now time.Time
	var server string
	sent := d.clock.Now()
	err := d.pool.QueryRow(ctx, d.sql["inspect"]).Scan(&now, &server)
	trip := d.clock.Now().Sub(sent)
	if err != nil {
		return core.DatabaseInfo{}, translate("inspect database", err)
	}
	info := core.DatabaseInfo{Server: shortVersion(server), Now: now.UTC(), RoundTrip: trip, ClockOffset: now.Sub(sent.Add(trip / 2))}
	err = d.pool.QueryRow(ctx, "SELECT COALESCE(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&info.Schema)
	if err != nil {
		return core.DatabaseInfo{}, translate("read the schema's version", err)
	}
	if info.Known, err = knownSchema(d.cockroach); err != nil {
		return core.DatabaseInfo{}, err
	}
	if info.Regions, err = d.regions(ctx); err != nil {
		return core.DatabaseInfo{}, err
	}
	if d.cockroach {
		return info, nil
	}
	days, _, err := d.partitions(ctx)
	if err != nil {
		return core.DatabaseInfo{}, fmt.Errorf("list partitions: %w", translate("inspect database", err))
	}
	if len(days) > 0 {
		info.PartitionsUntil = days[len(days)-1].to()
	}
	return info, nil
}

// knownSchema returns the number of the last migration that this release has.
func knownSchema(cockroach bool) (int64, error) {
	folder := "migrations/postgres"
	if cockroach {
		folder = "migrations/cockroachdb"
	}
	files, err := migrationFiles.ReadDir(folder) // sorted by name
	if err != nil {
		return 0, fmt.Errorf("list migrations: %w", err)
	}
	last, err := goose.NumericComponent(files[len(files)-1].Name())
	if err != nil {
		return 0, fmt.Errorf("read the number of a migration: %w", err)
	}
	return last, nil
}

func (d *DB) regions(ctx context.Context) ([]core.RegionInfo, error) {
	type row struct {
		Region           string
		Claimers, Shards int64
	}
	rows, err := query[row](ctx, d, "regions")
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) core.RegionInfo {
		return core.RegionInfo{Name: r.Region, Claimers: int(r.Claimers), Shards: int(r.Shards)}
	}), nil
}

// shortVersion cuts what a server says of its compiler and platform.
func shortVersion(text string) string {
	words := strings.Fields(text)
	if len(words) > 3 && strings.HasPrefix(words[0], "Cockroach") {
		return strings.Join(words[:3], " ")
	}
	return strings.Join(words[:min(len(words), 2)], " ")
}
