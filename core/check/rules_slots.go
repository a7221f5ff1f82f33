package check

import (
	"slices"
	"time"
)

// everySlot is C1. It also matches the times at which jobs ran with the times at which
// slots wanted them, whatever slot they say they are of.
func (c *docket) everySlot(j *judge) {
	for _, id := range c.schedules {
		var want []window
		for i := range c.periods[id] {
			p := &c.periods[id][i]
			if p.State == "deleted" {
				continue
			}
			slots, err := slotsOf(&p.Schedule, later(p.begun, c.Start), earlier(p.end, c.End))
			if err != nil {
				j.violation("%v", err)
				continue
			}
			for _, slot := range slots {
				if slot.After(p.begun) { // a slot of the very moment may be before it
					want = append(want, c.account(j, p, slot)...)
				}
			}
		}
		c.matchTimes(j, id, want)
	}
}

// account looks for what became of a slot, and returns when its run had to come.
func (c *docket) account(j *judge, p *period, slot time.Time) []window {
	limit := c.by(slot, spreadOf(&p.Schedule)+c.b.Lag)
	if waits(p) {
		limit = c.afterLive(p.ID, limit)
	}
	// What a pause finds owed is settled when the schedule goes on.
	if q := c.pausedBy(p, limit); q != nil {
		limit = c.by(q.ended, c.b.Lag)
	}
	r := c.row(p.ID, slot)
	switch {
	case r != nil:
		j.looked()
	case limit.After(c.End) || limit.After(p.ended) && c.deletedBy(p.ID, limit):
		return nil // still owed, or settled by the deletion
	default:
		j.looked()
		j.violation("slot %s of %s has no row; operation %d made it so, and it was owed by %s", stamp(slot), p.ID, p.op, stamp(limit))
	}
	if r == nil || r.State != "succeeded" || r.Attempt != 1 || r.Cause != "schedule" || p.State == "paused" || waits(p) || len(c.executions[r.ID]) != 1 {
		return nil
	}
	return []window{{slot.Add(-c.b.Skew), limit.Add(c.b.Skew)}}
}

// afterLive returns when a slot that may wait for runs has to have its row, if it had to
// by limit without them.
func (c *docket) afterLive(id string, limit time.Time) time.Time {
	for range c.runs[id] {
		before := limit
		for _, r := range c.runs[id] {
			if r.State == "skipped" || !r.CreatedAt.Before(limit) {
				continue
			}
			if r.FinishedAt == nil {
				return c.End.Add(forever)
			}
			limit = later(limit, c.by(*r.FinishedAt, c.b.Lag))
		}
		if limit.Equal(before) {
			break
		}
	}
	return limit
}

// pausedBy returns the pause that a period is, or that began before t, or nil.
func (c *docket) pausedBy(p *period, t time.Time) *period {
	all := c.periods[p.ID]
	for i := range all {
		q := &all[i]
		if q.State == "paused" && !q.begin.Before(p.begin) && q.begin.Before(t) && q.ended.After(t) {
			return q
		}
	}
	return nil
}

func (c *docket) deletedBy(id string, t time.Time) bool {
	last := c.periods[id][len(c.periods[id])-1]
	return last.State == "deleted" && !last.begin.After(t)
}

// matchTimes compares when jobs ran with when they had to.
func (c *docket) matchTimes(j *judge, id string, want []window) {
	var ran []time.Time
	for _, r := range c.runs[id] {
		if r.Cause == "schedule" || r.Cause == "catch_up" {
			for _, e := range c.executions[r.ID] {
				ran = append(ran, e.Begin)
			}
		}
	}
	if missed := unmatched(want, ran); len(missed) > 0 {
		j.violation("%s: no job ran in the window %s to %s that was not another slot's", id, stamp(missed[0].open), stamp(missed[0].close))
	}
}

// misfires is C2.
func (c *docket) misfires(j *judge) {
	for _, id := range c.schedules {
		rows := c.runs[id]
		for i := range rows {
			r := &rows[i]
			p := c.at(id, r.CreatedAt)
			switch {
			case p == nil:
			case r.State == "skipped" && r.Reason == "misfire":
				j.looked()
				c.missed(j, p, r, rows[i+1:])
			case r.State != "skipped" && (r.Cause == "schedule" || r.Cause == "catch_up"):
				j.looked()
				c.inTime(j, p, r)
			}
		}
	}
}

// missed judges a row of missed slots.
func (c *docket) missed(j *judge, p *period, r *Run, rest []Run) {
	first := r.ScheduledFor
	if r.RangeFrom != nil {
		first = *r.RangeFrom
	}
	grace, _ := parseDuration(p.MisfireGrace) // a duration that the API wrote
	if !c.faulty(first, r.ScheduledFor.Add(grace+spreadOf(&p.Schedule))) && c.at(p.ID, first) == p {
		j.violation("%s was missed, at %s, without a fault", r.ID, stamp(r.ScheduledFor))
	}
	if p.Misfire == "run_once" && (!followed(p, rest, c.End) || c.newest(p, r)) {
		j.violation("%s: the newest missed slot is to run, and %s is, made at %s", r.ID, stamp(r.ScheduledFor), stamp(r.CreatedAt))
	}
	if p.Misfire == "run_all" && c.count(p, r) <= 0 {
		j.violation("%s was missed under run_all, within the cap of %d", r.ID, p.MisfireCap)
	}
}

