package database

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fencepost/fencepost/core"
)

// LimitedQueues implements core.LimitStore.
func (d *DB) LimitedQueues(ctx context.Context) ([]string, error) {
	type row struct{ Name string }
	rows, err := query[row](ctx, d, "limited_queues", d.region)
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) string { return r.Name }), nil
}

// Permits implements core.LimitStore.
func (d *DB) Permits(ctx context.Context, ds []core.Delivery) (core.PermitView, error) {
	type row struct {
		ScheduleID   *uuid.UUID
		ScheduledFor *time.Time
		Queue        string
		TenantID     uuid.UUID
		N            int32
		Version      int64
	}
	ids, slots, fences := keyArrays(ds, func(v core.Delivery) core.Held { return core.Held{Key: v.Key, Fence: v.Fence} })
	rows, err := query[row](ctx, d, "read_permits", d.region, ids, slots, fences)
	if err != nil {
		return core.PermitView{}, err
	}
	out := core.PermitView{Under: map[core.RunKey][]core.Permit{}}
	for _, r := range rows {
		p := core.Permit{Queue: r.Queue, TenantID: r.TenantID, N: int(r.N), Version: r.Version}
		if r.ScheduleID == nil {
			out.Free = append(out.Free, p)
			continue
		}
		key := d.key(*r.ScheduleID, *r.ScheduledFor)
		out.Under[key] = append(out.Under[key], p)
	}
	return out, nil
}

// permitArrays returns the permits of deliveries as the arrays that start takes, in
// the order of their keys, in which all starts lock them.
func permitArrays(ds []core.Delivery) []any {
	type row struct {
		core.Permit
		of *core.Delivery
	}
	rows := []row{}
	for i := range ds {
		for _, p := range ds[i].Permits {
			rows = append(rows, row{p, &ds[i]})
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), bytes.Compare(a.TenantID[:], b.TenantID[:]), cmp.Compare(a.N, b.N))
	})
	return []any{
		each(rows, func(r row) pgtype.UUID { return pgID(r.of.Key.ScheduleID) }),
		each(rows, func(r row) time.Time { return r.of.Key.Slot }),
		each(rows, func(r row) int64 { return r.of.Fence }),
		each(rows, func(r row) string { return r.Queue }),
		each(rows, func(r row) pgtype.UUID { return pgID(r.TenantID) }),
		each(rows, func(r row) int32 { return int32(r.N) }),
		each(rows, func(r row) int64 { return r.Version }),
	}
}

// Hold implements core.LimitStore.
func (d *DB) Hold(ctx context.Context, msgs []core.Message) error {
	ids, slots, fences := keyArrays(msgs, func(m core.Message) core.Held { return core.Held{Key: m.Key, Fence: m.Fence} })
	return d.exec(ctx, "hold", d.region, ids, slots, fences)
}

// Admit implements core.LimitStore. The tenants that it looks at first are chosen at
// random, so that none of very many is always behind the others.
func (d *DB) Admit(ctx context.Context, o core.AdmitOptions) ([]core.Claimed, error) {
	rows, err := query[claimedRow](ctx, d, "admit", d.region, o.Queues, int64(o.Most), o.DispatchLease, pgID(uuid.New()))
	if err != nil {
		return nil, err
	}
	return d.claimed(rows), nil
}

// SetLimit implements core.LimitAdmin.
func (d *DB) SetLimit(ctx context.Context, l core.Limit) error {
	return d.exec(ctx, "set_limit", d.region, l.Queue, pgID(l.TenantID), int32(l.Concurrency))
}

// DropLimit implements core.LimitAdmin.
func (d *DB) DropLimit(ctx context.Context, queue string, tenant uuid.UUID) error {
	type row struct{ Name string }
	rows, err := query[row](ctx, d, "drop_limit", d.region, queue, pgID(tenant))
	if err == nil && len(rows) == 0 {
		return core.ErrNotFound
	}
	return err
}

// Limits implements core.LimitAdmin.
func (d *DB) Limits(ctx context.Context, tenant uuid.UUID) ([]core.Limit, error) {
	type row struct {
		Name        string
		TenantID    uuid.UUID
		Concurrency int32
		Running     int64
		Waiting     int64
	}
	rows, err := query[row](ctx, d, "list_limits", d.region, pgID(tenant))
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) core.Limit {
		return core.Limit{Queue: r.Name, TenantID: r.TenantID, Concurrency: int(r.Concurrency), Running: int(r.Running), Waiting: int(r.Waiting)}
	}), nil
}
