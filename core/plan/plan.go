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

// Move plans the claim of a timer as of now, the database's time, or as of the
// timer's fire_at if that is still to come. The move has no rows when no slot
// is due then; it only carries the timer to where it belongs.
func Move(s *core.Schedule, t *core.Timer, slots spec.Slots, now time.Time) core.Move {
	at := later(now, t.FireAt)
	offset := s.Offset()
	m := core.Move{
		ScheduleID: s.ID, FireAt: t.FireAt, Fence: t.Fence, NextAt: core.Forever, Done: t.Done,
		ValidFrom: t.FireAt, ValidUntil: core.Forever, OnBusy: onBusy(s),
	}
	first := slots.Next(t.Done)
	if first.IsZero() {
		return m
	}
	if first.Add(offset).After(at) {
		m.NextAt, m.ValidUntil = first.Add(offset), first.Add(offset)
		return m
	}
	newest := newestDue(slots, first, at.Add(-offset))
	onTime := newest.Equal(first) && !at.After(first.Add(offset+s.MisfireGrace))
	m.Rows = catchUp(s, slots, first, newest, onTime)
	m.Done, m.LastRun = newest, newest
	m.ValidFrom = newest.Add(offset)
	if next := slots.Next(newest); !next.IsZero() {
		m.NextAt = next.Add(offset)
	}
	if onTime {
		m.ValidUntil = first.Add(offset + s.MisfireGrace)
	} else {
		m.ValidUntil = earlier(m.NextAt, at.Add(maxValidity))
	}
	return m
}

func onBusy(s *core.Schedule) core.OnBusy {
	if s.Overlap == core.OverlapAllow {
		return core.BusyAllow
	}
	return core.BusySkip
}

// newestDue returns the last slot that is not after limit; first is known to be
// one.
func newestDue(slots spec.Slots, first, limit time.Time) time.Time {
	newest := slots.Prev(limit.Add(1))
	if newest.Before(first) {
		return first
	}
	return newest
}

// catchUp returns the rows of the due slots from first to newest under misfire
// run_once: a run on the newest, one skipped row for all older ones.
func catchUp(s *core.Schedule, slots spec.Slots, first, newest time.Time, onTime bool) []core.PlannedRow {
	run := core.PlannedRow{Slot: newest, Cause: core.CauseSchedule, Queue: s.Job.Queue, MaxAttempts: s.MaxAttempts}
	if !onTime {
		run.Cause = core.CauseCatchUp
	}
	if !first.Before(newest) {
		return []core.PlannedRow{run}
	}
	return []core.PlannedRow{skipped(s, slots, first, slots.Prev(newest), core.ReasonMisfire), run}
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
