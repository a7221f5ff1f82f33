package database

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// expireRounds bounds how much of what is left behind goes in one call: 1,000 rows
// each.
const expireRounds = 100

// dropLeftovers removes what outlives the runs that it belongs to: failed attempts,
// and deleted schedules.
func (d *DB) dropLeftovers(ctx context.Context, cutoff time.Time) error {
	if err := d.dropAttempts(ctx, cutoff); err != nil {
		return err
	}
	type row struct{ ID uuid.UUID }
	for range expireRounds {
		rows, err := query[row](ctx, d, "drop_tombstones", d.region, cutoff)
		if err != nil || len(rows) < 1000 {
			return err
		}
	}
	return nil
}

// dropAttempts removes failed attempts of runs that are gone. It looks at each of those
// from before the cutoff once.
func (d *DB) dropAttempts(ctx context.Context, cutoff time.Time) error {
	type row struct {
		ScheduledFor time.Time
		ScheduleID   uuid.UUID
		Attempt      int32
		Seen         int64
		Dropped      int64
	}
	after := row{ScheduledFor: time.Unix(0, 0).UTC()}
	for range expireRounds {
		rows, err := query[row](ctx, d, "drop_attempts", d.region, cutoff, after.ScheduledFor, pgID(after.ScheduleID), after.Attempt)
		if err != nil || len(rows) == 0 || rows[0].Seen < 1000 {
			return err
		}
		after = rows[0]
	}
	return nil
}
