package simtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/check"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// attempts returns what an executor is at, in an order that does not change.
func (e *executor) attempts() []*attempt {
	var out []*attempt
	for _, a := range e.live {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *attempt) int { return a.entry - b.entry })
	return out
}

// texts are the specs of the schedules: each some times in a history, or at the clock
// change that some histories cross.
var texts = []string{"* * * * *", "*/2 * * * *", "*/20 * * * * *", "every 30s", "every 1m", "30 2 * * *", "0-59 2 * * *", "0,30 1-4 * * *"}

// plotClients lays out what clients of the API do: they make schedules, and change them
// meanwhile.
func (s *sim) plotClients() {
	for n := range 5 {
		client := s.node(fmt.Sprintf("client%d", n))
		s.after(s.between(0, time.Second), nil, func() { s.create(client) })
	}
	for range 4 + s.rng.IntN(10) {
		client := s.node("client")
		s.after(s.between(20*time.Second, trouble), nil, func() { s.change(client) })
	}
	for range 6 {
		s.after(s.between(time.Minute, trouble+quiet-time.Second), nil, s.walk)
	}
}

func (s *sim) pick(of ...string) string { return of[s.rng.IntN(len(of))] }

func (s *sim) create(n *node) {
	c := core.Schedule{
		Region: region, TenantID: s.tenant, ID: s.id(), Spec: s.pick(texts...), TimeZone: s.pick("", "Europe/Berlin"),
		Job: core.Job{Queue: jobs, Payload: []byte(`{}`)}, MaxAttempts: 2 + s.rng.IntN(3), MisfireGrace: 10 * time.Second,
		Misfire: core.Misfire(s.pick("run_once", "run_once", "skip", "run_all")),
		Overlap: core.Overlap(s.pick("skip", "skip", "allow", "queue_one", "cancel_previous")),
	}
	c.Name, c.Rules.MisfireCap, c.Anchor = c.ID.String(), 20, s.anchor(c.Spec)
	if s.rng.IntN(3) == 0 {
		c.Window = 10 * time.Second
	}
	slots, err := spec.Parse(&c, s.now)
	if err != nil {
		s.err = err
		return
	}
	c.Spec, c.Anchor = slots.Text, slots.Anchor
	op := s.operation(check.Create, c.ID)
	n.call(func() error {
		next, done := plan.First(&c, slots, s.now)
		return s.db.Create(s.ctx, c, next, done)
	}, func(err error) {
		if errors.Is(err, core.ErrUnknownOutcome) || errors.Is(err, errGone) {
			err = nil // it is sent again under the same id until it is answered; here at once
			next, done := plan.First(&c, slots, s.now)
			if err := s.db.Create(s.ctx, c, next, done); err != nil {
				s.err = err
			}
		}
		s.answer(op, err, &c)
		s.schedules = append(s.schedules, c.ID)
	})
}

// anchor returns where an interval counts from; other specs have none.
func (s *sim) anchor(text string) time.Time {
	if strings.HasPrefix(text, "every ") {
		return s.began.Truncate(time.Minute)
	}
	return time.Time{}
}

// operation begins one; answer ends it.
func (s *sim) operation(kind string, id uuid.UUID) int {
	s.h.Operations = append(s.h.Operations, check.Operation{Kind: kind, Schedule: id.String(), Begin: s.now})
	return len(s.h.Operations) - 1
}

func (s *sim) answer(op int, err error, after *core.Schedule) {
	o := &s.h.Operations[op]
	o.End = s.now
	o.Answered = !errors.Is(err, core.ErrUnknownOutcome)
	o.OK = err == nil
	if after != nil && (o.OK || !o.Answered) {
		o.After = show(after)
	}
}

// show returns a schedule as the API shows it.
func show(c *core.Schedule) *check.Schedule {
	out := &check.Schedule{
		ID: c.ID.String(), Name: c.Name, Spec: c.Spec, TimeZone: c.TimeZone, Misfire: string(c.Misfire), Overlap: string(c.Overlap),
		MisfireGrace: core.FormatDuration(c.MisfireGrace), MisfireCap: c.Rules.MisfireCap, Window: core.FormatDuration(c.Window), Exact: c.Exact, State: "active",
	}
	if c.Paused {
		out.State = "paused"
	}
	if !c.Anchor.IsZero() {
		out.Anchor = &c.Anchor
	}
	return out
}

// change lets a client change a schedule: it reads, plans, and writes under the guard
// of what it read, again if that has moved on.
func (s *sim) change(n *node) {
	if len(s.schedules) == 0 {
		return
	}
	id := s.schedules[s.rng.IntN(len(s.schedules))]
	kind := s.pick(check.Edit, check.Edit, check.Pause, check.Resume, check.Trigger, check.Trigger, check.Delete)
	if kind == check.Delete && s.rng.IntN(3) > 0 {
		kind = check.Edit
	}
	s.try(n, kind, id, s.operation(kind, id), 5)
}

