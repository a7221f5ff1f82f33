package core

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// The store is cut into the parts that each stage needs. Every method is one
// atomic statement unless it says otherwise, may be called concurrently, and
// obeys ctx. Errors: ErrUnknownOutcome when a write may or may not have
// happened, CodeUnavailable when the database cannot be reached, and what the
// method names.

// ShardMark is a shard with the low-water mark of a scan: nothing below Low is
// looked at. The zero Low looks at everything.
type ShardMark struct {
	Shard int16
	Low   time.Time
}

// TimerRef names a timer as a poll saw it.
type TimerRef struct {
	Shard      int16
	FireAt     time.Time
	ScheduleID uuid.UUID
	Fence      int64
}

// Move is one line of a claim: a due timer, where it goes, and the runs that
// its due slots become. core/plan makes it.
type Move struct {
	ScheduleID uuid.UUID
	FireAt     time.Time // the timer is claimed only with this fire_at and fence
	Fence      int64
	NextAt     time.Time
	Done       time.Time
	LastRun    time.Time // slot of the admitted run; zero: none
	// ValidFrom and ValidUntil bound the plan's life, by the database's clock:
	// before the first no planned slot may be recorded, and from the second on
	// the plan is out of date.
	ValidFrom  time.Time
	ValidUntil time.Time
	OnBusy     OnBusy
	// CancelLive asks for the run before to be canceled first, if it is alive.
	CancelLive bool
	// Keep is how long the schedule stays if this move completes it.
	Keep time.Duration
	Rows []PlannedRow
}

// Runs returns how many of the move's rows are to run.
func (m *Move) Runs() int {
	n := 0
	for _, r := range m.Rows {
		if !r.Skipped {
			n++
		}
	}
	return n
}

// OnBusy says what the claim does with a slot while the run before is alive.
type OnBusy string

// The ways to meet a live run.
const (
	BusyAllow OnBusy = "allow" // run beside it
	BusySkip  OnBusy = "skip"  // record the slot as skipped
	BusyWait  OnBusy = "wait"  // park the timer and look again
)

// PlannedRow is a row of runs to be made for a slot or a range of slots.
type PlannedRow struct {
	Slot        time.Time
	RangeFrom   time.Time // zero unless the row stands for a range
	RangeCount  int64
	Skipped     bool
	Cause       Cause
	Reason      Reason
	Queue       string
	MaxAttempts int
	// Payload replaces the schedule's for this run; nil does not.
	Payload json.RawMessage
	// LateAt is from when on it is too late to start the run; zero is never.
	LateAt time.Time
	// Within is how long the run may take in all, from when it is made; zero is no
	// limit.
	Within time.Duration
	// Elsewhere says that another process serves the queue: the run is due for
	// that at once, without a dispatch lease.
	Elsewhere bool
}

// Claimed is a row that a claim made.
type Claimed struct {
	Key      RunKey
	TenantID uuid.UUID
	Fence    int64
	State    RunState
	Queue    string
}

// Message returns what tells an executor of the run.
func (c *Claimed) Message() Message { return Message{Key: c.Key, Fence: c.Fence, Tenant: c.TenantID} }

