package plan

import (
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// Judge returns why a slot may not run, as of at, "" if it may, and until when that
// holds for the slots after it; zero is for all of them. What somebody asked for
// this very slot goes before what calendars say.
func Judge(s *core.Schedule, slots spec.Slots, slot, at time.Time) (why core.Reason, until time.Time) {
	r := &s.Rules
	if s.Paused && slot.Before(r.PausedUntil) {
		return core.ReasonPaused, r.PausedUntil
	}
	sooner := func(t time.Time) {
		if !t.IsZero() && (until.IsZero() || t.Before(until)) {
			until = t
		}
	}
	wanted := false
	for i := range r.Exceptions {
		switch e := &r.Exceptions[i]; {
		case e.Slot.Before(slot):
		case e.Slot.After(slot):
			sooner(e.Slot)
		case e.Skip:
			return core.ReasonException, slot.Add(time.Microsecond)
		default:
			wanted = true
			sooner(slot.Add(time.Microsecond))
		}
	}
	if useful := at.Add(-s.CatchUpWithin); s.CatchUpWithin > 0 && slot.Before(useful) {
		sooner(useful)
		return core.ReasonLate, until
	}
	if wanted {
		return "", until
	}
	calendar, end := slots.Closed(slot)
	sooner(end)
	if calendar != "" {
		return core.ReasonBlackout, until
	}
	return "", until
}

// maxLooks bounds how many stretches of closed slots are passed over to find one
// that is open.
const maxLooks = 1000

// NextStart returns when the first slot starts that is not settled and that neither
// an exception nor a calendar skips, as far as is known at now; the zero time if
// there is none, or none within a bounded look. A pause without an end is left out
// of account.
func NextStart(s *core.Scheduled, slots spec.Slots) time.Time {
	done := s.Timer.Done
	for range maxLooks {
		slot := slots.Next(done)
		if slot.IsZero() || !slot.Before(core.Forever) {
			return time.Time{}
		}
		why, until := Judge(&s.Schedule, slots, slot, slot)
		if why == "" {
			return later(s.Schedule.Effective(slot), s.Timer.FireAt)
		}
		if until.IsZero() {
			return time.Time{}
		}
		done = later(slot, until.Add(-time.Microsecond))
	}
	return time.Time{}
}
