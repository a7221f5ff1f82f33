package database

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fencepost/fencepost/core"
)

// timerRow is a timer with the part of its schedule that planning needs. All
// fields are nullable: a scan without a timer returns one row of time only.
type timerRow struct {
	DBNow         time.Time
	Shard         *int16
	FireAt        *time.Time
	ScheduleID    *uuid.UUID
	TenantID      *uuid.UUID
	Fence         *int64
	Done          *time.Time
	LastRun       *time.Time
	Parked        *bool
	RunsLeft      *int64
	Name          *string
	Spec          *string
	TimeZone      *string
	Anchor        *time.Time
	Queue         *string
	Misfire       *string
	MisfireGrace  *time.Duration
	Overlap       *string
	Spread        *time.Duration
	Exact         *bool
	DSTGap        *string `db:"dst_gap"`
	DSTOverlap    *string `db:"dst_overlap"`
	CatchUpWithin *time.Duration
	Timeout       *time.Duration
	MaxAttempts   *int32
	Paused        *bool
	Version       *int64
	Rules         []byte
}

func (r *timerRow) scheduled(region string) core.Scheduled {
	return core.Scheduled{
		Now: r.DBNow.UTC(),
		Timer: core.Timer{
			Region: region, Shard: fromNull(r.Shard), ScheduleID: fromNull(r.ScheduleID), TenantID: fromNull(r.TenantID),
			FireAt: utc(r.FireAt), Fence: fromNull(r.Fence), Done: utc(r.Done), LastRun: utc(r.LastRun), Parked: fromNull(r.Parked),
			RunsLeft: r.RunsLeft,
		},
		Schedule: core.Schedule{
			Region: region, TenantID: fromNull(r.TenantID), ID: fromNull(r.ScheduleID), Name: fromNull(r.Name),
			Spec: fromNull(r.Spec), TimeZone: fromNull(r.TimeZone), Anchor: utc(r.Anchor), Job: core.Job{Queue: fromNull(r.Queue)},
			Misfire: core.Misfire(fromNull(r.Misfire)), MisfireGrace: fromNull(r.MisfireGrace), Overlap: core.Overlap(fromNull(r.Overlap)),
			DSTGap: core.DSTGap(fromNull(r.DSTGap)), DSTOverlap: core.DSTOverlap(fromNull(r.DSTOverlap)),
			CatchUpWithin: fromNull(r.CatchUpWithin), Exact: fromNull(r.Exact),
			Window: fromNull(r.Spread), Timeout: fromNull(r.Timeout), MaxAttempts: int(fromNull(r.MaxAttempts)),
			Paused: fromNull(r.Paused), Version: fromNull(r.Version), Rules: readRules(r.Rules),
		},
	}
}

// readRules decodes what writeRules encoded. Rules that cannot be read, which
// only a hand in the database can make, are none.
func readRules(text []byte) core.Rules {
	var r core.Rules
	_ = json.Unmarshal(text, &r)
	return r
}

// rulesText returns rules as the database keeps them.
func rulesText(r core.Rules) string {
	text, err := json.Marshal(r)
	if err != nil {
		return "{}" // impossible: payloads were checked to be JSON
	}
	return string(text)
}

// scheduledRows drops the row that only carries the time.
func (d *DB) scheduledRows(rows []timerRow) ([]core.Scheduled, time.Time) {
	var now time.Time
	out := make([]core.Scheduled, 0, len(rows))
	for i := range rows {
		now = rows[i].DBNow.UTC()
		if rows[i].ScheduleID != nil {
			out = append(out, rows[i].scheduled(d.region))
		}
	}
	return out, now
}

// splitMarks returns marks as the two arrays that the scans take. A zero mark
// becomes the oldest time there is.
func splitMarks(marks []core.ShardMark) ([]int16, []time.Time) {
	low := func(m core.ShardMark) time.Time {
		if m.Low.IsZero() {
			return time.Unix(0, 0).UTC()
		}
		return m.Low
	}
	return each(marks, func(m core.ShardMark) int16 { return m.Shard }), each(marks, low)
}

