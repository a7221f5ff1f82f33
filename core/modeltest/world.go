// Package modeltest looks at every order in which a few nodes can take a few steps, and
// exists because chance, however often, does not: the simulations of core/simtest meet
// likely orders many times and unlikely ones never.
//
// The world is small: two claimers, two executors, one schedule of two slots, one client
// that pauses or triggers, and a queue that can double a message. One executor may
// crash, and one may freeze past its lease and thaw. The steps are the statements of
// the reference store and the planner of production. A state is reached by a path of
// steps from the beginning, which is played again; states that are the same are
// looked at once.
package modeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

const (
	tick          = 10 * time.Second
	lease         = 2 * tick
	dispatchLease = 2 * tick
	slots         = 2 // at the beginning, and two ticks later
	lastTick      = 6
	maxAttempts   = 2
	maxMessages   = 3
)

var began = time.Date(2027, 6, 9, 12, 0, 0, 0, time.UTC)

// Scope is what is looked at.
type Scope struct {
	Overlap core.Overlap
	// Trigger has the client trigger a run; otherwise it pauses.
	Trigger bool
	// Spoil, if not nil, stands between the nodes and the store.
	Spoil func(Store) Store
}

// Store is what the nodes need of a store.
type Store interface {
	core.TimerStore
	core.SweepStore
	core.RunStore
	core.ScheduleStore
}

// world is a state, as a path of steps made it.
type world struct {
	ctx    context.Context
	scope  Scope
	now    time.Time
	base   *memory.Store
	db     Store
	tenant uuid.UUID
	id     uuid.UUID
	slots  spec.Spec

	claimers  [2]claimer
	executors [2]executor
	queue     []core.Message
	client    client
	// What can still go wrong.
	crashes, freezes, doubles int
	tokens                    byte
	// wrong is the rule that was broken, with what did it.
	wrong string
	// paused is when the pause was answered.
	paused time.Time
}

type claimer struct {
	move   *core.Move
	unsent []core.Message
}

type executor struct {
	crashed, frozen bool
	run             *core.Started
	trust           time.Time
}

type client struct {
	cur  *core.Scheduled
	done bool
}

// Now, Sleep and After make the world the store's clock.
func (w *world) Now() time.Time                           { return w.now }
func (*world) Sleep(context.Context, time.Duration) error { panic("a model does not wait") }
func (*world) After(time.Duration) <-chan time.Time       { panic("a model does not wait") }
func (w *world) fail(rule, format string, args ...any) {
	w.wrong = rule + ": " + fmt.Sprintf(format, args...)
}
func (w *world) must(err error) {
	if err != nil && w.wrong == "" {
		w.fail("error", "%v", err)
	}
}
func (w *world) token() uuid.UUID { w.tokens++; return uuid.UUID{w.tokens} }

func newWorld(ctx context.Context, scope Scope) *world {
	w := &world{ctx: ctx, scope: scope, now: began, tenant: uuid.UUID{1}, id: uuid.UUID{2}, crashes: 1, freezes: 1, doubles: 1}
	w.open(memory.New("local", w))
	s := core.Schedule{
		Region: "local", TenantID: w.tenant, ID: w.id, Name: "s", Spec: "every 20s", Anchor: began, Overlap: scope.Overlap,
		Misfire: core.MisfireRunOnce, MisfireGrace: 10 * tick, MaxAttempts: maxAttempts, Job: core.Job{Queue: "q", Payload: []byte("{}")},
	}
	s.Rules.EndsAt = began.Add((2*slots - 1) * tick)
	var err error
	if w.slots, err = spec.Load(&s); err != nil {
		w.must(err)
		return w
	}
	w.must(w.db.Create(ctx, s, began, began.Add(-time.Microsecond)))
	return w
}

// open makes a store the world's.
func (w *world) open(base *memory.Store) {
	w.base, w.db = base, base
	if w.scope.Spoil != nil {
		w.db = w.scope.Spoil(base)
	}
}

