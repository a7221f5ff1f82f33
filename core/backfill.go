package core

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// BackfillState is where a backfill is in its life.
type BackfillState string

// The states. The last two are final.
const (
	BackfillRunning  BackfillState = "running"
	BackfillFinished BackfillState = "finished"
	BackfillCanceled BackfillState = "canceled"
)

// The bounds of backfills.
const (
	MaxBackfillRuns        = 10_000
	DefaultBackfillRuns    = 1000
	MaxBackfillConcurrency = 100
)

// Backfill runs past slots of a schedule again, or for the first time, beside what
// the schedule does: its runs are keyed by slots and some microseconds, do not meet
// the overlap policy and move no timer.
type Backfill struct {
	Region     string
	ID         uuid.UUID
	TenantID   uuid.UUID
	ScheduleID uuid.UUID
	// From and To bound the slots that were asked for; To is exclusive.
	From, To   time.Time
	Descending bool
	// Rerun says that slots which succeeded before were asked for as well.
	Rerun       bool
	Concurrency int             // runs alive at once, at most
	Payload     json.RawMessage // instead of the schedule's; nil keeps that
	State       BackfillState
	Total       int // runs to be made
	Admitted    int // of these, in their order
	// How many of the admitted runs ended so.
	Succeeded, Dead, Canceled int
	// Live are the keys of admitted runs that have not been counted as ended, and
	// States their states at the read; empty for one that is not there.
	Live       []time.Time
	States     []RunState
	Fence      int64
	CreatedAt  time.Time
	FinishedAt time.Time
}

// Count adds up the runs that ended and returns the keys of those that have not. A
// run that is not there, since its key was taken and its history has expired,
// counts as canceled.
func (b *Backfill) Count() (live []time.Time) {
	for i, key := range b.Live {
		switch state := b.States[i]; {
		case state == RunSucceeded:
			b.Succeeded++
		case state == RunDead:
			b.Dead++
		case state == "" || state.Final():
			b.Canceled++
		default:
			live = append(live, key)
		}
	}
	return live
}

// BackfillRun is a run that a backfill is to make.
type BackfillRun struct {
	Key        time.Time // the slot and from 1 to 999 microseconds
	CoversFrom time.Time // the slot before; CoversTo is the slot
}

// DueBackfill is a running backfill with what it needs to move on.
type DueBackfill struct {
	Backfill
	Next   []BackfillRun // up to Concurrency
	Queue  string        // of its schedule
	Within time.Duration // the schedule's total timeout; zero is none
	Gone   bool          // the schedule was deleted
}

// BackfillStep moves a backfill on. The counts and Live replace those that are there.
type BackfillStep struct {
	ID                        uuid.UUID
	Fence                     int64
	State                     BackfillState
	Admitted                  int
	Succeeded, Dead, Canceled int
	Live                      []time.Time
	Admit                     []BackfillRun
	Within                    time.Duration
	// Elsewhere says that another process serves the queue.
	Elsewhere bool
}

// SlotState is a row that is there for a slot.
type SlotState struct {
	Slot  time.Time
	Key   time.Time
	State RunState
	Cause Cause
}

// BackfillStore keeps backfills. Every method of a tenant finds nothing of another.
type BackfillStore interface {
	// CreateBackfill stores a running backfill of a schedule with its runs in their
	// order, at most MaxBackfillRuns. With the same id it is safe to repeat.
	CreateBackfill(ctx context.Context, b Backfill, runs []BackfillRun) error
	// Backfill returns one; ErrNotFound.
	Backfill(ctx context.Context, tenant, id uuid.UUID) (Backfill, error)
	// Backfills returns the newest 100 of a schedule, newest first.
	Backfills(ctx context.Context, tenant, schedule uuid.UUID) ([]Backfill, error)
	// CancelBackfill lets a running one admit no more runs; those that are alive
	// go on. Sent again, or on one that has ended, it changes nothing.
	CancelBackfill(ctx context.Context, tenant, id uuid.UUID) error
	// SlotStates returns the rows that are there for up to 1,000 slots, the slots'
	// own and those of backfills; rows of ranges are left out.
	SlotStates(ctx context.Context, tenant, schedule uuid.UUID, slots []time.Time) ([]SlotState, error)
}

// BackfillQueue is what the claimer needs of backfills.
type BackfillQueue interface {
	// DueBackfills returns the running backfills of some shards, at most 100 of a
	// shard. It changes nothing.
	DueBackfills(ctx context.Context, shards []int16) ([]DueBackfill, error)
	// AdvanceBackfill carries out a step, if the backfill is running and has that
	// fence, and returns the runs that it made, born queued with a dispatch lease of
	// the given length. Sent again it does nothing.
	AdvanceBackfill(ctx context.Context, s BackfillStep, dispatchLease time.Duration) ([]Claimed, error)
}
