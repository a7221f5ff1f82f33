package core

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Started is a run that a start statement gave to its caller.
type Started struct {
	Execution
	// State is running, or canceled (its schedule was deleted, or it is too late), or
	// dead (it took too long in all), or queued (the schedule names another queue
	// now): only running ones are executed.
	State   RunState
	Token   uuid.UUID
	Queue   string
	Timeout time.Duration // zero: none
	// Left is how long the run may still take with all its attempts, by its
	// schedule's total timeout; nil without one.
	Left        *time.Duration
	Retry       Retry
	MaxAttempts int
	// StartedAt is when it started, by the database's clock, and Due when it was to:
	// the slot with its spread. Zero where nobody waits for a time: in runs that were
	// asked for or are late by their nature, and from the second attempt on.
	StartedAt time.Time
	Due       time.Time
	// Awaited says that slots of the schedule may wait for this run to end: once
	// it has, Nudge lets them come at once.
	Awaited bool
}

// Lag returns how long after its time a run started; negative where it had none.
func (s *Started) Lag() time.Duration {
	if s.Due.IsZero() {
		return -1
	}
	return max(0, s.StartedAt.Sub(s.Due))
}

// DueOf returns when the first attempt of a run is due, by its schedule; zero for a run
// that has no time of its own. A slot that an exception moved counts from where it was.
func DueOf(cause Cause, attempt int, slot time.Time, s *Schedule) time.Time {
	if cause != CauseSchedule || attempt != 1 {
		return time.Time{}
	}
	return slot.Add(s.Offset())
}

// Held names a run and the fence under which the caller holds it.
type Held struct {
	Key   RunKey
	Fence int64
}

// Beat is a heartbeat's answer for one run.
type Beat struct {
	Held
	CancelRequested bool
}

// Outcome is how an attempt ended.
type Outcome struct {
	Held
	// State is what the executor found: succeeded, retrying (a failure that
	// may be retried), dead (a permanent one) or canceled. The database turns
	// retrying into dead when the attempts are used up, and into canceled
	// when that was requested.
	State  RunState
	Reason Reason // of a failure; kept when the run ends dead
	Delay  time.Duration
	Result json.RawMessage
	Error  string
	// HandedBack says of retrying that the attempt ended for its executor's sake: it
	// does not count against the limit of attempts, up to MaxHandBacks times a run.
	HandedBack bool
}

// MaxHandBacks is how many attempts of a run may be handed back without being
// counted, so that a job which is longer than its executors live does end.
const MaxHandBacks = 3

// RunStore is what the executor needs.
type RunStore interface {
	// Start gives each queued run whose fence is the delivery's to that
	// delivery: running, fence + 1, attempt + 1, a lease. A run that is under
	// limits starts only if the delivery's permits are still as they were seen, one
	// for each limit. A delivery sent
	// again gets its row again, unchanged but for a renewed lease. Deliveries
	// that get nothing are missing in the answer: drop them. Of several
	// deliveries of one run in a call only one may be passed.
	Start(ctx context.Context, ds []Delivery, lease time.Duration) ([]Started, error)
	// Heartbeat extends the leases of running runs. A run missing in the
	// answer is no longer the caller's.
	Heartbeat(ctx context.Context, hs []Held, lease time.Duration) ([]Beat, error)
	// Finish records outcomes and returns those accepted, with the state that
	// resulted. One that was recorded before is accepted again. The missing
	// ones are stale: another holder has the run, or it ended.
	Finish(ctx context.Context, os []Outcome) ([]Finished, error)
	// Nudge makes those timers of the schedules that wait for a run due now, with
	// fence + 1; all others stay untouched. It only hastens: a timer that waits
	// looks again by itself every 2 s. Sent again it changes nothing that matters.
	Nudge(ctx context.Context, schedules []uuid.UUID) error
}

// Finished is an accepted outcome.
type Finished struct {
	Held
	State RunState
}