// clone returns a world that goes on by itself. Plans and runs are never changed, only
// replaced.
func (w *world) clone() *world {
	c := *w
	c.open(w.base.Clone(&c))
	c.queue = slices.Clone(w.queue)
	for i := range c.claimers {
		c.claimers[i].unsent = slices.Clone(c.claimers[i].unsent)
	}
	return &c
}

// step is one thing that can happen; its name is enough to do it again.
type step struct {
	name string
	do   func()
}

// steps returns what can happen next.
func (w *world) steps() []step {
	var out []step
	if w.now.Before(began.Add(lastTick * tick)) {
		out = append(out, step{"tick", w.tick})
	}
	for i := range w.claimers {
		out = append(out, w.claimerSteps(i)...)
	}
	for i := range w.executors {
		out = append(out, w.executorSteps(i)...)
	}
	switch {
	case w.client.done:
	case w.client.cur == nil:
		out = append(out, step{"client reads", w.read})
	default:
		out = append(out, step{"client writes", w.write})
	}
	return out
}

// tick lets time pass. An executor that is not frozen stops what it cannot trust.
func (w *world) tick() {
	w.now = w.now.Add(tick)
	for i := range w.executors {
		if e := &w.executors[i]; e.run != nil && !e.frozen && !w.now.Before(e.trust) {
			e.run = nil
		}
	}
}

func (w *world) claimerSteps(i int) []step {
	c := &w.claimers[i]
	out := []step{{fmt.Sprintf("claimer %d plans", i), func() { w.plan(c) }}, {fmt.Sprintf("claimer %d sweeps", i), func() { w.sweep() }}}
	if c.move != nil {
		out = append(out, step{fmt.Sprintf("claimer %d claims", i), func() { w.claim(c) }})
	}
	if len(c.unsent) > 0 && len(w.queue) < maxMessages {
		out = append(out, step{fmt.Sprintf("claimer %d publishes", i), func() {
			w.queue, c.unsent = append(w.queue, c.unsent[0]), c.unsent[1:]
		}})
	}
	return out
}

func (w *world) plan(c *claimer) {
	found, _, err := w.db.ReadTimers(w.ctx, []uuid.UUID{w.id})
	w.must(err)
	if len(found) == 1 && !found[0].Timer.FireAt.After(w.now) {
		m := plan.Move(&found[0].Schedule, &found[0].Timer, w.slots, w.now)
		c.move = &m
	}
}

func (w *world) claim(c *claimer) {
	m := *c.move
	c.move = nil
	if m.CancelLive {
		_, err := w.db.CancelPrevious(w.ctx, core.ShardOf(w.id), []core.Move{m})
		w.must(err)
	}
	got, err := w.db.Claim(w.ctx, core.ShardOf(w.id), []core.Move{m}, dispatchLease)
	w.must(err)
	for _, r := range got {
		if r.State != core.RunQueued {
			continue
		}
		if w.now.Before(r.Key.Slot) {
			w.fail("C3", "slot %s was claimed at %s", r.Key.Slot.Sub(began), w.now.Sub(began))
		}
		if !w.paused.IsZero() {
			w.fail("C8", "slot %s was claimed after the pause was answered", r.Key.Slot.Sub(began))
		}
		c.unsent = append(c.unsent, r.Message())
	}
}

func (w *world) sweep() {
	marks := []core.ShardMark{{Shard: core.ShardOf(w.id)}}
	got, _, err := w.db.Sweep(w.ctx, core.SweepOptions{
		Marks: marks, DispatchLease: dispatchLease, MaxDispatchLease: 8 * tick, Backoff: core.Backoff{Initial: tick, Max: tick},
		Queues: []string{"q"}, LostIn: []int16{marks[0].Shard},
	})
	w.must(err)
	for _, r := range got {
		if r.State == core.RunQueued && len(w.queue) < maxMessages {
			w.queue = append(w.queue, r.Message())
		}
	}
}