// newest reports whether a row of missed slots, when it was made, had the newest of all
// in it.
func (c *docket) newest(p *period, r *Run) bool {
	later, err := slotsOf(&p.Schedule, r.ScheduledFor.Add(time.Nanosecond), r.CreatedAt)
	return err == nil && len(later) == 0 && c.at(p.ID, r.ScheduledFor) == p
}

// inTime judges whether a run that is late beyond its grace says so, and is one that is
// to come all the same.
func (c *docket) inTime(j *judge, p *period, r *Run) {
	grace, _ := parseDuration(p.MisfireGrace)
	late := r.CreatedAt.Sub(r.ScheduledFor) - spreadOf(&p.Schedule) - grace
	switch {
	case waits(p) || c.at(p.ID, r.ScheduledFor) != p:
	case r.Cause == "schedule" && late > c.b.Skew:
		j.violation("%s, of %s, was made at %s, beyond its grace of %s, as if it were on time", r.ID, stamp(r.ScheduledFor), stamp(r.CreatedAt), grace)
	case r.Cause == "catch_up" && p.Misfire == "skip":
		j.violation("%s, of %s, was made at %s although what is missed is to be skipped", r.ID, stamp(r.ScheduledFor), stamp(r.CreatedAt))
	}
}

// followed reports whether the next row of the schedule's own slots is a run, or would
// have been but for what meets any run. A newest slot that waits for a run gives way to
// the next one, and is missed then.
func followed(p *period, rest []Run, end time.Time) bool {
	for _, r := range rest {
		if r.Cause == "manual" || r.Cause == "backfill" || r.Reason == "misfire" && waits(p) {
			continue
		}
		return r.Reason != "misfire"
	}
	return p.end.Before(end) // somebody changed it before it could
}

// count returns how many slots of the missed block were beyond the cap.
func (c *docket) count(p *period, r *Run) int {
	if p.MisfireCap == 0 {
		return 1 // not known
	}
	first := r.ScheduledFor
	if r.RangeFrom != nil {
		first = *r.RangeFrom
	}
	slots, err := slotsOf(&p.Schedule, first, r.CreatedAt)
	if err != nil {
		return 1
	}
	return len(slots) - p.MisfireCap
}

// neverEarly is C3.
func (c *docket) neverEarly(j *judge) {
	for i, e := range c.Executions {
		j.looked()
		if e.Begin.Before(e.Slot.Add(-c.b.Skew)) {
			j.violation("execution %d of %s began at %s, before its slot %s", i, e.Run, stamp(e.Begin), stamp(e.Slot))
		}
		if r := c.byID[e.Run]; r != nil && !r.ScheduledFor.Equal(e.Slot) {
			j.violation("execution %d of %s says slot %s, its row %s", i, e.Run, stamp(e.Slot), stamp(r.ScheduledFor))
		}
	}
	for _, r := range c.Runs {
		if r.Cause == "schedule" && r.CreatedAt.Before(r.ScheduledFor.Add(-c.b.Skew)) {
			j.violation("%s was made at %s, before its slot", r.ID, stamp(r.CreatedAt))
		}
	}
}

// lag is C12: of starts that no fault was near, 95 in 100 are within the bound. What is
// caught up without a fault is late like any other.
func (c *docket) lag(j *judge) {
	var lags []time.Duration
	for _, r := range c.Runs {
		p := c.at(r.ScheduleID, r.ScheduledFor)
		if r.Cause != "schedule" && r.Cause != "catch_up" || p == nil || len(c.executions[r.ID]) == 0 || spreadOf(&p.Schedule) > 0 || waits(p) {
			continue
		}
		if r.Cause == "catch_up" && p.Misfire == "run_all" {
			continue // one after the other
		}
		begin := c.executions[r.ID][0].Begin
		if c.faulty(r.ScheduledFor, begin) || c.at(r.ScheduleID, begin) != p {
			continue
		}
		j.looked()
		lags = append(lags, begin.Sub(r.ScheduledFor))
	}
	if len(lags) == 0 {
		return
	}
	slices.Sort(lags)
	if p95 := lags[(len(lags)-1)*95/100]; p95 > c.b.Lag {
		j.violation("of %d starts 95 in 100 came within %s, the bound is %s", len(lags), p95, c.b.Lag)
	}
}

// waits reports whether a slot may wait for a run before it: also behind slots that are
// caught up in their order.
func waits(p *period) bool {
	return p.Overlap == "queue_one" || p.Overlap == "cancel_previous" || p.Misfire == "run_all" && p.Overlap != "allow"
}

// spread is C13.
func (c *docket) spread(j *judge) {
	for _, id := range c.schedules {
		least, most := time.Duration(forever), time.Duration(0)
		var width time.Duration
		for _, r := range c.runs[id] {
			p := c.at(id, r.ScheduledFor)
			if p == nil || r.Cause != "schedule" || r.State == "skipped" || spreadOf(&p.Schedule) == 0 || waits(p) || c.faulty(r.ScheduledFor, r.CreatedAt) {
				continue
			}
			j.looked()
			width = spreadOf(&p.Schedule)
			by := r.CreatedAt.Sub(r.ScheduledFor)
			least, most = min(least, by), max(most, by)
			if by >= width+c.b.Lag {
				j.violation("%s came %s after its slot, the window is %s", r.ID, by, width)
			}
		}
		if most > 0 && most-least > c.b.Lag {
			j.violation("%s: runs come from %s to %s after their slots; the offset is to be stable", id, least, most)
		}
	}
}

// silence is C14.
func (c *docket) silence(j *judge) {
	j.v.Evidence = []string{"no alerts are among the logs"}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

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