func (s *sim) try(n *node, kind string, id uuid.UUID, op, rounds int) {
	var cur core.Scheduled
	n.call(func() (err error) {
		cur, err = s.db.Get(s.ctx, s.tenant, id)
		return err
	}, func(err error) {
		if err != nil { // nothing was written so far
			s.answer(op, errGone, nil)
			return
		}
		write, after, err := s.write(kind, &cur)
		if err != nil {
			s.answer(op, err, nil)
			return
		}
		n.call(write, func(err error) {
			if errors.Is(err, core.ErrChanged) && rounds > 0 {
				s.try(n, kind, id, op, rounds-1)
				return
			}
			s.answer(op, err, after)
		})
	})
}

var errNothing = core.Invalid("state", "nothing to do")

// write plans a change and returns the statement that carries it out.
func (s *sim) write(kind string, cur *core.Scheduled) (func() error, *core.Schedule, error) {
	slots, err := spec.Of(cur)
	if err != nil {
		return nil, nil, err
	}
	apply := func(e core.Edit) (func() error, *core.Schedule, error) {
		return func() error { return s.db.Apply(s.ctx, s.tenant, e) }, &e.Schedule, nil
	}
	next := cur.Schedule
	switch kind {
	case check.Edit:
		next.Spec, next.Anchor = s.pick(texts...), time.Time{}
		next.Anchor = s.anchor(next.Spec)
		if next.Overlap != core.OverlapAllow {
			next.Overlap = core.Overlap(s.pick("skip", "queue_one", "allow"))
		}
		after, err := spec.Parse(&next, cur.Now)
		if err != nil {
			return nil, nil, err
		}
		next.Spec, next.Anchor = after.Text, after.Anchor
		return apply(plan.Edit(cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: after, SlotsChanged: true}))
	case check.Pause:
		if cur.Schedule.Paused {
			return nil, nil, errNothing
		}
		return apply(plan.Pause(cur, slots, time.Time{}, ""))
	case check.Resume:
		if !cur.Schedule.Paused {
			return nil, nil, errNothing
		}
		next.Paused = false
		return apply(plan.Edit(cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: slots}))
	case check.Trigger:
		m := core.Manual{ScheduleID: next.ID, Fence: cur.Timer.Fence, Slot: cur.Now.Truncate(time.Millisecond).Add(time.Microsecond)}
		return func() error {
			_, err := s.db.Trigger(s.ctx, s.tenant, m)
			return err
		}, nil, nil
	}
	e := plan.Delete(cur, slots)
	return func() error { return s.db.Delete(s.ctx, s.tenant, e) }, nil, nil
}

// walk reads the pages of a schedule's history, a few rows each, while runs are made.
func (s *sim) walk() {
	if len(s.schedules) == 0 {
		return
	}
	id := s.schedules[s.rng.IntN(len(s.schedules))]
	page := check.Page{Schedule: id.String(), Begin: s.now}
	var turn func(before time.Time)
	turn = func(before time.Time) {
		got, err := s.db.Runs(s.ctx, s.tenant, id, core.RunQuery{Limit: 3, Before: before})
		if err != nil {
			return // deleted
		}
		for _, r := range got.Items {
			page.Runs = append(page.Runs, r.Key.ID())
		}
		if got.More {
			s.after(s.between(0, 500*time.Millisecond), nil, func() { turn(got.Last) })
			return
		}
		s.h.Pages = append(s.h.Pages, page)
	}
	turn(time.Time{})
}

// dump reads all runs.
func (s *sim) dump() error {
	ids := slices.Clone(s.schedules)
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range ids {
		q := core.RunQuery{Limit: 1000}
		for more := true; more; {
			got, err := s.db.Runs(s.ctx, s.tenant, id, q)
			if errors.Is(err, core.ErrNotFound) {
				break
			}
			if err != nil {
				return err
			}
			for i := range got.Items {
				s.h.Runs = append(s.h.Runs, row(&got.Items[i]))
			}
			more, q.Before = got.More, got.Last
		}
	}
	return nil
}

// row returns a run as the API shows it.
func row(r *core.Run) check.Run {
	return check.Run{
		ID: r.Key.ID(), ScheduleID: r.Key.ScheduleID.String(), ScheduledFor: r.Key.Slot, State: string(r.State), Cause: string(r.Cause),
		Reason: string(r.Reason), RangeFrom: known(r.RangeFrom), Attempt: r.Attempt, MaxAttempts: r.MaxAttempts, Fence: r.Fence,
		CreatedAt: r.CreatedAt, StartedAt: known(r.StartedAt), FinishedAt: known(r.FinishedAt), Result: r.Result,
	}
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