func (w *world) executorSteps(i int) []step {
	e := &w.executors[i]
	name := func(what string) string { return fmt.Sprintf("executor %d %s", i, what) }
	switch {
	case e.crashed:
		return nil
	case e.frozen:
		return []step{{name("thaws"), func() { w.thaw(e) }}}
	case e.run == nil:
		var out []step
		for k := range w.queue {
			out = append(out, step{name(fmt.Sprintf("takes message %d", k)), func() { w.receive(e, k, false) }})
			if w.doubles > 0 {
				out = append(out, step{name(fmt.Sprintf("takes message %d, which comes again", k)), func() { w.receive(e, k, true) }})
			}
		}
		return out
	}
	out := []step{
		{name("succeeds"), func() { w.finish(e, core.RunSucceeded) }}, {name("fails"), func() { w.finish(e, core.RunRetrying) }},
		{name("beats"), func() { w.beat(e) }},
	}
	if w.crashes > 0 {
		out = append(out, step{name("crashes"), func() { w.crashes--; e.crashed, e.run = true, nil }})
	}
	if w.freezes > 0 {
		out = append(out, step{name("freezes"), func() { w.freezes--; e.frozen = true }})
	}
	return out
}

func (w *world) receive(e *executor, k int, again bool) {
	m := w.queue[k]
	if again {
		w.doubles--
	} else {
		w.queue = slices.Delete(slices.Clone(w.queue), k, k+1)
	}
	got, err := w.db.Start(w.ctx, []core.Delivery{{Message: m, Token: w.token()}}, lease)
	w.must(err)
	if len(got) == 0 || got[0].State != core.RunRunning {
		return
	}
	r := got[0]
	for i := range w.executors {
		if o := &w.executors[i]; o != e && o.run != nil && o.run.Key == r.Key && w.now.Before(o.trust) {
			w.fail("C5", "two executors have slot %s and both trust their leases", r.Key.Slot.Sub(began))
		}
	}
	if r.Attempt > maxAttempts {
		w.fail("C7", "attempt %d of slot %s", r.Attempt, r.Key.Slot.Sub(began))
	}
	e.run, e.trust = &r, w.now.Add(lease-tick/2)
}

func (w *world) beat(e *executor) {
	got, err := w.db.Heartbeat(w.ctx, []core.Held{{Key: e.run.Key, Fence: e.run.Fence}}, lease)
	w.must(err)
	switch {
	case len(got) == 0:
		e.run = nil
	default:
		e.trust = w.now.Add(lease - tick/2)
	}
}

// thaw lets a frozen executor go on: it sends its outcome, however late.
func (w *world) thaw(e *executor) {
	e.frozen = false
	w.finish(e, core.RunSucceeded)
}

func (w *world) finish(e *executor, state core.RunState) {
	before, _, err := w.db.Run(w.ctx, w.tenant, e.run.Key)
	w.must(err)
	h := core.Held{Key: e.run.Key, Fence: e.run.Fence}
	got, err := w.db.Finish(w.ctx, []core.Outcome{{Held: h, State: state, Reason: core.ReasonExhausted}})
	w.must(err)
	if len(got) > 0 && before.Fence != h.Fence {
		w.fail("C6", "the outcome of fence %d was taken, the run has %d", h.Fence, before.Fence)
	}
	e.run = nil
}

func (w *world) read() {
	cur, err := w.db.Get(w.ctx, w.tenant, w.id)
	w.must(err)
	w.client.cur = &cur
}

// write carries out what the client planned, or has it read again.
func (w *world) write() {
	cur := w.client.cur
	var err error
	if w.scope.Trigger {
		_, err = w.db.Trigger(w.ctx, w.tenant, core.Manual{ScheduleID: w.id, Fence: cur.Timer.Fence, Slot: w.now.Add(time.Microsecond)})
	} else {
		err = w.db.Apply(w.ctx, w.tenant, plan.Pause(cur, w.slots, time.Time{}, ""))
	}
	switch {
	case errors.Is(err, core.ErrChanged) || errors.Is(err, core.ErrRunLive):
		w.client.cur = nil
		return
	case err != nil:
		w.must(err)
	case !w.scope.Trigger:
		w.paused = w.now
	}
	w.client = client{done: true}
}
