// Package plan decides which slots become runs: pure functions from a schedule,
// its timer and a time to the rows that a claim or an edit is to write.
//
// A plan starts from the timer's settled mark and never from the present, so
// that whoever plans late, twice or after a crash plans the same slots.
package plan

import (
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// maxValidity bounds how long a plan of missed slots may wait for its claim.
const maxValidity = 60 * time.Second

// maxRows bounds the rows of one move. What does not fit is left to the next,
// which follows at once.
const maxRows = 100

// Move plans the claim of a timer as of now, the database's time, or as of the
// timer's fire_at if that is still to come. The move has no rows when no slot
// is due then; it only carries the timer to where it belongs.
func Move(s *core.Schedule, t *core.Timer, slots spec.Slots, now time.Time) core.Move {
	at := later(now, t.FireAt)
	m := core.Move{
		ScheduleID: s.ID, FireAt: t.FireAt, Fence: t.Fence, NextAt: core.Forever, Done: t.Done,
		ValidFrom: t.FireAt, ValidUntil: core.Forever, OnBusy: onBusy(s), Keep: s.Keep(),
	}
	first := slots.Next(t.Done)
	if first.IsZero() || t.RunsLeft != nil && *t.RunsLeft == 0 {
		return m
	}
	if starts := s.Effective(first); starts.After(at) {
		m.NextAt, m.ValidUntil = starts, starts
		return m
	}
	b := newBlock(s, slots, first, at)
	b.parked = t.Parked
	b.left = t.RunsLeft
	b.choose()
	b.write()
	b.fill(&m)
	return m
}

// fill puts what was planned of a block into the move.
func (b *block) fill(m *core.Move) {
	m.Rows = b.rows
	for _, r := range b.rows {
		m.Done = r.Slot
		if !r.Skipped {
			m.LastRun = r.Slot
		}
	}
	m.OnBusy = b.meet(m.LastRun)
	m.CancelLive = m.OnBusy == core.BusyWait && b.s.Overlap == core.OverlapCancelPrevious
	// Not before all that it takes for come has: a clock ahead would have the newest
	// slot give way to one that is to come.
	m.ValidFrom = later(m.FireAt, b.s.Effective(b.newest))
	if next := b.slots.Next(m.Done); !next.IsZero() {
		m.NextAt = b.s.Effective(next)
	}
	m.ValidUntil = b.validUntil(m)
}

// validUntil returns from when on the plan would be another one.
func (b *block) validUntil(m *core.Move) time.Time {
	if b.single() && b.onTime {
		until := b.s.Effective(b.newest).Add(b.s.MisfireGrace)
		if b.parked || m.OnBusy == core.BusyWait {
			until = earlier(until, m.NextAt)
		}
		return b.beforeLate(until, m.LastRun)
	}
	until := b.at.Add(maxValidity)
	if next := b.slots.Next(b.newest); !next.IsZero() {
		until = earlier(until, b.s.Effective(next))
	}
	if b.onTime {
		until = earlier(until, b.s.Effective(b.newest).Add(b.s.MisfireGrace))
	}
	return b.beforeLate(until, m.LastRun)
}

// beforeLate ends a plan when its run would be too late to be useful.
func (b *block) beforeLate(until, run time.Time) time.Time {
	if b.s.CatchUpWithin == 0 || run.IsZero() {
		return until
	}
	return earlier(until, run.Add(b.s.CatchUpWithin+time.Microsecond))
}

// meet returns how the run of a slot meets a live run. A missed slot of run_all
// waits, whatever a slot on time would do: it is to run, in order.
func (b *block) meet(run time.Time) core.OnBusy {
	how := onBusy(b.s)
	switch {
	case run.IsZero() && how == core.BusyWait:
		return core.BusySkip // nothing to wait with
	case how == core.BusySkip && b.s.Misfire == core.MisfireRunAll && !run.IsZero() && (!b.onTime || run.Before(b.newest)):
		return core.BusyWait
	case how == core.BusySkip && b.parked && !run.IsZero():
		return core.BusyWait // an edit of the policy let the slot wait
	}
	return how
}

func onBusy(s *core.Schedule) core.OnBusy {
	switch s.Overlap {
	case core.OverlapAllow:
		return core.BusyAllow
	case core.OverlapQueueOne, core.OverlapCancelPrevious:
		return core.BusyWait
	}
	return core.BusySkip
}

// newestDue returns the last slot that starts by at; first is known to do so.
// Slots start in their order, moved ones included.
func newestDue(s *core.Schedule, slots spec.Slots, first, at time.Time) time.Time {
	newest := later(first, slots.Prev(at.Add(-s.Offset()).Add(1)))
	for range s.Rules.Exceptions { // one moved back lets others wait behind it
		if newest.Equal(first) || !s.Effective(newest).After(at) {
			break
		}
		newest = slots.Prev(newest)
	}
	for range len(s.Rules.Exceptions) { // one moved forward is due before its time
		next := slots.Next(newest)
		if next.IsZero() || s.Effective(next).After(at) {
			break
		}
		newest = next
	}
	return newest
}

// skipped returns the row that stands for the slots from first to last.
func skipped(s *core.Schedule, slots spec.Slots, first, last time.Time, why core.Reason) core.PlannedRow {
	r := core.PlannedRow{
		Slot: last, Skipped: true, Cause: core.CauseSchedule, Reason: why, Queue: s.Job.Queue, MaxAttempts: s.MaxAttempts,
	}
	if first.Before(last) {
		r.RangeFrom, r.RangeCount = first, count(slots, first, last)
	}
	return r
}

// count counts the slots from first to last, up to core.MaxRangeCount.
func count(slots spec.Slots, first, last time.Time) int64 {
	n := int64(1)
	for t := first; t.Before(last) && n < core.MaxRangeCount; n++ {
		t = slots.Next(t)
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
