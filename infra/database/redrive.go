package database

import (
	"context"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Redrive implements core.ScheduleStore.
func (d *DB) Redrive(ctx context.Context, tenant uuid.UUID, r core.Redrive) error {
	type row struct {
		Newest bool
		State  string
		Fence  *int64
	}
	if r.Key.Region != d.region {
		return core.ErrChanged
	}
	rows, err := query[row](ctx, d, "redrive", d.region, pgID(tenant), pgID(r.Key.ScheduleID), r.Key.Slot, r.Fence, nullDuration(r.Within))
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return core.ErrChanged
	case core.RunState(rows[0].State) != core.RunDead:
		return core.ErrRunNotDead
	case !rows[0].Newest:
		return core.ErrSuperseded
	case rows[0].Fence == nil:
		return core.ErrChanged
	}
	return nil
}
