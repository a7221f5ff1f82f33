package core

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// RunState is the state of a run; see the package comment for the diagram.
type RunState string

// The run states. Queued, running and retrying are alive; the others are final.
const (
	RunQueued    RunState = "queued"
	RunRunning   RunState = "running"
	RunRetrying  RunState = "retrying"
	RunSucceeded RunState = "succeeded"
	RunDead      RunState = "dead"
	RunSkipped   RunState = "skipped"
	RunCanceled  RunState = "canceled"
)

// Final reports whether a run in this state will never change again.
func (s RunState) Final() bool {
	return s != RunQueued && s != RunRunning && s != RunRetrying
}

// Cause says why a run exists.
type Cause string

// The causes.
const (
	CauseSchedule Cause = "schedule" // its slot came
	CauseCatchUp  Cause = "catch_up" // its slot had been missed
	CauseManual   Cause = "manual"   // somebody triggered it
	CauseBackfill Cause = "backfill" // somebody asked for a range of past slots
)

// Reason says why a run is dead, skipped or canceled.
type Reason string

// The reasons.
const (
	ReasonExhausted Reason = "exhausted"     // dead: the last attempt failed
	ReasonPermanent Reason = "permanent"     // dead: the job said that trying again cannot help
	ReasonTimeout   Reason = "timeout"       // dead: the last attempt ran out of time
	ReasonTotal     Reason = "total_timeout" // dead: all attempts together took longer than that
	ReasonLost      Reason = "lost"          // dead: the last attempt's heartbeats stopped
	ReasonOverlap   Reason = "overlap"       // skipped: a run was alive
	ReasonMisfire   Reason = "misfire"       // skipped: missed, and merged into the run of a newer slot
	ReasonPaused    Reason = "paused"        // skipped: the schedule was paused
	ReasonEdited    Reason = "edited"        // skipped: an edit replaced the spec before the slot was claimed
	ReasonRequested Reason = "requested"     // canceled: somebody asked for it
	ReasonDeleted   Reason = "deleted"       // skipped or canceled: the schedule was deleted
	ReasonLate      Reason = "late"          // skipped or canceled: catch_up_within had passed
	ReasonBlackout  Reason = "blackout"      // skipped: a calendar closes the slot
	ReasonException Reason = "exception"     // skipped: an exception says so
	ReasonReplaced  Reason = "replaced"      // canceled: a newer slot came under cancel_previous
)

// nominal returns the slot that a run is of: the key of a backfill's run is some
// microseconds behind it.
func nominal(key RunKey, cause Cause) time.Time {
	if cause == CauseBackfill {
		return key.Slot.Truncate(time.Millisecond)
	}
	return key.Slot
}

// ScheduledFor returns the slot, which is not always the key's.
func (r *Run) ScheduledFor() time.Time { return nominal(r.Key, r.Cause) }

// Run is what happened for a slot.
type Run struct {
	Key      RunKey
	TenantID uuid.UUID
	State    RunState
	Cause    Cause
	Reason   Reason // empty unless dead, skipped or canceled
	// RangeFrom is the first slot of a row that stands for a range of skipped
	// slots; zero otherwise. The key is the last one.
	RangeFrom time.Time
	// RangeCount is how many slots the range has, counted up to MaxRangeCount.
	RangeCount int64
	Queue      string
	// Version is the schedule's version that the last attempt executed.
	Version     int64
	Fence       int64
	Attempt     int // attempts begun; 0 before the first
	MaxAttempts int
	// WakeAt is when the sweep looks: lease end, dispatch lease or retry time.
	// Zero once final.
	WakeAt          time.Time
	CancelRequested bool
	CoversFrom      time.Time // zero: no interval
	CoversTo        time.Time
	CreatedAt       time.Time
	StartedAt       time.Time // of the last attempt
	FinishedAt      time.Time
	Result          json.RawMessage
	Error           string
	// Payload is what the run gets instead of its schedule's; nil for most. Lists
	// leave it out.
	Payload json.RawMessage
}

// MaxRangeCount is where counting the slots of a range stops; a row with this
// count stands for at least so many.
const MaxRangeCount = 10_000

// Attempt is one failed execution of a run.
type Attempt struct {
	Number     int
	Fence      int64
	StartedAt  time.Time
	FinishedAt time.Time
	Error      string
}
