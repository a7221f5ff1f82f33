package database

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

type backfillRow struct {
	ID          uuid.UUID
	TenantID    uuid.UUID
	ScheduleID  uuid.UUID
	Shard       int16
	FromSlot    time.Time
	ToSlot      time.Time
	Descending  bool
	Rerun       bool
	Concurrency int32
	Payload     []byte
	State       string
	Total       int32
	Admitted    int32
	Succeeded   int32
	Dead        int32
	Canceled    int32
	Live        []time.Time
	Fence       int64
	CreatedAt   time.Time
	FinishedAt  *time.Time
	States      []string
}

func (d *DB) backfill(r *backfillRow) core.Backfill {
	return core.Backfill{
		Region: d.region, ID: r.ID, TenantID: r.TenantID, ScheduleID: r.ScheduleID, From: r.FromSlot.UTC(), To: r.ToSlot.UTC(),
		Descending: r.Descending, Rerun: r.Rerun, Concurrency: int(r.Concurrency), Payload: json.RawMessage(r.Payload),
		State: core.BackfillState(r.State), Total: int(r.Total), Admitted: int(r.Admitted),
		Succeeded: int(r.Succeeded), Dead: int(r.Dead), Canceled: int(r.Canceled),
		Live: each(r.Live, time.Time.UTC), States: each(r.States, func(s string) core.RunState { return core.RunState(s) }),
		Fence: r.Fence, CreatedAt: r.CreatedAt.UTC(), FinishedAt: utc(r.FinishedAt),
	}
}

// CreateBackfill implements core.BackfillStore.
func (d *DB) CreateBackfill(ctx context.Context, b core.Backfill, runs []core.BackfillRun) error {
	keys, covers := splitBackfill(runs)
	return d.exec(ctx, "create_backfill", d.region, pgID(b.ID), pgID(b.TenantID), pgID(b.ScheduleID), core.ShardOf(b.ScheduleID), b.From, b.To,
		b.Descending, b.Rerun, b.Concurrency, nullText(string(b.Payload)), len(runs), keys, covers)
}

func splitBackfill(runs []core.BackfillRun) (keys []time.Time, covers []*time.Time) {
	return each(runs, func(r core.BackfillRun) time.Time { return r.Key }),
		each(runs, func(r core.BackfillRun) *time.Time { return nullTime(r.CoversFrom) })
}

// Backfill implements core.BackfillStore.
func (d *DB) Backfill(ctx context.Context, tenant, id uuid.UUID) (core.Backfill, error) {
	rows, err := query[backfillRow](ctx, d, "get_backfill", d.region, pgID(tenant), pgID(id))
	switch {
	case err != nil:
		return core.Backfill{}, err
	case len(rows) == 0:
		return core.Backfill{}, core.ErrNotFound
	}
	return d.backfill(&rows[0]), nil
}

// Backfills implements core.BackfillStore.
func (d *DB) Backfills(ctx context.Context, tenant, schedule uuid.UUID) ([]core.Backfill, error) {
	rows, err := query[backfillRow](ctx, d, "list_backfills", d.region, pgID(tenant), pgID(schedule))
	if err != nil {
		return nil, err
	}
	out := make([]core.Backfill, len(rows))
	for i := range rows {
		out[i] = d.backfill(&rows[i])
	}
	return out, nil
}

// CancelBackfill implements core.BackfillStore.
func (d *DB) CancelBackfill(ctx context.Context, tenant, id uuid.UUID) error {
	return d.exec(ctx, "cancel_backfill", d.region, pgID(tenant), pgID(id))
}

// SlotStates implements core.BackfillStore.
func (d *DB) SlotStates(ctx context.Context, tenant, schedule uuid.UUID, slots []time.Time) ([]core.SlotState, error) {
	type row struct {
		Slot         time.Time
		ScheduledFor time.Time
		State        string
		Cause        string
	}
	rows, err := query[row](ctx, d, "slot_states", d.region, pgID(tenant), pgID(schedule), slots)
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) core.SlotState {
		return core.SlotState{Slot: r.Slot.UTC(), Key: r.ScheduledFor.UTC(), State: core.RunState(r.State), Cause: core.Cause(r.Cause)}
	}), nil
}

// DueBackfills implements core.BackfillQueue.
func (d *DB) DueBackfills(ctx context.Context, shards []int16) ([]core.DueBackfill, error) {
	type row struct {
		backfillRow
		NextKeys   []time.Time
		NextCovers []*time.Time
		Queue      string
		Rules      []byte
		Gone       bool
	}
	rows, err := query[row](ctx, d, "due_backfills", d.region, shards)
	if err != nil {
		return nil, err
	}
	out := make([]core.DueBackfill, len(rows))
	for i := range rows {
		r := &rows[i]
		var rules core.Rules
		if err := json.Unmarshal(r.Rules, &rules); err != nil {
			return nil, fmt.Errorf("read the rules of schedule %s: %w", r.ScheduleID, err)
		}
		due := core.DueBackfill{Backfill: d.backfill(&r.backfillRow), Queue: r.Queue, Within: rules.TotalTimeout, Gone: r.Gone}
		for n, key := range r.NextKeys {
			due.Next = append(due.Next, core.BackfillRun{Key: key.UTC(), CoversFrom: utc(r.NextCovers[n])})
		}
		out[i] = due
	}
	return out, nil
}

// AdvanceBackfill implements core.BackfillQueue.
func (d *DB) AdvanceBackfill(ctx context.Context, s core.BackfillStep, dispatchLease time.Duration) ([]core.Claimed, error) {
	keys, covers := splitBackfill(s.Admit)
	rows, err := query[claimedRow](ctx, d, "advance_backfill", d.region, pgID(s.ID), s.Fence, string(s.State), s.Admitted, append([]time.Time{}, s.Live...),
		s.Succeeded, s.Dead, s.Canceled, keys, covers, s.Elsewhere, dispatchLease, nullDuration(s.Within))
	if err != nil {
		return nil, err
	}
	return d.claimed(rows), nil
}