// TimerStore is what the claimer needs to turn timers into runs.
type TimerStore interface {
	// Preload returns timers due before the database's now + ahead with their
	// schedules, at most 10,000 of a shard, soonest first. It locks nothing.
	Preload(ctx context.Context, marks []ShardMark, ahead time.Duration) ([]Scheduled, time.Time, error)
	// Poll returns the same timers by reference only, at most 1,000 of a
	// shard, and the database's time.
	Poll(ctx context.Context, marks []ShardMark, ahead time.Duration) ([]TimerRef, time.Time, error)
	// ReadTimers returns the named schedules with their timers, at most 1,000.
	// Deleted ones are missing.
	ReadTimers(ctx context.Context, schedules []uuid.UUID) ([]Scheduled, time.Time, error)
	// Claim carries out moves of one shard, at most 1,000, and returns the
	// rows it made, once the statement has ended without an error. Moves whose
	// timer changed, is not due or is locked by another claim do nothing. A
	// run is born queued with a dispatch lease of the given length. Sent
	// again it makes nothing. ErrBadRow: one of the moves holds a value that
	// the database refuses; none was carried out.
	Claim(ctx context.Context, shard int16, moves []Move, dispatchLease time.Duration) ([]Claimed, error)
	// CancelPrevious ends the runs that the moves would meet alive: waiting ones
	// at once, running ones by asking their holders. Only runs of moves that Claim
	// would carry out now are touched. It returns those it changed; sent again it
	// changes nothing more.
	CancelPrevious(ctx context.Context, shard int16, moves []Move) ([]Claimed, error)
	// ReadClaimed returns those of the moves' runs that exist and are still as
	// a claim makes them; it resolves a claim of unknown outcome.
	ReadClaimed(ctx context.Context, moves []Move) ([]Claimed, error)
	// Park moves one timer that cannot be claimed an hour ahead and opens an
	// alert with the given text. Done stays.
	Park(ctx context.Context, shard int16, m Move, alert string) error
}

// SweepOptions bounds and tunes one sweep.
type SweepOptions struct {
	Marks []ShardMark
	// DispatchLease is the first gap until a queued run is published again;
	// the gap doubles with the time that the run has waited, up to MaxDispatchLease.
	DispatchLease    time.Duration
	MaxDispatchLease time.Duration
	// Backoff bounds the delay of a run that lost its heartbeats a second time.
	Backoff Backoff
	// Queues are the queues whose queued runs are taken. Nil takes none:
	// somebody else publishes.
	Queues []string
	// LostIn are the shards whose running runs are taken too when their lease
	// ended, whose retrying runs when they are due, and whose dead ones to be told of.
	LostIn []int16
	// TellDead is how long a dead run that the sweep returns may take to be told of
	// before it is returned again. Zero says that nobody is told.
	TellDead time.Duration
}

// Backoff is exponential with equal jitter: half of the delay is fixed, half is
// random.
type Backoff struct {
	Initial time.Duration
	Max     time.Duration
}

// Swept is a run that a sweep changed.
type Swept struct {
	Key      RunKey
	TenantID uuid.UUID
	Shard    int16
	Fence    int64
	State    RunState // queued runs are to be published, and dead ones told of
	From     RunState
	Queue    string
	// Admitted says of a queued run that it was let go to get a permit, and
	// Waiting that it waits to be.
	Admitted, Waiting bool
}

// Message returns what tells an executor, or who asks for dead runs, of the run.
func (s *Swept) Message() Message { return Message{Key: s.Key, Fence: s.Fence, Tenant: s.TenantID} }

// SweepStore is what the sweep needs.
type SweepStore interface {
	// Sweep takes runs whose wake_at has passed, at most 64 of a shard: queued
	// ones for publishing again (same fence), running ones as lost, retrying
	// ones as due, dead ones to be told of until Settle. It also returns the
	// database's time.
	Sweep(ctx context.Context, o SweepOptions) ([]Swept, time.Time, error)
	// Settle says that somebody was told of these dead runs. It does nothing to runs
	// under another fence; sent again it changes nothing.
	Settle(ctx context.Context, hs []Held) error
}

// LeaseStore shares the shards among claimers. The leases are a courtesy that
// saves wasted work; no rule rests on them.
type LeaseStore interface {
	// RenewShards registers owner as alive for ttl and extends its leases. It
	// returns the shards that owner holds and how many owners are alive.
	RenewShards(ctx context.Context, owner string, ttl time.Duration) (held []int16, owners int, err error)
	// TakeShards takes up to n shards that nobody holds and returns them.
	TakeShards(ctx context.Context, owner string, ttl time.Duration, n int) ([]int16, error)
	// ReleaseShards gives the named shards up; nil gives up all and ends the
	// registration.
	ReleaseShards(ctx context.Context, owner string, shards []int16) error
}

