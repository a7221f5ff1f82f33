package plan

import (
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// maxStretches bounds how often a block may change between what may run and what
// may not; behind the last change nothing is looked at before the next move.
const maxStretches = 1000

// block is the due slots of a schedule, planned together.
type block struct {
	s             *core.Schedule
	slots         spec.Slots
	at            time.Time
	first, newest time.Time
	// onTime is set while the newest slot is within its grace.
	onTime bool
	// parked is set when the first slot waits for a run to end.
	parked bool
	left   *int64

	stretches []stretch
	runs      []time.Time // slots that are to run, ascending
	spare     core.Reason // why the others do not
	rows      []core.PlannedRow
}

// stretch is neighboring slots that share their fate: skipped for a reason, or
// free to run.
type stretch struct {
	first, last time.Time
	why         core.Reason
}

func newBlock(s *core.Schedule, slots spec.Slots, first, at time.Time) *block {
	b := &block{s: s, slots: slots, at: at, first: first, spare: core.ReasonMisfire}
	b.newest = newestDue(s, slots, first, at)
	b.onTime = at.Before(s.Effective(b.newest).Add(s.MisfireGrace))
	slot := first
	for n := 0; n < maxStretches && !slot.IsZero() && !slot.After(b.newest); n++ {
		why, until := Judge(s, slots, slot, at)
		last := b.newest
		if !until.IsZero() && !until.After(b.newest) {
			last = later(slot, slots.Prev(until))
		}
		b.add(stretch{slot, last, why})
		slot = slots.Next(last)
	}
	return b
}

// add adds the stretch that follows the others; one that shares its fate with the
// one before is a part of it.
func (b *block) add(s stretch) {
	if n := len(b.stretches); n > 0 && b.stretches[n-1].why == s.why {
		b.stretches[n-1].last = s.last
		return
	}
	b.stretches = append(b.stretches, s)
}

// single reports whether there is one due slot only.
func (b *block) single() bool { return b.first.Equal(b.newest) }

// choose decides which of the block's free slots are to run.
func (b *block) choose() {
	oldest, newest := b.free()
	switch {
	case newest.IsZero():
	case b.s.Misfire == core.MisfireRunAll:
		b.chooseAll()
	case b.parked && b.s.Overlap == core.OverlapCancelPrevious:
		b.spare, b.runs = core.ReasonOverlap, []time.Time{newest}
	case b.parked:
		b.spare, b.runs = core.ReasonOverlap, []time.Time{oldest}
	case b.s.Misfire == core.MisfireSkip && !(b.onTime && newest.Equal(b.newest)):
	default:
		b.runs = []time.Time{newest}
	}
}

// free returns the oldest and the newest slot that may run; zero if none may. A
// block with too many changes has none: what is newest is not known.
func (b *block) free() (oldest, newest time.Time) {
	if n := len(b.stretches); !b.stretches[n-1].last.Equal(b.newest) {
		return time.Time{}, time.Time{}
	}
	for _, s := range b.stretches {
		if s.why != "" {
			continue
		}
		if oldest.IsZero() {
			oldest = s.first
		}
		newest = s.last
	}
	return oldest, newest
}

// chooseAll takes the newest slots up to the cap, and of these as many of the
// oldest as go into one move: planning the rest again comes to the same.
func (b *block) chooseAll() {
	limit := int64(b.s.Rules.MisfireCap)
	if limit == 0 {
		limit = core.DefaultMisfireCap
	}
	if b.left != nil {
		limit = min(limit, *b.left)
	}
	var newestFirst []time.Time
	for i := len(b.stretches) - 1; i >= 0; i-- {
		s := &b.stretches[i]
		for slot := s.last; s.why == "" && !slot.Before(s.first) && int64(len(newestFirst)) < limit; slot = b.slots.Prev(slot) {
			newestFirst = append(newestFirst, slot)
		}
	}
	take := maxRows
	if b.s.Overlap != core.OverlapAllow {
		take = 1 // one at a time
	}
	for i := len(newestFirst) - 1; i >= 0 && len(b.runs) < take; i-- {
		b.runs = append(b.runs, newestFirst[i])
	}
}

// write makes the rows, oldest first, up to the bound of a move. A run that may
// have to wait comes first in its move: what waits is then the first slot that
// is owed, which needs no note anywhere.
func (b *block) write() {
	runs := b.runs
	waits := len(runs) > 0 && b.meet(runs[0]) == core.BusyWait
	for _, s := range b.stretches {
		if s.why != "" {
			b.skip(s.first, s.last, s.why)
			continue
		}
		from := s.first
		for len(runs) > 0 && !runs[0].After(s.last) {
			run := runs[0]
			if from.Before(run) {
				b.skip(from, b.slots.Prev(run), b.spare)
			}
			if waits && len(b.rows) > 0 || len(b.rows) >= maxRows {
				b.rows = b.rows[:min(len(b.rows), maxRows)]
				return
			}
			b.rows = append(b.rows, b.run(run))
			from, runs = b.slots.Next(run), runs[1:]
		}
		if len(runs) == 0 && len(b.runs) > 0 && b.s.Misfire == core.MisfireRunAll && b.runs[len(b.runs)-1].Before(b.lastFree()) {
			return // the next ones are to run as well
		}
		if !from.IsZero() && !from.After(s.last) {
			b.skip(from, s.last, b.spare)
		}
	}
	b.rows = b.rows[:min(len(b.rows), maxRows)]
}

// lastFree returns the newest slot that may run.
func (b *block) lastFree() time.Time {
	_, newest := b.free()
	return newest
}

func (b *block) skip(first, last time.Time, why core.Reason) {
	b.rows = append(b.rows, skipped(b.s, b.slots, first, last, why))
}

// run returns the row of a slot that is to run.
func (b *block) run(slot time.Time) core.PlannedRow {
	r := core.PlannedRow{Slot: slot, Cause: core.CauseSchedule, Queue: b.s.Job.Queue, MaxAttempts: b.s.MaxAttempts}
	// A slot that waited is no misfire; under run_all nobody can tell whether it was
	// missed as well, and late is late.
	waited := b.parked && slot.Equal(b.first) && b.s.Misfire != core.MisfireRunAll
	if !waited && !(b.onTime && slot.Equal(b.newest)) {
		r.Cause = core.CauseCatchUp
	}
	if b.s.CatchUpWithin > 0 {
		r.LateAt = slot.Add(b.s.CatchUpWithin)
	}
	r.Within = b.s.Rules.TotalTimeout
	if e := b.s.Exception(slot); e != nil {
		r.Payload = e.Payload
	}
	return r
}