// Preload implements core.TimerStore. The schedules come without their payload.
func (d *DB) Preload(ctx context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.Scheduled, time.Time, error) {
	shards, lows := splitMarks(marks)
	rows, err := query[timerRow](ctx, d, "preload", d.region, shards, lows, ahead)
	if err != nil {
		return nil, time.Time{}, err
	}
	out, now := d.scheduledRows(rows)
	return out, now, d.closings(ctx, out)
}

// Poll implements core.TimerStore.
func (d *DB) Poll(ctx context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.TimerRef, time.Time, error) {
	type row struct {
		DBNow      time.Time
		Shard      *int16
		FireAt     *time.Time
		ScheduleID *uuid.UUID
		Fence      *int64
	}
	shards, lows := splitMarks(marks)
	rows, err := query[row](ctx, d, "poll", d.region, shards, lows, ahead)
	if err != nil {
		return nil, time.Time{}, err
	}
	var now time.Time
	out := make([]core.TimerRef, 0, len(rows))
	for _, r := range rows {
		now = r.DBNow.UTC()
		if r.ScheduleID != nil {
			out = append(out, core.TimerRef{Shard: fromNull(r.Shard), FireAt: utc(r.FireAt), ScheduleID: *r.ScheduleID, Fence: fromNull(r.Fence)})
		}
	}
	return out, now, nil
}

// ReadTimers implements core.TimerStore.
func (d *DB) ReadTimers(ctx context.Context, schedules []uuid.UUID) ([]core.Scheduled, time.Time, error) {
	rows, err := query[timerRow](ctx, d, "read_timers", d.region, each(schedules, pgID))
	if err != nil {
		return nil, time.Time{}, err
	}
	out, now := d.scheduledRows(rows)
	return out, now, d.closings(ctx, out)
}

// claimedRow is what a claim returns for each run.
type claimedRow struct {
	ScheduleID   uuid.UUID
	ScheduledFor time.Time
	TenantID     uuid.UUID
	Fence        int64
	State        string
	Queue        string
}

func (d *DB) claimed(rows []claimedRow) []core.Claimed {
	return each(rows, func(r claimedRow) core.Claimed {
		return core.Claimed{Key: d.key(r.ScheduleID, r.ScheduledFor), TenantID: r.TenantID, Fence: r.Fence, State: core.RunState(r.State), Queue: r.Queue}
	})
}

func (d *DB) key(schedule uuid.UUID, slot time.Time) core.RunKey {
	return core.RunKey{Region: d.region, ScheduleID: schedule, Slot: slot.UTC()}
}

// Claim implements core.TimerStore. Rows are handed out only after the
// statement has ended without an error: at SERIALIZABLE it can return rows and
// then fail at its commit.
func (d *DB) Claim(ctx context.Context, shard int16, moves []core.Move, dispatchLease time.Duration) ([]core.Claimed, error) {
	p := planRows(moves)
	rows, err := query[claimedRow](ctx, d, "claim", d.region, shard,
		each(moves, func(m core.Move) pgtype.UUID { return pgID(m.ScheduleID) }),
		each(moves, func(m core.Move) time.Time { return m.FireAt }),
		each(moves, func(m core.Move) int64 { return m.Fence }),
		each(moves, func(m core.Move) time.Time { return m.NextAt }),
		each(moves, func(m core.Move) time.Time { return m.Done }),
		each(moves, func(m core.Move) *time.Time { return nullTime(m.LastRun) }),
		each(moves, func(m core.Move) time.Time { return m.ValidUntil }),
		each(moves, func(m core.Move) string { return string(m.OnBusy) }),
		dispatchLease,
		p.schedules, p.slots, p.froms, p.counts, p.skipped, p.causes, p.reasons, p.queues, p.maxAttempts,
		each(moves, func(m core.Move) time.Time { return m.ValidFrom }), p.elsewhere,
		each(moves, func(m core.Move) int64 { return int64(m.Runs()) }),
		each(moves, func(m core.Move) time.Duration { return m.Keep }), p.payloads, p.lates, p.withins)
	if err != nil {
		return nil, fmt.Errorf("shard %d: %w", shard, err)
	}
	return d.claimed(rows), nil
}

