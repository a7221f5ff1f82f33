package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// period is a time in which a schedule had one content and state. It began some time
// from begin to begun, and ended from end to ended.
type period struct {
	Schedule
	begin, begun time.Time
	end, ended   time.Time
	op           int // the operation that began it
}

// whole reports whether an instant lies in the period for certain.
func (p *period) whole(t time.Time) bool { return !t.Before(p.begun) && t.Before(p.end) }

// docket is a history, sorted for the rules.
type docket struct {
	*History
	b          Bounds
	schedules  []string // in the order of their creation
	periods    map[string][]period
	runs       map[string][]Run       // of a schedule, by slot
	executions map[string][]Execution // of a run, by fence
	byID       map[string]*Run
}

const forever = 100 * 365 * 24 * time.Hour

func newCase(h *History, b Bounds) (*docket, error) {
	c := &docket{History: h, b: b, periods: map[string][]period{}, runs: map[string][]Run{}, executions: map[string][]Execution{}, byID: map[string]*Run{}}
	if !h.Start.Before(h.End) {
		return nil, fmt.Errorf("the history ends at %s, before it starts", h.End)
	}
	ops := make([]int, len(h.Operations))
	for i := range ops {
		ops[i] = i
	}
	slices.SortStableFunc(ops, func(a, b int) int { return h.Operations[a].Begin.Compare(h.Operations[b].Begin) })
	for _, i := range ops {
		if err := c.operate(i); err != nil {
			return nil, err
		}
	}
	for i := range h.Runs {
		r := &h.Runs[i]
		c.runs[r.ScheduleID] = append(c.runs[r.ScheduleID], *r)
		c.byID[r.ID] = r
	}
	for id := range c.runs {
		slices.SortFunc(c.runs[id], func(a, b Run) int { return a.ScheduledFor.Compare(b.ScheduledFor) })
	}
	for _, e := range h.Executions {
		c.executions[e.Run] = append(c.executions[e.Run], e)
	}
	for id := range c.executions {
		slices.SortFunc(c.executions[id], func(a, b Execution) int { return cmp.Or(cmp.Compare(a.Fence, b.Fence), a.Begin.Compare(b.Begin)) })
	}
	return c, nil
}

// operate lets an operation end the period before and begin one.
func (c *docket) operate(i int) error {
	op := &c.Operations[i]
	if op.Answered && !op.OK || !slices.Contains([]string{Create, Edit, Pause, Resume, Delete}, op.Kind) {
		return nil
	}
	all := c.periods[op.Schedule]
	next := period{begin: op.Begin, begun: op.End, end: c.End.Add(forever), ended: c.End.Add(forever), op: i}
	if !op.Answered {
		next.begun = c.End.Add(forever) // perhaps never
	}
	switch {
	case op.Kind == Create:
		c.schedules = append(c.schedules, op.Schedule)
	case len(all) == 0:
		return fmt.Errorf("operation %d: schedule %s was not created before", i, op.Schedule)
	default:
		if before := &c.Operations[all[len(all)-1].op]; before.End.After(op.Begin) {
			next.begun = c.End.Add(forever) // which of the two was first cannot be seen
		}
		next.Schedule = all[len(all)-1].Schedule
		all[len(all)-1].end, all[len(all)-1].ended = op.Begin, next.begun
	}
	if op.After != nil {
		next.Schedule = *op.After
	}
	switch op.Kind {
	case Pause:
		next.State = "paused"
	case Delete:
		next.State = "deleted"
	case Resume:
		next.State = "active"
	}
	c.periods[op.Schedule] = append(all, next)
	return nil
}

// at returns the period that a schedule is in at an instant for certain, or nil.
func (c *docket) at(id string, t time.Time) *period {
	all := c.periods[id]
	for i := range all {
		if all[i].whole(t) {
			return &all[i]
		}
	}
	return nil
}

// by returns until when something that is due at t has to have happened: after bound,
// or after the recovery from each fault that is near.
func (c *docket) by(t time.Time, bound time.Duration) time.Time {
	limit := t.Add(bound)
	for range c.Faults {
		for _, f := range c.Faults {
			if healed := f.Heal.Add(c.b.Recovery); !f.Begin.After(limit) && f.Heal.After(t) && healed.After(limit) {
				limit = healed
			}
		}
	}
	return limit
}

// faulty reports whether a fault was under way, or its recovery, between two instants.
func (c *docket) faulty(from, to time.Time) bool {
	return slices.ContainsFunc(c.Faults, func(f Fault) bool { return !f.Begin.After(to) && !f.Heal.Add(c.b.Recovery).Before(from) })
}

// spreadOf returns how far starts of a schedule may come after their slots.
func spreadOf(s *Schedule) time.Duration {
	if d, err := parseDuration(s.Window); err == nil && d > 0 {
		return d
	}
	switch {
	case s.Exact:
	case slices.Contains([]string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually"}, s.Spec):
		return time.Hour
	}
	return 0
}

// row returns the row that stands for a slot, alone or with others, or nil.
func (c *docket) row(id string, slot time.Time) *Run {
	for i := range c.runs[id] {
		r := &c.runs[id][i]
		switch {
		case r.Cause == "manual" || r.Cause == "backfill":
		case r.ScheduledFor.Equal(slot):
			return r
		case r.RangeFrom != nil && !slot.Before(*r.RangeFrom) && slot.Before(r.ScheduledFor):
			return r
		}
	}
	return nil
}
