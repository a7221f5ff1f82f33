package database

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fencepost/fencepost/core"
)

// Sweep implements core.SweepStore.
func (d *DB) Sweep(ctx context.Context, o core.SweepOptions) ([]core.Swept, time.Time, error) {
	type row struct {
		DBNow        time.Time
		ScheduleID   *uuid.UUID
		ScheduledFor *time.Time
		TenantID     *uuid.UUID
		Shard        *int16
		Fence        *int64
		State        *string
		Was          *string
		Queue        *string
		Gate         *int16
	}
	shards, lows := splitMarks(o.Marks)
	// Never NULL: a comparison with it would be neither true nor false.
	queues, lostIn := append([]string{}, o.Queues...), append([]int16{}, o.LostIn...)
	rows, err := query[row](ctx, d, "sweep", d.region, shards, lows, queues, lostIn, o.DispatchLease, o.MaxDispatchLease,
		o.Backoff.Initial, o.Backoff.Max, nullDuration(o.TellDead))
	if err != nil {
		return nil, time.Time{}, err
	}
	var now time.Time
	out := make([]core.Swept, 0, len(rows))
	for _, r := range rows {
		now = r.DBNow.UTC()
		if r.ScheduleID == nil {
			continue
		}
		out = append(out, core.Swept{
			Key: d.key(*r.ScheduleID, *r.ScheduledFor), TenantID: fromNull(r.TenantID), Shard: fromNull(r.Shard), Fence: fromNull(r.Fence),
			State: core.RunState(fromNull(r.State)), From: core.RunState(fromNull(r.Was)), Queue: fromNull(r.Queue),
			Admitted: fromNull(r.Gate) == 2, Waiting: fromNull(r.Gate) == 1,
		})
	}
	return out, now, nil
}

// Settle implements core.SweepStore.
func (d *DB) Settle(ctx context.Context, hs []core.Held) error {
	ids, slots, fences := keyArrays(hs, func(h core.Held) core.Held { return h })
	return d.exec(ctx, "settle", d.region, ids, slots, fences)
}

// keyArrays returns runs as the arrays that the guarded updates take.
func keyArrays[T any](in []T, held func(T) core.Held) ([]pgtype.UUID, []time.Time, []int64) {
	return each(in, func(v T) pgtype.UUID { return pgID(held(v).Key.ScheduleID) }),
		each(in, func(v T) time.Time { return held(v).Key.Slot }),
		each(in, func(v T) int64 { return held(v).Fence })
}

// Start implements core.RunStore. Of several deliveries of one run only the
// first is passed on.
func (d *DB) Start(ctx context.Context, ds []core.Delivery, lease time.Duration) ([]core.Started, error) {
	type row struct {
		ScheduleID   uuid.UUID
		ScheduledFor time.Time
		TenantID     uuid.UUID
		State        string
		Cause        string
		Attempt      int32
		MaxAttempts  int32
		Fence        int64
		Holder       uuid.UUID
		Queue        string
		CoversFrom   *time.Time
		CoversTo     *time.Time
		Name         *string
		Payload      []byte
		Timeout      *time.Duration
		Awaited      bool
		Retry        []byte
		TotalLeft    *time.Duration
		StartedAt    *time.Time
		Spec         *string
		Spread       *time.Duration
		Exact        *bool
	}
	ids, slots, fences := keyArrays(ds, func(v core.Delivery) core.Held { return core.Held{Key: v.Key, Fence: v.Fence} })
	tokens := each(ds, func(v core.Delivery) pgtype.UUID { return pgID(v.Token) })
	rows, err := query[row](ctx, d, "start", append([]any{d.region, lease, ids, slots, fences, tokens}, permitArrays(ds)...)...)
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) core.Started {
		return core.Started{
			Execution: core.Execution{
				Key: d.key(r.ScheduleID, r.ScheduledFor), TenantID: r.TenantID, Name: fromNull(r.Name), Cause: core.Cause(r.Cause), Attempt: int(r.Attempt),
				Fence: r.Fence, Payload: r.Payload, CoversFrom: utc(r.CoversFrom), CoversTo: utc(r.CoversTo),
			},
			State: core.RunState(r.State), Token: r.Holder, Queue: r.Queue, Timeout: fromNull(r.Timeout), MaxAttempts: int(r.MaxAttempts),
			Awaited: r.Awaited, Left: r.TotalLeft, Retry: readRetry(r.Retry), StartedAt: utc(r.StartedAt),
			Due: core.DueOf(core.Cause(r.Cause), int(r.Attempt), r.ScheduledFor.UTC(), &core.Schedule{
				ID: r.ScheduleID, Spec: fromNull(r.Spec), Window: fromNull(r.Spread), Exact: fromNull(r.Exact),
			}),
		}
	}), nil
}

// readRetry decodes what rulesText encoded of it; what cannot be read is the
// default.
func readRetry(text []byte) core.Retry {
	var r core.Retry
	_ = json.Unmarshal(text, &r)
	return r
}

