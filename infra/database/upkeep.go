package database

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/core"
)

// Partitions of runs on PostgreSQL, one for each UTC day of scheduled_for. A
// default partition takes what is older, so that no slot, however late, makes a
// claim fail. CockroachDB has none of this: it expires rows by itself.

const (
	partitionPrefix = "runs_p"
	partitionLayout = "20060102"
	daysAhead       = 7
	oneDay          = 24 * time.Hour // of UTC, which has no other days
)

// partition is one day of runs.
type partition struct {
	name string
	from time.Time
}

func partitionOf(t time.Time) partition {
	from := t.UTC().Truncate(oneDay)
	return partition{name: partitionPrefix + from.Format(partitionLayout), from: from}
}

func (p partition) to() time.Time { return p.from.Add(oneDay) }

// quoted returns the name and the bounds as SQL text; they come from a date.
func (p partition) quoted() (name, from, to string) {
	const layout = "'2006-01-02 15:04:05+00'"
	return pgx.Identifier{p.name}.Sanitize(), p.from.Format(layout), p.to().Format(layout)
}

// EnsurePartitions implements core.UpkeepStore. Two processes may do it at once.
func (d *DB) EnsurePartitions(ctx context.Context) error {
	if d.cockroach {
		return nil
	}
	have, now, err := d.partitions(ctx)
	if err != nil {
		return fmt.Errorf("list partitions: %w", err)
	}
	known := make(map[string]bool, len(have))
	for _, p := range have {
		known[p.name] = true
	}
	for n := -1; n <= daysAhead; n++ {
		p := partitionOf(now.Add(time.Duration(n) * oneDay))
		if known[p.name] {
			continue
		}
		if err := d.makePartition(ctx, p); err != nil {
			return translate("make partition "+p.name, err)
		}
	}
	return nil
}

// makePartition makes one day. Rows of that day which the default partition took
// are moved in the same transaction, since a day that overlaps them is refused.
func (d *DB) makePartition(ctx context.Context, p partition) error {
	name, from, to := p.quoted()
	err := d.inTx(ctx, func(tx pgx.Tx) error {
		for _, statement := range []string{
			"LOCK TABLE ONLY runs_default IN ACCESS EXCLUSIVE MODE",
			"CREATE TABLE " + name + " (LIKE runs INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)" +
				" WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01)",
			"WITH moved AS (DELETE FROM runs_default WHERE scheduled_for >= " + from + " AND scheduled_for < " + to + " RETURNING *)" +
				" INSERT INTO " + name + " SELECT * FROM moved",
			"ALTER TABLE runs ATTACH PARTITION " + name + " FOR VALUES FROM (" + from + ") TO (" + to + ")",
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == "42P07" { // duplicate_table: another process was first
		return nil
	}
	return err
}

// partitions returns the day partitions there are, oldest first, and the
// database's time.
func (d *DB) partitions(ctx context.Context) ([]partition, time.Time, error) {
	rows, err := d.pool.Query(ctx, `SELECT c.relname::TEXT FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'runs'::regclass ORDER BY c.relname`)
	if err != nil {
		return nil, time.Time{}, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, time.Time{}, err
	}
	var all []partition
	for _, name := range names {
		from, err := time.Parse(partitionLayout, strings.TrimPrefix(name, partitionPrefix))
		if err == nil {
			all = append(all, partition{name: name, from: from})
		}
	}
	var now time.Time
	err = d.pool.QueryRow(ctx, "SELECT now()").Scan(&now)
	return all, now, err
}

// DropExpired implements core.UpkeepStore. A day in which a run is still alive
// stays for another day.
func (d *DB) DropExpired(ctx context.Context, keep time.Duration) (int, error) {
	now, err := d.Now(ctx)
	if err != nil {
		return 0, err
	}
	if err := d.exec(ctx, "drop_backfills", d.region, now.Add(-keep)); err != nil {
		return 0, err
	}
	cutoff := now.Add(-keep)
	if d.cockroach {
		return 0, d.dropLeftovers(ctx, cutoff)
	}
	have, _, err := d.partitions(ctx)
	if err != nil {
		return 0, translate("list partitions", err)
	}
	dropped := 0
	for _, p := range have {
		if p.to().After(cutoff) {
			break
		}
		ok, err := d.dropPartition(ctx, p)
		if err != nil {
			return dropped, translate("drop partition "+p.name, err)
		}
		if ok {
			dropped++
		}
	}
	if err := d.trimDefault(ctx, cutoff); err != nil {
		return dropped, err
	}
	return dropped, d.dropLeftovers(ctx, cutoff)
}

// dropPartition drops a day unless something in it is alive. The lock on the
// whole table is held for two short statements; lock_timeout bounds the wait,
// and the next round tries again.
func (d *DB) dropPartition(ctx context.Context, p partition) (bool, error) {
	name, _, _ := p.quoted()
	dropped := false
	err := d.inTx(ctx, func(tx pgx.Tx) error {
		dropped = false
		if _, err := tx.Exec(ctx, "LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
		var alive bool
		if err := tx.QueryRow(ctx, d.sql["day_alive"], p.from, p.to()).Scan(&alive); err != nil {
			return err
		}
		if alive {
			return nil
		}
		dropped = true
		if _, err := tx.Exec(ctx, d.sql["hand_over_intervals"], p.from, p.to(), core.Forever); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DROP TABLE "+name)
		return err
	})
	return dropped && err == nil, err
}

// trimDefault deletes finished runs from the default partition that are older
// than cutoff, at most 100,000 a call.
func (d *DB) trimDefault(ctx context.Context, cutoff time.Time) error {
	if err := d.exec(ctx, "hand_over_intervals", time.Unix(0, 0).UTC(), cutoff, cutoff); err != nil {
		return err
	}
	for range 100 {
		tag, err := d.pool.Exec(ctx, `DELETE FROM runs_default WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM runs_default WHERE scheduled_for < $1::TIMESTAMPTZ AND finished_at < $1::TIMESTAMPTZ LIMIT 1000))`, cutoff)
		if err != nil {
			return translate("trim default partition", err)
		}
		if tag.RowsAffected() < 1000 {
			return nil
		}
	}
	return nil
}
