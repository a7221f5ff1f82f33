// Package explain says what became of a slot and why, and exists because "why did
// it not run?" is what people ask a scheduler: it turns a schedule, the rows of its
// history and the rules of planning into a verdict and a sentence. It is pure.
package explain

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// Verdict is what became of a slot, or will: the state of its run, or one of these.
type Verdict string

// The verdicts of slots without a run.
const (
	Skipped  Verdict = "skipped"   // it is recorded as skipped; the reason says why
	Expected Verdict = "expected"  // it is to come
	WillSkip Verdict = "will_skip" // it is to come and will be recorded as skipped
	Waiting  Verdict = "waiting"   // it waits for a run to end
	Blocked  Verdict = "blocked"   // nothing of the schedule runs
	Due      Verdict = "due"       // its time has come, and nobody has taken it
	Limited  Verdict = "completed" // the schedule was completed before
	Unborn   Verdict = "before_creation"
	Expired  Verdict = "expired" // its row is older than what is kept
	Changed  Verdict = "changed" // the schedule was another one then
	Missing  Verdict = "missing" // a fault: it is settled and has no row
)

// Facts are what is known about a slot.
type Facts struct {
	Cur   *core.Scheduled
	Slots spec.Spec
	Slot  time.Time
	// Row is the first row of a slot at or after Slot, Next the one after it, and
	// Before the last run that was admitted before; nil if there is none.
	Row, Next, Before *core.Run
	// Filled is the state of the newest run that a backfill made of the slot; empty
	// if there is none.
	Filled core.RunState
}

// Slot is what became of a slot and why.
type Slot struct {
	ScheduledFor time.Time
	StartsAt     time.Time // the spread included, or the time that an exception names
	Local        time.Time // ScheduledFor on the zone's clocks
	Verdict      Verdict
	Reason       core.Reason
	Run          *core.Run // its own row, or the range that stands for it
	// Other is the run that stands in for it, that it met or that it waits for.
	Other       *core.Run
	ClockChange string // what a clock change did to it; mostly empty
	Sentence    string
}

// keptAtMost is how long history is kept unless the installation says otherwise.
const keptAtMost = 30 * 24 * time.Hour

// Judge says what became of a slot.
func Judge(f Facts) Slot {
	s := Slot{
		ScheduledFor: f.Slot, StartsAt: f.Cur.Schedule.Effective(f.Slot), Local: f.local(f.Slot),
		ClockChange: f.Slots.Explain(f.Slot),
	}
	switch {
	case stands(f.Row, f.Slot):
		s.Run = f.Row
		f.recorded(&s)
	case f.Slot.After(f.Cur.Timer.Done):
		f.toCome(&s)
	default:
		f.withoutRow(&s)
	}
	if f.Filled != "" {
		s.Sentence += "; a backfill ran it, whose run " + stateWords(f.Filled)
	}
	if s.ClockChange != "" {
		s.Sentence += "; " + s.ClockChange
	}
	return s
}

// stands reports whether a row stands for a slot.
func stands(r *core.Run, slot time.Time) bool {
	return r != nil && (r.Key.Slot.Equal(slot) || !r.RangeFrom.IsZero() && !r.RangeFrom.After(slot) && slot.Before(r.Key.Slot))
}

// recorded explains a slot that has a row.
func (f *Facts) recorded(s *Slot) {
	r := s.Run
	s.Verdict, s.Reason = Verdict(r.State), r.Reason
	if r.State != core.RunSkipped {
		s.Sentence = f.ofRun(r)
		return
	}
	s.Sentence = "skipped: " + f.ofSkip(s)
	if r.RangeCount > 1 {
		s.Sentence += fmt.Sprintf("; one row stands for the %s slots from %s on", rangeCount(r), f.clock(r.RangeFrom))
	}
}

