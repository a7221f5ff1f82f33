package database

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// dueKind is what overdue.sql calls schedules.
const dueKind = "due"

// Overdue implements core.ScheduleStore.
func (d *DB) Overdue(ctx context.Context, tenant uuid.UUID) ([]core.Overdue, error) {
	type row struct {
		Kind  string
		Queue string
		N     int64
		Since time.Time
	}
	shards := make([]int16, core.Shards)
	for i := range shards {
		shards[i] = int16(i)
	}
	rows, err := query[row](ctx, d, "overdue", d.region, pgID(tenant), shards)
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) core.Overdue {
		o := core.Overdue{State: core.RunState(r.Kind), Queue: r.Queue, Count: r.N, Since: r.Since.UTC()}
		if r.Kind == dueKind {
			o.State = ""
		}
		return o
	}), nil
}

// Completed implements core.ScheduleStore.
func (d *DB) Completed(ctx context.Context) ([]core.ScheduleRef, error) {
	type row struct{ TenantID, ScheduleID uuid.UUID }
	rows, err := query[row](ctx, d, "completed", d.region)
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) core.ScheduleRef { return core.ScheduleRef{TenantID: r.TenantID, ID: r.ScheduleID} }), nil
}
