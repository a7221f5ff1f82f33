package plan

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// Change says how an edit turns one content of a schedule into another.
type Change struct {
	Old, New           core.Schedule
	OldSlots, NewSlots spec.Slots
	// SlotsChanged is set when spec, anchor, time zone, a DST policy or a bound
	// differ.
	SlotsChanged bool
}

// Edit plans a change of content: first the slots owed so far under the old
// content get their rows, then the timer goes to its next slot under the new
// one. A change of neither slots nor spread leaves the timer where it is. A
// change of Paused pauses or resumes as well.
func Edit(cur *core.Scheduled, c Change) core.Edit {
	e := guard(cur, &c.Old, c.OldSlots)
	e.Schedule, e.OnBusy = c.New, meetEdit(&c.New)
	e.RunsLeft, e.Keep = runsLeft(cur, &c.New), keep(&c.New)
	over := e.RunsLeft != nil && *e.RunsLeft == 0
	moved := c.SlotsChanged || !sameStarts(&c.Old, &c.New) || over != completed(cur)
	if !moved && samePause(&c.Old, &c.New) {
		return e
	}
	e.MoveTimer = true
	switch {
	case completed(cur): // nothing was owed since
		e.Done = later(e.Done, cur.Now)
	case c.Old.PausedAt(cur.Now):
		settlePaused(&e, cur, &c.New, c.OldSlots)
	case moved:
		settleOwed(&e, cur, c)
		if c.SlotsChanged {
			settleRest(&e, cur.Now, &c.New, c.OldSlots)
			e.Done = later(e.Done, cur.Now)
		}
	}
	switch {
	case over:
	case c.New.PausedAt(cur.Now):
		e.NextAt = resumeAt(&c.New, c.NewSlots, e.Done)
	default:
		e.NextAt = fireAt(&c.New, c.NewSlots, e.Done)
	}
	return e
}

// meetEdit returns how a slot that an edit settles meets a live run. An edit
// cannot wait.
func meetEdit(s *core.Schedule) core.OnBusy {
	if s.Overlap == core.OverlapAllow {
		return core.BusyAllow
	}
	return core.BusySkip
}

// completed reports whether the schedule has used up its runs.
func completed(cur *core.Scheduled) bool {
	return cur.Timer.RunsLeft != nil && *cur.Timer.RunsLeft == 0
}

// runsLeft returns how many runs a change of the limit leaves. One that was not
// counted before counts from now.
func runsLeft(cur *core.Scheduled, next *core.Schedule) *int64 {
	if next.Rules.MaxRuns == 0 {
		return nil
	}
	left := next.Rules.MaxRuns
	if cur.Timer.RunsLeft != nil {
		left = max(0, *cur.Timer.RunsLeft+next.Rules.MaxRuns-cur.Schedule.Rules.MaxRuns)
	}
	return &left
}

// keep returns how long a schedule stays once it will not fire again; nil while
// that is only for a pause.
func keep(s *core.Schedule) *time.Duration {
	if s.Paused && s.Rules.PausedUntil.IsZero() {
		return nil
	}
	d := s.Keep()
	return &d
}

// sameStarts reports whether an edit leaves every start where it is.
func sameStarts(a, b *core.Schedule) bool {
	return a.Offset() == b.Offset() && slices.Equal(a.Rules.Calendars, b.Rules.Calendars) && slices.EqualFunc(a.Rules.Exceptions, b.Rules.Exceptions,
		func(x, y core.Exception) bool { return x.Slot.Equal(y.Slot) && x.MoveTo.Equal(y.MoveTo) })
}

func samePause(a, b *core.Schedule) bool {
	return a.Paused == b.Paused && a.Rules.PausedUntil.Equal(b.Rules.PausedUntil)
}

// Pause plans a pause: the timer stops where it is, or acts on the first slot
// after the pause if that has an end. Slots owed by then are recorded with those
// of the pause, when it ends.
func Pause(cur *core.Scheduled, slots spec.Slots, until time.Time, note string) core.Edit {
	e := guard(cur, &cur.Schedule, slots)
	e.Schedule.Paused, e.Schedule.Rules.PausedUntil, e.Schedule.Rules.PauseNote = true, until, note
	e.MoveTimer, e.Keep = true, keep(&e.Schedule)
	if !completed(cur) {
		e.NextAt = resumeAt(&e.Schedule, slots, e.Done)
	}
	return e
}

