package core

import (
	"encoding/json"
	"time"
)

// Rules are the policies that most schedules leave at their defaults. Only
// planning reads them, so they are stored as one JSON value.
type Rules struct {
	// MisfireCap is how many missed slots run_all runs, the newest. Zero is
	// DefaultMisfireCap.
	MisfireCap int `json:"misfire_cap,omitempty"`
	// StartsAt and EndsAt bound the slots: none before the first, none at or
	// after the second. Zero is no bound.
	StartsAt time.Time `json:"starts_at,omitzero"`
	EndsAt   time.Time `json:"ends_at,omitzero"`
	// MaxRuns is how often the schedule runs before it is completed; manual runs,
	// retries and skipped slots do not count. Zero is no limit.
	MaxRuns int64 `json:"max_runs,omitempty"`
	// KeepCompleted is how long the schedule stays once it will not fire again.
	// Zero is DefaultKeepCompleted.
	KeepCompleted time.Duration `json:"keep_completed,omitempty"`
	// DeleteAfterCompletion deletes it at once, that is when its last run ended.
	DeleteAfterCompletion bool `json:"delete_after_completion,omitempty"`
	// Calendars are the names of those in which slots are closed, in order.
	Calendars []string `json:"calendars,omitempty"`
	// Retry says when failed attempts are tried again.
	Retry Retry `json:"retry,omitzero"`
	// TotalTimeout is how long a run may take with all its attempts and the waiting
	// between, from when it was queued first. Zero is no limit.
	TotalTimeout time.Duration `json:"total_timeout,omitempty"`
	// Exceptions are those to come, one a slot, in the order of their slots.
	Exceptions []Exception `json:"exceptions,omitempty"`
	// PausedUntil ends a pause by itself; zero leaves that to a resume.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// PauseNote is what the person who paused has to say.
	PauseNote string `json:"pause_note,omitempty"`
}

// MaxExceptions bounds the exceptions to come of a schedule.
const MaxExceptions = 100

// Exception is what is different about one slot to come. Of Skip, MoveTo and
// Payload one at least is set, and Skip alone.
type Exception struct {
	Slot time.Time `json:"slot"`
	// Skip records the slot instead of running it.
	Skip bool `json:"skip,omitempty"`
	// MoveTo is when the slot's run starts instead; the slot stays what it is.
	MoveTo time.Time `json:"move_to,omitzero"`
	// Payload replaces the job's for this run; nil keeps it.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Note is for people.
	Note string `json:"note,omitempty"`
}

// PausedAt reports whether the schedule is paused at now: a pause with an end is
// over by itself.
func (s *Schedule) PausedAt(now time.Time) bool {
	return s.Paused && (s.Rules.PausedUntil.IsZero() || now.Before(s.Rules.PausedUntil))
}

// Exception returns what is different about a slot; nil if nothing is.
func (s *Schedule) Exception(slot time.Time) *Exception {
	for i := range s.Rules.Exceptions {
		if e := &s.Rules.Exceptions[i]; e.Slot.Equal(slot) {
			return e
		}
	}
	return nil
}

// Effective returns when the run of a slot starts: at the time that an exception
// names, or after the schedule's offset.
func (s *Schedule) Effective(slot time.Time) time.Time {
	if e := s.Exception(slot); e != nil && !e.MoveTo.IsZero() {
		return e.MoveTo
	}
	return slot.Add(s.Offset())
}

// Keep returns how long the schedule stays once it is completed.
func (s *Schedule) Keep() time.Duration {
	switch {
	case s.Rules.DeleteAfterCompletion:
		return 0
	case s.Rules.KeepCompleted > 0:
		return s.Rules.KeepCompleted
	}
	return DefaultKeepCompleted
}

// FirstRunsLeft returns how many runs a new schedule has; nil without a limit.
func (s *Schedule) FirstRunsLeft() *int64 {
	if s.Rules.MaxRuns == 0 {
		return nil
	}
	n := s.Rules.MaxRuns
	return &n
}
