package core

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
)

// The limits and defaults of a schedule's fields.
const (
	DefaultMaxAttempts  = 5
	DefaultMisfireGrace = 60 * time.Second
	DefaultTimeout      = 15 * time.Minute
	// DefaultMisfireCap is how many missed slots run_all runs.
	DefaultMisfireCap = 1000
	// DefaultKeepCompleted is how long a schedule that will not fire again stays.
	DefaultKeepCompleted = 30 * 24 * time.Hour
	// DefaultHTTPTimeout applies to the http target instead of DefaultTimeout.
	DefaultHTTPTimeout = 60 * time.Second
	MinInterval        = time.Second
	MaxNameBytes       = 200
	MaxPayloadBytes    = 256 << 10
)

// Misfire says what becomes of slots that passed while nobody claimed them.
type Misfire string

// The misfire policies.
const (
	// MisfireRunOnce runs the newest missed slot once and records the older ones
	// in one skipped row. It is the default.
	MisfireRunOnce Misfire = "run_once"
	// MisfireSkip records missed slots and runs none of them.
	MisfireSkip Misfire = "skip"
	// MisfireRunAll runs the newest missed slots up to Rules.MisfireCap, in
	// ascending order, one at a time unless overlap is allow.
	MisfireRunAll Misfire = "run_all"
)

// Overlap says what becomes of a slot that comes while a run of the same
// schedule is alive. Retrying counts as alive.
type Overlap string

// The overlap policies.
const (
	OverlapSkip  Overlap = "skip"  // the slot is recorded as skipped; the default
	OverlapAllow Overlap = "allow" // both run
	// OverlapQueueOne lets the slot wait until the run has ended; slots that come
	// while it waits are recorded as skipped.
	OverlapQueueOne Overlap = "queue_one"
	// OverlapCancelPrevious cancels the run, then runs the newest slot that came.
	OverlapCancelPrevious Overlap = "cancel_previous"
)

// DSTGap says what becomes of slots in wall time that a clock change skips. The
// zero value leaves the choice to the spec.
type DSTGap string

// The gap policies.
const (
	DSTGapAuto     DSTGap = ""          // run_after for a fixed spec, skip for a wildcard one
	DSTGapRunAfter DSTGap = "run_after" // one run right after the gap
	DSTGapSkip     DSTGap = "skip"      // nothing makes up for them
)

// DSTOverlap says whether slots come again in wall time that a clock change
// repeats. The zero value leaves the choice to the spec.
type DSTOverlap string

// The overlap policies of clock changes.
const (
	DSTOverlapAuto  DSTOverlap = ""      // first for a fixed spec, both for a wildcard one
	DSTOverlapFirst DSTOverlap = "first" // the first pass only
	DSTOverlapBoth  DSTOverlap = "both"  // both passes
)

// ScheduleState is derived from the schedule and its timer, never stored.
type ScheduleState string

// The schedule states.
const (
	ScheduleActive    ScheduleState = "active"
	SchedulePaused    ScheduleState = "paused"
	ScheduleCompleted ScheduleState = "completed" // it will not fire again
)

// Job is what a run does: a queue says who executes it, the payload what.
type Job struct {
	Queue   string
	Payload json.RawMessage
}

// Schedule is what should happen. It is wide and rarely written; what changes
// with each firing is in its Timer.
type Schedule struct {
	Region   string
	TenantID uuid.UUID
	ID       uuid.UUID
	Name     string
	// Labels are for their owner to find schedules by; see CheckLabels.
	Labels map[string]string
	// Spec is the normalized text: a cron expression without a zone in front,
	// "every 15m" or "at 2027-01-05T09:00:00Z".
	Spec     string
	TimeZone string // IANA name; empty is UTC
	// Anchor is the origin of an interval and the instant of a one-time
	// schedule; the zero time for cron.
	Anchor     time.Time
	DSTGap     DSTGap
	DSTOverlap DSTOverlap
	// CatchUpWithin is how long after its time a slot is still worth a run: what
	// could not start by then is skipped or canceled as late. Zero sets no such
	// time, and refuses a one-time schedule in the past.
	CatchUpWithin time.Duration
	Job           Job
	Misfire       Misfire
	MisfireGrace  time.Duration
	Overlap       Overlap
	// Window is how far starts may be spread after their slot. Zero spreads
	// nothing but the macros that do not care about the minute; see Spread.
	Window time.Duration
	// Exact keeps such a macro on its nominal time.
	Exact       bool
	Timeout     time.Duration // of one attempt; zero is no limit
	MaxAttempts int           // the first attempt included
	// Paused is set by a pause and cleared by a resume; see PausedAt for one that
	// has an end.
	Paused bool
	Rules  Rules
	// Version rises with every edit, pause and resume, from 1.
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// macroSpread is how far the macros that name no minute are spread.
const macroSpread = time.Hour

// Spread returns how far starts are spread after their slot: Window, or an hour
// for @hourly, @daily, @weekly, @monthly, @yearly and @annually, which leave the
// minute open. It is zero where the spec or Exact asks for the exact time.
func (s *Schedule) Spread() time.Duration {
	if s.Window > 0 || s.Exact {
		return s.Window
	}
	switch s.Spec {
	case "@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually":
		return macroSpread
	}
	return 0
}

// Offset returns how long after each slot the schedule's runs start: stable for
// the schedule, in whole seconds, at least 0 and less than Spread.
func (s *Schedule) Offset() time.Duration {
	seconds := uint64(s.Spread() / time.Second)
	if seconds == 0 {
		return 0
	}
	return time.Duration(Hash("spread", s.ID)%seconds) * time.Second
}

// Timer is when a schedule next happens: one narrow row for as long as the
// schedule lives.
type Timer struct {
	Region     string
	Shard      int16
	ScheduleID uuid.UUID
	TenantID   uuid.UUID
	// FireAt is when to act: slot + offset, or Forever.
	FireAt time.Time
	// Fence rises by one with every write of this row.
	Fence int64
	// Done is the settled mark: every slot up to and including it has its row.
	Done time.Time
	// LastRun is the slot of the last admitted run; zero if there is none.
	LastRun time.Time
	// RunsLeft is how many runs Rules.MaxRuns still allows; nil without a limit.
	RunsLeft *int64
	// Parked is set while the timer waits for the run before it to end.
	Parked bool
}

// Scheduled is a schedule with its timer, as the database held them together.
type Scheduled struct {
	Schedule Schedule
	Timer    Timer
	// Now is the database's time of the read.
	Now time.Time
	// Calendars are those that the schedule names and that exist, as they were at
	// the read or, should one have changed meanwhile, right after it.
	Calendars []Closing
	// LastState is the state of the run at Timer.LastRun at the read; empty if
	// there is none, or its day has expired. Reads for planning leave it out.
	LastState RunState
}

// MissingCalendar returns the name of a calendar that the schedule names and that
// does not exist or cannot be read; "" if there is none.
func (s *Scheduled) MissingCalendar() string {
	for _, name := range s.Schedule.Rules.Calendars {
		if !slices.ContainsFunc(s.Calendars, func(c Closing) bool { return c.Name() == name }) {
			return name
		}
	}
	return ""
}

// State derives the schedule's state.
func (s *Scheduled) State() ScheduleState {
	switch {
	case s.Schedule.PausedAt(s.Now):
		return SchedulePaused
	case !s.Timer.FireAt.Before(Forever):
		return ScheduleCompleted
	default:
		return ScheduleActive
	}
}

// LastRunLive reports whether the last admitted run was alive at the read.
func (s *Scheduled) LastRunLive() bool { return s.LastState != "" && !s.LastState.Final() }