// Heartbeat implements core.RunStore.
func (d *DB) Heartbeat(ctx context.Context, hs []core.Held, lease time.Duration) ([]core.Beat, error) {
	type row struct {
		ScheduleID      uuid.UUID
		ScheduledFor    time.Time
		Fence           int64
		CancelRequested bool
	}
	ids, slots, fences := keyArrays(hs, func(h core.Held) core.Held { return h })
	rows, err := query[row](ctx, d, "heartbeat", d.region, lease, ids, slots, fences)
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) core.Beat {
		return core.Beat{Held: core.Held{Key: d.key(r.ScheduleID, r.ScheduledFor), Fence: r.Fence}, CancelRequested: r.CancelRequested}
	}), nil
}

// finishedRow is what finish and its repetition return.
type finishedRow struct {
	ScheduleID   uuid.UUID
	ScheduledFor time.Time
	Fence        int64
	State        string
}

// Finish implements core.RunStore: one statement, and a second one that looks
// at the rows which the first did not change.
func (d *DB) Finish(ctx context.Context, os []core.Outcome) ([]core.Finished, error) {
	ids, slots, fences := keyArrays(os, func(o core.Outcome) core.Held { return o.Held })
	rows, err := query[finishedRow](ctx, d, "finish", d.region, ids, slots, fences,
		each(os, func(o core.Outcome) string { return string(o.State) }),
		each(os, func(o core.Outcome) *string { return nullText(o.Reason) }),
		each(os, func(o core.Outcome) int64 { return o.Delay.Milliseconds() }),
		each(os, func(o core.Outcome) *string { return nullText(string(o.Result)) }),
		each(os, func(o core.Outcome) *string { return nullText(o.Error) }),
		each(os, func(o core.Outcome) int32 {
			if o.HandedBack {
				return 1
			}
			return 0
		}))
	if err != nil {
		return nil, err
	}
	if len(rows) < len(os) {
		before, err := query[finishedRow](ctx, d, "read_finished", d.region, ids, slots, fences)
		if err != nil {
			return nil, err
		}
		rows = append(rows, before...)
	}
	seen := make(map[core.Held]bool, len(rows))
	out := make([]core.Finished, 0, len(rows))
	for _, r := range rows {
		h := core.Held{Key: d.key(r.ScheduleID, r.ScheduledFor), Fence: r.Fence}
		if !seen[h] {
			seen[h] = true
			out = append(out, core.Finished{Held: h, State: core.RunState(r.State)})
		}
	}
	return out, nil
}

// Nudge implements core.RunStore.
func (d *DB) Nudge(ctx context.Context, schedules []uuid.UUID) error {
	return d.exec(ctx, "nudge", d.region, each(schedules, pgID))
}

// runRow is a run as lists and look-ups return it.
type runRow struct {
	ScheduleID      uuid.UUID
	ScheduledFor    time.Time
	TenantID        uuid.UUID
	State           string
	Cause           string
	Reason          *string
	RangeFrom       *time.Time
	RangeCount      *int64
	Queue           string
	Version         *int64
	Fence           int64
	Attempt         int32
	MaxAttempts     int32
	WakeAt          *time.Time
	CancelRequested bool
	CoversFrom      *time.Time
	CoversTo        *time.Time
	CreatedAt       time.Time
	StartedAt       *time.Time
	FinishedAt      *time.Time
	Result          []byte
	Error           *string
	Payload         []byte
}

func (d *DB) run(r runRow) core.Run {
	return core.Run{
		Key: d.key(r.ScheduleID, r.ScheduledFor), TenantID: r.TenantID, State: core.RunState(r.State), Cause: core.Cause(r.Cause),
		Reason: core.Reason(fromNull(r.Reason)), RangeFrom: utc(r.RangeFrom), RangeCount: fromNull(r.RangeCount), Queue: r.Queue,
		Version: fromNull(r.Version), Fence: r.Fence, Attempt: int(r.Attempt), MaxAttempts: int(r.MaxAttempts), WakeAt: utc(r.WakeAt),
		CancelRequested: r.CancelRequested, CoversFrom: utc(r.CoversFrom), CoversTo: utc(r.CoversTo), CreatedAt: r.CreatedAt.UTC(),
		StartedAt: utc(r.StartedAt), FinishedAt: utc(r.FinishedAt), Result: json.RawMessage(r.Result), Error: fromNull(r.Error),
		Payload: json.RawMessage(r.Payload),
	}
}

// Run implements core.ScheduleStore.
func (d *DB) Run(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, []core.Attempt, error) {
	if key.Region != d.region {
		return core.Run{}, nil, core.ErrNotFound
	}
	args := []any{d.region, pgID(tenant), pgID(key.ScheduleID), key.Slot}
	rows, err := query[runRow](ctx, d, "get_run", args...)
	if err != nil {
		return core.Run{}, nil, err
	}
	if len(rows) == 0 {
		return core.Run{}, nil, core.ErrNotFound
	}
	type row struct {
		Attempt    int32
		Fence      int64
		StartedAt  *time.Time
		FinishedAt time.Time
		Error      string
	}
	failed, err := query[row](ctx, d, "list_attempts", args...)
	if err != nil {
		return core.Run{}, nil, err
	}
	return d.run(rows[0]), each(failed, func(r row) core.Attempt {
		return core.Attempt{Number: int(r.Attempt), Fence: r.Fence, StartedAt: utc(r.StartedAt), FinishedAt: r.FinishedAt.UTC(), Error: r.Error}
	}), nil
}