// Edit is a guarded change of a schedule and its timer.
type Edit struct {
	// Version, Fence and ValidUntil are what the plan rests on: the schedule's
	// version, the timer's fence, and the time from which on the plan is void.
	Version    int64
	Fence      int64
	ValidUntil time.Time
	// Schedule is the new content; its Version is ignored.
	Schedule Schedule
	// MoveTimer says whether NextAt and Done replace the timer's.
	MoveTimer bool
	NextAt    time.Time
	Done      time.Time
	// Settle are the rows for slots owed under the old content. A row that is
	// not skipped becomes so if a run is alive and overlap is not allow.
	Settle  []PlannedRow
	LastRun time.Time // slot of the row of Settle that is to run; zero: none
	OnBusy  OnBusy
	// RunsLeft replaces the timer's, less the run of Settle; nil is no limit.
	RunsLeft *int64
	// Keep is how long the schedule stays if the edit completes it; nil, while it
	// is paused, is for ever.
	Keep *time.Duration
}

// NewSchedule is a schedule to be stored, with its timer's first time and settled
// mark.
type NewSchedule struct {
	Schedule Schedule
	NextAt   time.Time
	Done     time.Time
}

// ScheduleStore is what the API needs. Every method takes the tenant from the
// caller's credential and finds nothing of another tenant.
type ScheduleStore interface {
	CalendarStore
	BackfillStore
	LimitAdmin
	// Now returns the database's time.
	Now(ctx context.Context) (time.Time, error)
	// Create stores a schedule with its timer: first fire time nextAt, settled
	// up to done. ErrNameTaken. With the same id it is safe to repeat.
	Create(ctx context.Context, s Schedule, nextAt, done time.Time) error
	// CreateMany stores schedules of one tenant with their timers, at most 1,000
	// and all or none, and returns the ids of those that it made: the others
	// have an id or a name that is taken. With the same ids it is safe to repeat.
	// ErrBadRow: one holds a value that the database refuses.
	CreateMany(ctx context.Context, tenant uuid.UUID, all []NewSchedule) ([]uuid.UUID, error)
	// Named returns those of the named schedules that exist, at most 100, in no
	// order. LastRunLive is not looked up.
	Named(ctx context.Context, tenant uuid.UUID, names []string) ([]Scheduled, error)
	// CountSchedules returns how many schedules a tenant has, and stops at most,
	// which is a million or less.
	CountSchedules(ctx context.Context, tenant uuid.UUID, most int) (int, error)
	// Get returns one schedule; ErrNotFound.
	Get(ctx context.Context, tenant, id uuid.UUID) (Scheduled, error)
	// List returns schedules in the order of their ids, oldest first. It looks at
	// ScanLimit of them at most.
	List(ctx context.Context, tenant uuid.UUID, q ScheduleQuery) (SchedulePage, error)
	// Apply carries out an edit whole or not at all; ErrChanged if version,
	// fence or time have moved on, ErrNameTaken.
	Apply(ctx context.Context, tenant uuid.UUID, e Edit) error
	// Delete makes the schedule a tombstone, removes its timer, cancels its
	// queued and retrying runs and requests it of running ones; settle are the
	// rows of slots still owed. ErrChanged as Apply.
	Delete(ctx context.Context, tenant uuid.UUID, e Edit) error
	// Trigger admits a manual run through the timer's fence: ErrRunLive if a run is
	// alive and overlap is not allow, ErrChanged if the fence moved on or the slot
	// is taken. With a key it notes the run's slot in the key's reservation, in the
	// same statement.
	Trigger(ctx context.Context, tenant uuid.UUID, m Manual) (Run, error)
	// CancelRun ends a waiting run and asks a running one to end, and returns it;
	// sent again it changes nothing. ErrNotFound; ErrRunFinal, with the run, for one
	// that ended otherwise.
	CancelRun(ctx context.Context, tenant uuid.UUID, key RunKey) (Run, error)
	// Redrive makes a dead run queued again, through the timer's fence as Trigger
	// does, with as many attempts more as its schedule has, and due at once.
	// ErrChanged if the fence moved on or there is no such run; ErrRunNotDead;
	// ErrSuperseded if a later run was admitted and overlap is not allow.
	Redrive(ctx context.Context, tenant uuid.UUID, r Redrive) error
	// Reserve keeps an idempotency key for ReservationTTL and returns what it is
	// reserved for: this request, or an earlier one.
	Reserve(ctx context.Context, tenant uuid.UUID, r Request) (Reservation, error)
	// NoteLease keeps which runs a reserved key leases, unless it is noted already,
	// and returns what is noted.
	NoteLease(ctx context.Context, tenant uuid.UUID, key [32]byte, msgs []Message) ([]Message, error)
	// Completed returns schedules whose time to stay after their completion is over
	// and none of whose runs is alive, of any tenant, at most 100.
	Completed(ctx context.Context) ([]ScheduleRef, error)
	// Overdue returns what of the tenant has waited for more than a minute, the oldest
	// of up to 100 kinds first, as far as a bounded look finds it: queued runs from
	// when they were queued, others and timers from when somebody should have come.
	Overdue(ctx context.Context, tenant uuid.UUID) ([]Overdue, error)
	// Alerts returns up to 100 alerts of the tenant that still need somebody.
	Alerts(ctx context.Context, tenant uuid.UUID) ([]Alert, error)
	// Runs returns a schedule's runs, newest slot first. It looks at ScanLimit of
	// them at most.
	Runs(ctx context.Context, tenant, schedule uuid.UUID, q RunQuery) (RunPage, error)
	// SlotRow returns the first row of a schedule, from a time on, that stands for
	// slots and not for a run that somebody asked for: slots end in rows in their
	// order. Nil if there is none, as far as a bounded look finds it.
	SlotRow(ctx context.Context, tenant, schedule uuid.UUID, from time.Time) (*Run, error)
	// Run returns one run with its failed attempts; ErrNotFound.
	Run(ctx context.Context, tenant uuid.UUID, key RunKey) (Run, []Attempt, error)
}