// CancelPrevious implements core.TimerStore.
func (d *DB) CancelPrevious(ctx context.Context, shard int16, moves []core.Move) ([]core.Claimed, error) {
	rows, err := query[claimedRow](ctx, d, "cancel_previous", d.region, shard,
		each(moves, func(m core.Move) pgtype.UUID { return pgID(m.ScheduleID) }),
		each(moves, func(m core.Move) time.Time { return m.FireAt }),
		each(moves, func(m core.Move) int64 { return m.Fence }),
		each(moves, func(m core.Move) time.Time { return m.ValidFrom }),
		each(moves, func(m core.Move) time.Time { return m.ValidUntil }))
	if err != nil {
		return nil, fmt.Errorf("shard %d: %w", shard, err)
	}
	return d.claimed(rows), nil
}

// planned holds the planned rows of several moves as arrays.
type planned struct {
	schedules   []pgtype.UUID
	slots       []time.Time
	froms       []*time.Time
	counts      []*int64
	skipped     []bool
	causes      []string
	reasons     []*string
	queues      []string
	maxAttempts []int32
	elsewhere   []bool
	payloads    []*string
	lates       []*time.Time
	withins     []*time.Duration
}

func (p *planned) add(schedule uuid.UUID, r core.PlannedRow) {
	var count *int64
	if r.RangeCount > 0 {
		count = &r.RangeCount
	}
	p.schedules = append(p.schedules, pgID(schedule))
	p.slots = append(p.slots, r.Slot)
	p.froms = append(p.froms, nullTime(r.RangeFrom))
	p.counts = append(p.counts, count)
	p.skipped = append(p.skipped, r.Skipped)
	p.causes = append(p.causes, string(r.Cause))
	p.reasons = append(p.reasons, nullText(r.Reason))
	p.queues = append(p.queues, r.Queue)
	p.maxAttempts = append(p.maxAttempts, int32(r.MaxAttempts))
	p.elsewhere = append(p.elsewhere, r.Elsewhere)
	p.payloads = append(p.payloads, nullText(string(r.Payload)))
	p.lates = append(p.lates, nullTime(r.LateAt))
	p.withins = append(p.withins, nullDuration(r.Within))
}

func planRows(moves []core.Move) *planned {
	p := &planned{
		schedules: []pgtype.UUID{}, slots: []time.Time{}, froms: []*time.Time{}, counts: []*int64{}, skipped: []bool{},
		causes: []string{}, reasons: []*string{}, queues: []string{}, maxAttempts: []int32{}, elsewhere: []bool{},
		payloads: []*string{}, lates: []*time.Time{}, withins: []*time.Duration{},
	}
	for _, m := range moves {
		for _, r := range m.Rows {
			p.add(m.ScheduleID, r)
		}
	}
	return p
}

// ReadClaimed implements core.TimerStore.
func (d *DB) ReadClaimed(ctx context.Context, moves []core.Move) ([]core.Claimed, error) {
	var ids []pgtype.UUID
	var slots []time.Time
	var fences []int64
	for _, m := range moves {
		for _, r := range m.Rows {
			if r.Skipped {
				continue
			}
			ids = append(ids, pgID(m.ScheduleID))
			slots = append(slots, r.Slot)
			fences = append(fences, (m.Fence+1)*runFenceFactor)
		}
	}
	rows, err := query[claimedRow](ctx, d, "read_claimed", d.region, ids, slots, fences)
	if err != nil {
		return nil, err
	}
	return d.claimed(rows), nil
}

// runFenceFactor is how far apart the first fences of two runs of a schedule
// are, so that fences rise over the runs of a schedule too; claim.sql has it.
const runFenceFactor = 65536

// Park implements core.TimerStore.
func (d *DB) Park(ctx context.Context, shard int16, m core.Move, alert string) error {
	return d.exec(ctx, "park", d.region, shard, m.FireAt, pgID(m.ScheduleID), m.Fence, alert)
}
