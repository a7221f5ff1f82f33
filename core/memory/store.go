package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// runFenceFactor is how far apart the first fences of two runs of a schedule
// are, so that fences rise over the runs of a schedule too.
const runFenceFactor = 65536

// Store implements all stores of core for one region. Only New makes one; it is
// safe for concurrent use.
type Store struct {
	// Jitter returns the random part of a backoff, in [0, 1); set it before
	// the first call. New makes it 0.5, so that delays are three quarters.
	Jitter func() float64

	region string
	clock  core.Clock

	mu        sync.Mutex
	schedules map[uuid.UUID]*schedule
	timers    map[uuid.UUID]*timer // by schedule
	runs      map[core.RunKey]*run
	backfills map[uuid.UUID]*backfill
	leases    map[int16]shardLease
	claimers  map[string]time.Time // when each registration ends
	keys      map[[32]byte]core.APIKey
	alerts    map[uuid.UUID]core.Alert
	reserved  map[reservedKey]*core.Reservation
	days      map[time.Time]bool // that have a partition of runs
	calendars map[calendarKey]core.Calendar
	limits    map[limitKey]int // concurrency
	permits   map[limitKey][]*permit
}

type schedule struct {
	core.Schedule
	deleted bool
}

type timer struct {
	core.Timer
	// openFrom, unless zero, is where the next covered interval begins.
	openFrom time.Time
	// purgeAt is when the completed schedule goes; zero if it stays.
	purgeAt time.Time
}

type run struct {
	core.Run
	shard    int16
	holder   uuid.UUID
	losses   int // how often heartbeats stopped
	credits  int // attempts handed back, which do not count
	queuedAt time.Time
	failed   []core.Attempt
	lateAt   time.Time // zero: never
	gate     int       // whether it waits for a permit
	// expiresAt is when all attempts together took too long; zero: never.
	expiresAt time.Time
}

// expired reports whether the run took too long in all, as of t.
func (r *run) expired(t time.Time) bool { return !r.expiresAt.IsZero() && !r.expiresAt.After(t) }

// late reports whether a run that has not started yet is too late.
func (r *run) late(now time.Time) bool { return !r.lateAt.IsZero() && r.lateAt.Before(now) }

type shardLease struct {
	owner string
	until time.Time
}

// New returns an empty store for the rows of region. The clock's Now is the
// database's time, to the microsecond.
func New(region string, clock core.Clock) *Store {
	return &Store{
		Jitter: func() float64 { return 0.5 }, region: region, clock: clock,
		schedules: map[uuid.UUID]*schedule{}, timers: map[uuid.UUID]*timer{}, runs: map[core.RunKey]*run{}, backfills: map[uuid.UUID]*backfill{},
		leases: map[int16]shardLease{}, claimers: map[string]time.Time{}, keys: map[[32]byte]core.APIKey{},
		alerts: map[uuid.UUID]core.Alert{}, reserved: map[reservedKey]*core.Reservation{}, days: map[time.Time]bool{},
		calendars: map[calendarKey]core.Calendar{}, limits: map[limitKey]int{}, permits: map[limitKey][]*permit{},
	}
}

// begin starts a statement: it locks the store and returns the time at which
// all of the statement happens. The caller unlocks unless there is an error.
func (s *Store) begin(ctx context.Context, doing string) (time.Time, error) {
	if ctx.Err() != nil {
		return time.Time{}, fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	s.mu.Lock()
	return micro(s.clock.Now()), nil
}

// micro returns t as the database keeps it: UTC, whole microseconds. Zero, which
// stands for NULL, stays zero.
func micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

// after returns when d will have passed since now, as the database keeps it.
func after(now time.Time, d time.Duration) time.Time { return micro(now.Add(d)) }

func (s *Store) key(schedule uuid.UUID, slot time.Time) core.RunKey {
	return core.RunKey{Region: s.region, ScheduleID: schedule, Slot: micro(slot)}
}

// own returns k as runs are kept under it; k may name another region.
func own(k core.RunKey) core.RunKey {
	k.Slot = micro(k.Slot)
	return k
}

// living returns a tenant's schedule with its timer, unless it is deleted.
func (s *Store) living(tenant, id uuid.UUID) (*schedule, *timer, bool) {
	sch, ok := s.schedules[id]
	if !ok || sch.deleted || sch.TenantID != tenant {
		return nil, nil, false
	}
	t, ok := s.timers[id]
	return sch, t, ok
}

// last returns the run at the timer's last_run, or nil.
func (s *Store) last(t *timer) *run {
	if t.LastRun.IsZero() {
		return nil
	}
	return s.runs[s.key(t.ScheduleID, t.LastRun)]
}

// busy reports whether an admission that does not allow overlap meets a live
// run.
func (s *Store) busy(t *timer, allow bool) bool {
	p := s.last(t)
	return !allow && p != nil && !p.State.Final()
}

// coversFrom returns where the interval of the timer's next run begins.
func (s *Store) coversFrom(t *timer) time.Time {
	p := s.last(t)
	switch {
	case !t.openFrom.IsZero():
		return t.openFrom
	case p != nil && p.State == core.RunSucceeded && !p.CoversTo.IsZero():
		return p.CoversTo
	case p != nil && p.State != core.RunSucceeded && !p.CoversFrom.IsZero():
		return p.CoversFrom
	case t.LastRun.After(t.Done): // a manual run of the time when overlap was allowed
		return t.Done
	default:
		return cmp.Or(t.LastRun, t.Done)
	}
}

// admission is what is known of a timer when the rows of its slots are made,
// taken before it moved; fence is the one after.
type admission struct {
	timer      core.Timer
	fence      int64
	busy       bool
	busyReason core.Reason
	allow      bool
	wakeIn     time.Duration
	coversFrom time.Time
}

func (s *Store) admit(t *timer, allow bool, why core.Reason) admission {
	return admission{
		timer: t.Timer, fence: t.Fence + 1, busy: s.busy(t, allow), busyReason: why, allow: allow, coversFrom: s.coversFrom(t),
	}
}

// add makes the row of a slot and returns it, or nil if there is one.
func (s *Store) add(a *admission, p core.PlannedRow, now time.Time) *run {
	k := s.key(a.timer.ScheduleID, p.Slot)
	if s.runs[k] != nil {
		return nil
	}
	r := &run{shard: a.timer.Shard, lateAt: micro(p.LateAt), Run: core.Run{
		Key: k, TenantID: a.timer.TenantID, State: core.RunQueued, Cause: p.Cause, RangeFrom: micro(p.RangeFrom),
		RangeCount: max(p.RangeCount, 0), Queue: p.Queue, Fence: a.fence * runFenceFactor, MaxAttempts: p.MaxAttempts, CreatedAt: now,
	}}
	r.Payload = bytes.Clone(p.Payload)
	if p.Within > 0 {
		r.expiresAt = after(now, p.Within)
	}
	switch {
	case p.Skipped:
		r.State, r.Reason, r.FinishedAt = core.RunSkipped, p.Reason, now
	case a.busy:
		r.State, r.Reason, r.FinishedAt = core.RunSkipped, a.busyReason, now
	default:
		r.WakeAt, r.queuedAt = after(now, a.wakeIn), now
		if p.Elsewhere {
			r.WakeAt = now
		}
		if !a.allow {
			r.CoversFrom, r.CoversTo = a.coversFrom, k.Slot
		}
	}
	s.runs[k] = r
	return r
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
