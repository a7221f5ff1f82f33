package database

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fencepost/fencepost/core"
)

// dueKind is what overdue.sql calls schedules.
const dueKind = "due"

// Overdue implements core.ScheduleStore.
func (d *DB) Overdue(ctx context.Context, tenant uuid.UUID) ([]core.Overdue, error) {
	return d.overdue(ctx, d.region, pgID(tenant))
}

// OverdueIn is Overdue of every tenant in any region. It is for those who have the
// database itself, never for the API.
func (d *DB) OverdueIn(ctx context.Context, region string) ([]core.Overdue, error) {
	return d.overdue(ctx, region, pgtype.UUID{})
}

func (d *DB) overdue(ctx context.Context, region string, tenant pgtype.UUID) ([]core.Overdue, error) {
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
	rows, err := query[row](ctx, d, "overdue", region, tenant, shards)
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

// Alerts implements core.ScheduleStore.
func (d *DB) Alerts(ctx context.Context, tenant uuid.UUID) ([]core.Alert, error) {
	return d.alerts(ctx, d.region, pgID(tenant))
}

// AlertsIn is Alerts of every tenant in any region. It is for those who have the
// database itself, never for the API.
func (d *DB) AlertsIn(ctx context.Context, region string) ([]core.Alert, error) {
	return d.alerts(ctx, region, pgtype.UUID{})
}

func (d *DB) alerts(ctx context.Context, region string, tenant pgtype.UUID) ([]core.Alert, error) {
	type row struct {
		ScheduleID         uuid.UUID
		Name, Kind, Detail string
		OpenedAt           time.Time
	}
	rows, err := query[row](ctx, d, "alerts", region, tenant)
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) core.Alert {
		return core.Alert{ScheduleID: r.ScheduleID, Name: r.Name, Kind: r.Kind, Detail: r.Detail, OpenedAt: r.OpenedAt.UTC()}
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
