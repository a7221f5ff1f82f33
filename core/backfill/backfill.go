// Package backfill decides which past slots a backfill runs and when the next of its
// runs may begin, and exists so that these rules are pure functions that store,
// claimer and service share.
package backfill

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// Order is what somebody asks for: slots from From up to To.
type Order struct {
	From, To   time.Time
	Descending bool
	// Rerun asks for slots again that succeeded or are alive.
	Rerun bool
}

// Slots returns the slots that are asked for and settled up to done, oldest first,
// and whether there are more than most.
func Slots(o Order, slots spec.Slots, done time.Time, most int) (all []time.Time, more bool) {
	for slot := slots.Next(o.From.Add(-time.Microsecond)); !slot.IsZero() && slot.Before(o.To) && !slot.After(done); slot = slots.Next(slot) {
		if len(all) == most {
			return all, true
		}
		all = append(all, slot)
	}
	return all, false
}

// Planned is a slot and what becomes of it.
type Planned struct {
	Slot time.Time
	Run  core.BackfillRun // the run to be made; its key is zero if none is
	// Why says why none is: the state of the run that is there.
	Why core.RunState
}

// Plan decides for each slot, in the order in which they are to run. There are the
// rows that exist for them.
func Plan(o Order, slots spec.Slots, all []time.Time, there []core.SlotState) []Planned {
	type found struct {
		keys map[int64]bool // in microseconds
		why  core.RunState
	}
	known := make(map[int64]*found, len(there)) // by slot
	for _, r := range there {
		f := known[r.Slot.UnixMicro()]
		if f == nil {
			f = &found{keys: map[int64]bool{}}
			known[r.Slot.UnixMicro()] = f
		}
		f.keys[r.Key.UnixMicro()] = true
		own := r.Cause == core.CauseBackfill || r.Key.Equal(r.Slot)
		if own && (r.State == core.RunSucceeded || !r.State.Final()) && f.why != core.RunSucceeded {
			f.why = r.State
		}
	}
	out := make([]Planned, len(all))
	for i, slot := range all {
		p := Planned{Slot: slot}
		f := known[slot.UnixMicro()]
		switch {
		case f != nil && f.why != "" && !o.Rerun:
			p.Why = f.why
		default:
			key := slot.Add(time.Microsecond)
			for n := 0; f != nil && f.keys[key.UnixMicro()] && n < 998; n++ {
				key = key.Add(time.Microsecond)
			}
			p.Run = core.BackfillRun{Key: key, CoversFrom: slots.Prev(slot)}
		}
		out[i] = p
	}
	if o.Descending {
		slices.Reverse(out)
	}
	return out
}

// Step returns how a backfill moves on, and whether it does: what has ended is
// counted, and as many of the next runs are made as may be alive beside the others.
func Step(d core.DueBackfill) (core.BackfillStep, bool) {
	b := d.Backfill
	live := b.Count()
	s := core.BackfillStep{ID: b.ID, Fence: b.Fence, State: core.BackfillRunning, Within: d.Within, Admitted: b.Admitted}
	if room := b.Concurrency - len(live); room > 0 && !d.Gone {
		s.Admit = d.Next[:min(room, len(d.Next))]
	}
	for _, r := range s.Admit {
		live = append(live, r.Key)
	}
	s.Admitted += len(s.Admit)
	s.Succeeded, s.Dead, s.Canceled, s.Live = b.Succeeded, b.Dead, b.Canceled, live
	switch {
	case d.Gone:
		s.State = core.BackfillCanceled
	case len(live) == 0 && s.Admitted >= b.Total:
		s.State = core.BackfillFinished
	}
	return s, s.State != core.BackfillRunning || len(s.Admit) > 0 || len(live) != len(b.Live)
}