// DatabaseInfo is what a look at the database shows, for people who check an
// installation.
type DatabaseInfo struct {
	Server string // what it calls itself, such as PostgreSQL 15.18
	Schema int64  // number of the last migration that was applied
	Known  int64  // number of the last one that the caller's release has
	Now    time.Time
	// ClockOffset is how far its clock is ahead of the caller's; RoundTrip is how
	// long the look took, half of which is the error of the offset.
	ClockOffset time.Duration
	RoundTrip   time.Duration
	// PartitionsUntil is the end of the last day of history that has a partition;
	// zero on a database without partitions.
	PartitionsUntil time.Time
	// Regions are those in which a claimer was ever at work.
	Regions []RegionInfo
}

// RegionInfo is who works in a region.
type RegionInfo struct {
	Name     string
	Claimers int // alive
	Shards   int // of Shards, that a claimer holds
}

// UpkeepStore keeps the tables in shape. Any process may call it at any time.
type UpkeepStore interface {
	// EnsurePartitions makes the day partitions of runs from yesterday to a
	// week ahead, moving rows that the default partition took meanwhile.
	EnsurePartitions(ctx context.Context) error
	// DropExpired drops days of history older than keep in which nothing is
	// alive, and returns how many it dropped. Failed attempts go with their runs, and
	// backfills and deleted schedules go when they ended that long ago. It is bounded:
	// what is left goes the next time.
	DropExpired(ctx context.Context, keep time.Duration) (int, error)
	// DropReservations removes up to 1,000 idempotency keys older than
	// ReservationTTL and returns how many.
	DropReservations(ctx context.Context) (int, error)
	// Ping answers nil when the database does.
	Ping(ctx context.Context) error
}