// resumeAt returns when the timer of a paused schedule acts: on the first slot
// that is not in the pause, which an end of the pause lets come.
func resumeAt(s *core.Schedule, slots spec.Slots, done time.Time) time.Time {
	if s.Rules.PausedUntil.IsZero() {
		return core.Forever
	}
	return fireAt(s, slots, later(done, s.Rules.PausedUntil.Add(-time.Microsecond)))
}

// Resume plans the end of a pause: one skipped row for the slots that passed,
// and on with the first one after now.
func Resume(cur *core.Scheduled, slots spec.Slots) core.Edit {
	e := guard(cur, &cur.Schedule, slots)
	e.Schedule.Paused, e.Schedule.Rules.PausedUntil, e.Schedule.Rules.PauseNote = false, time.Time{}, ""
	e.MoveTimer, e.Keep = true, keep(&e.Schedule)
	if completed(cur) {
		return e
	}
	settlePaused(&e, cur, &cur.Schedule, slots)
	e.NextAt = fireAt(&cur.Schedule, slots, e.Done)
	return e
}

// Delete plans a deletion: one skipped row for the slots that are still owed.
func Delete(cur *core.Scheduled, slots spec.Slots) core.Edit {
	e := guard(cur, &cur.Schedule, slots)
	why := core.ReasonDeleted
	if cur.Schedule.PausedAt(cur.Now) {
		why = core.ReasonPaused
	}
	if completed(cur) {
		return e
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
	if next := slots.Next(settledBy(cur, s, slots)); !next.IsZero() {
		until = earlier(until, s.Effective(next))
	}
	return core.Edit{
		Version: cur.Schedule.Version, Fence: cur.Timer.Fence, ValidUntil: until, Schedule: *s,
		NextAt: core.Forever, Done: cur.Timer.Done, OnBusy: meetEdit(s), RunsLeft: cur.Timer.RunsLeft,
	}
}

// settledBy returns the last slot that is settled or due now, or the mark below
// which all are.
func settledBy(cur *core.Scheduled, s *core.Schedule, slots spec.Slots) time.Time {
	first := slots.Next(cur.Timer.Done)
	if first.IsZero() || s.Effective(first).After(cur.Now) {
		return cur.Timer.Done
	}
	return newestDue(s, slots, first, cur.Now)
}

// settleOwed gives the slots whose effective time has passed their rows, as the
// claim would have: at most the newest of them runs, unless a run is alive.
func settleOwed(e *core.Edit, cur *core.Scheduled, c Change) {
	first := c.OldSlots.Next(e.Done)
	if first.IsZero() || c.Old.Effective(first).After(cur.Now) {
		return
	}
	old := c.Old
	old.Job, old.MaxAttempts = c.New.Job, c.New.MaxAttempts
	if old.Misfire == core.MisfireRunAll {
		old.Misfire = core.MisfireRunOnce // an edit settles them all
	}
	old.Overlap = c.New.Overlap
	if old.Overlap != core.OverlapAllow {
		old.Overlap = core.OverlapSkip // and cannot wait
	}
	b := newBlock(&old, c.OldSlots, first, cur.Now)
	b.choose()
	b.write()
	e.Settle = append(e.Settle, b.rows...)
	for _, r := range b.rows {
		e.Done = r.Slot
		if !r.Skipped {
			e.LastRun = r.Slot
		}
	}
	if last := c.OldSlots.Next(e.Done); !last.IsZero() && !last.After(b.newest) { // more than fits
		e.Settle = append(e.Settle, skipped(&c.New, c.OldSlots, last, b.newest, core.ReasonEdited))
		e.Done = b.newest
	}
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
	last := later(first, slots.Prev(now.Add(1)))
	e.Settle = append(e.Settle, skipped(s, slots, first, last, why))
	e.Done = last
}

// fireAt returns when a timer settled up to done acts next.
func fireAt(s *core.Schedule, slots spec.Slots, done time.Time) time.Time {
	next := slots.Next(done)
	if next.IsZero() {
		return core.Forever
	}
	return s.Effective(next)
}

// First plans a new schedule: when its timer acts first, settled up to now; or up
// to just before its time for a one-time schedule that is created late, but no
// later than it may be.
func First(s *core.Schedule, slots spec.Spec, now time.Time) (nextAt, done time.Time) {
	done = now
	if slots.OneTime && !slots.Anchor.After(now) {
		done = later(slots.Anchor, now.Add(-s.CatchUpWithin)).Add(-time.Microsecond)
	}
	return fireAt(s, slots, done), done
}
