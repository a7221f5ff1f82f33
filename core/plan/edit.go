package plan

import (
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// Change says how an edit turns one content of a schedule into another.
type Change struct {
	Old, New           core.Schedule
	OldSlots, NewSlots spec.Slots
	// SlotsChanged is set when spec, anchor, time zone or a DST policy differ.
	SlotsChanged bool
}

// Edit plans a change of content: first the slots owed so far under the old
// content get their rows, then the timer goes to its next slot under the new
// one. A change of neither slots nor spread leaves the timer where it is. A
// change of Paused pauses or resumes as well.
func Edit(cur *core.Scheduled, c Change) core.Edit {
	e := guard(cur, &c.Old, c.OldSlots)
	e.Schedule, e.OnBusy = c.New, onBusy(&c.New)
	moved := c.SlotsChanged || c.Old.Offset() != c.New.Offset()
	if !moved && c.Old.Paused == c.New.Paused {
		return e
	}
	e.MoveTimer = true
	switch {
	case c.Old.Paused:
		settlePaused(&e, cur, &c.New, c.OldSlots)
	case moved:
		settleOwed(&e, cur, c)
		if c.SlotsChanged {
			settleRest(&e, cur.Now, &c.New, c.OldSlots)
			e.Done = later(e.Done, cur.Now)
		}
	}
	if !c.New.Paused {
		e.NextAt = fireAt(c.NewSlots, e.Done, c.New.Offset())
	}
	return e
}

// Pause plans a pause: the timer stops where it is. Slots owed by then are
// recorded with those of the pause, when it ends.
func Pause(cur *core.Scheduled, slots spec.Slots) core.Edit {
	e := guard(cur, &cur.Schedule, slots)
	e.Schedule.Paused = true
	e.MoveTimer, e.NextAt = true, core.Forever
	return e
}

// Resume plans the end of a pause: one skipped row for the slots that passed,
// and on with the first one after now.
func Resume(cur *core.Scheduled, slots spec.Slots) core.Edit {
	e := guard(cur, &cur.Schedule, slots)
	e.Schedule.Paused = false
	e.MoveTimer = true
	settlePaused(&e, cur, &cur.Schedule, slots)
	e.NextAt = fireAt(slots, e.Done, cur.Schedule.Offset())
	return e
}

// Delete plans a deletion: one skipped row for the slots that are still owed.
func Delete(cur *core.Scheduled, slots spec.Slots) core.Edit {
	e := guard(cur, &cur.Schedule, slots)
	why := core.ReasonDeleted
	if cur.Schedule.Paused {
		why = core.ReasonPaused
	}
	settleAll(&e, cur.Now, &cur.Schedule, slots, why)
	return e
}

// guard returns an edit that changes nothing yet, with what the plan rests on:
// it is void once another slot comes or becomes effective.
func guard(cur *core.Scheduled, s *core.Schedule, slots spec.Slots) core.Edit {
	until := cur.Now.Add(maxValidity)
	if next := slots.Next(cur.Now); !next.IsZero() {
		until = earlier(until, next)
	}
	offset := s.Offset()
	if next := slots.Next(later(cur.Timer.Done, cur.Now.Add(-offset))); !next.IsZero() {
		until = earlier(until, next.Add(offset))
	}
	return core.Edit{
		Version: cur.Schedule.Version, Fence: cur.Timer.Fence, ValidUntil: until, Schedule: *s,
		NextAt: core.Forever, Done: cur.Timer.Done, OnBusy: onBusy(s),
	}
}

// settleOwed gives the slots whose effective time has passed their rows, as the
// claim would have: the newest runs, unless a run is alive.
func settleOwed(e *core.Edit, cur *core.Scheduled, c Change) {
	offset := c.Old.Offset()
	first := c.OldSlots.Next(e.Done)
	if first.IsZero() || first.Add(offset).After(cur.Now) {
		return
	}
	newest := newestDue(c.OldSlots, first, cur.Now.Add(-offset))
	onTime := newest.Equal(first) && !cur.Now.After(first.Add(offset+c.Old.MisfireGrace))
	e.Settle = append(e.Settle, catchUp(&c.New, c.OldSlots, first, newest, onTime)...)
	e.Done, e.LastRun = newest, newest
}

// settleRest records slots that have come but whose spread start has not: the
// new content takes over before they could start.
func settleRest(e *core.Edit, now time.Time, s *core.Schedule, slots spec.Slots) {
	settleAll(e, now, s, slots, core.ReasonEdited)
}

// settlePaused records the slots of a pause and settles everything up to now.
func settlePaused(e *core.Edit, cur *core.Scheduled, s *core.Schedule, slots spec.Slots) {
	settleAll(e, cur.Now, s, slots, core.ReasonPaused)
	e.Done = later(e.Done, cur.Now)
}

// settleAll records the unsettled slots up to and including now in one skipped
// row.
func settleAll(e *core.Edit, now time.Time, s *core.Schedule, slots spec.Slots, why core.Reason) {
	first := slots.Next(e.Done)
	if first.IsZero() || first.After(now) {
		return
	}
	last := newestDue(slots, first, now)
	e.Settle = append(e.Settle, skipped(s, slots, first, last, why))
	e.Done = last
}

// fireAt returns when a timer settled up to done acts next.
func fireAt(slots spec.Slots, done time.Time, offset time.Duration) time.Time {
	next := slots.Next(done)
	if next.IsZero() {
		return core.Forever
	}
	return next.Add(offset)
}

// First plans a new schedule: when its timer acts first, settled up to now; or up
// to just before its time for a one-time schedule that is created late, but no
// later than it may be.
func First(s *core.Schedule, slots spec.Spec, now time.Time) (nextAt, done time.Time) {
	done = now
	if slots.OneTime && !slots.Anchor.After(now) {
		done = later(slots.Anchor, now.Add(-s.CatchUpWithin)).Add(-time.Microsecond)
	}
	return fireAt(slots, done, s.Offset()), done
}