// toCome explains a slot that is not settled.
func (f *Facts) toCome(s *Slot) {
	cur := f.Cur
	why, _ := plan.Judge(&cur.Schedule, f.Slots, f.Slot, later(cur.Now, s.StartsAt))
	if cur.Schedule.Paused && cur.Schedule.Rules.PausedUntil.IsZero() {
		why = core.ReasonPaused // until a resume records it
	}
	live := cur.LastRunLive() && cur.Schedule.Overlap != core.OverlapAllow
	switch {
	case cur.Timer.RunsLeft != nil && *cur.Timer.RunsLeft == 0:
		s.Verdict, s.Sentence = Limited, fmt.Sprintf("does not come: max_runs %d is used up", cur.Schedule.Rules.MaxRuns)
	case why != "":
		s.Verdict, s.Reason, s.Sentence = WillSkip, why, "will be recorded and not run: "+f.skipped(why, f.Slot)
	case cur.MissingCalendar() != "":
		s.Verdict = Blocked
		s.Sentence = fmt.Sprintf("does not run until calendar %s exists and can be read, or is taken from calendars", cur.MissingCalendar())
	case s.StartsAt.After(cur.Now):
		s.Verdict, s.Sentence = Expected, f.start(s)
	case cur.Timer.Parked && live:
		s.Verdict, s.Other = Waiting, f.Before
		s.Sentence = fmt.Sprintf("waits for the run of %s, which %s (overlap %s)", f.clock(cur.Timer.LastRun), stateWords(cur.LastState), cur.Schedule.Overlap)
	default:
		s.Verdict = Due
		s.Sentence = fmt.Sprintf("is due since %s, and no claimer has taken it", f.clock(s.StartsAt))
		if late := cur.Now.Sub(s.StartsAt); late > 10*time.Second {
			s.Sentence += fmt.Sprintf(" for %s; fencepost doctor tells why", core.FormatDuration(late.Truncate(time.Second)))
		}
	}
}

// start says when a slot to come starts, and why then.
func (f *Facts) start(s *Slot) string {
	text := "comes at " + f.clock(s.StartsAt)
	if e := f.Cur.Schedule.Exception(f.Slot); e != nil && !e.MoveTo.IsZero() {
		return text + ", to which an exception moved it"
	}
	if offset := f.Cur.Schedule.Offset(); offset > 0 {
		text += fmt.Sprintf(", %s after the slot: starts are spread over %s, each schedule by its own share",
			core.FormatDuration(offset), core.FormatDuration(f.Cur.Schedule.Spread()))
	}
	return text
}

// withoutRow explains a settled slot that has no row.
func (f *Facts) withoutRow(s *Slot) {
	cur := &f.Cur.Schedule
	switch {
	case !f.Slot.After(cur.CreatedAt):
		s.Verdict, s.Sentence = Unborn, "did not run: the schedule was created later, at "+f.clock(cur.CreatedAt)
	case f.Cur.Now.Sub(f.Slot) > keptAtMost:
		s.Verdict, s.Sentence = Expired, "is forgotten: history is kept for "+core.FormatDuration(keptAtMost)
	case cur.Version > 1 && !f.Slot.After(cur.UpdatedAt):
		s.Verdict = Changed
		s.Sentence = fmt.Sprintf("has no row: the schedule was changed at %s, and this is a slot of what it is now", f.clock(cur.UpdatedAt))
	default:
		s.Verdict, s.Sentence = Missing, "has no row although it is settled, which must not happen: please report it"
	}
}

func (f *Facts) local(t time.Time) time.Time {
	loc, err := cron.LoadLocation(f.Slots.Zone)
	if err != nil {
		loc = time.UTC // not reached: the spec was parsed with it
	}
	return t.In(loc)
}

// clock writes a time as the zone's clocks show it.
func (f *Facts) clock(t time.Time) string {
	layout := "2006-01-02 15:04 -07:00"
	if t.Second() != 0 || t.Nanosecond() != 0 {
		layout = "2006-01-02 15:04:05 -07:00"
	}
	return f.local(t).Format(layout)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
