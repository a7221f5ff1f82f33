package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func limitTests() []test {
	return []test{
		{"limits are set, listed and dropped", testLimitAdmin},
		{"a run under a limit starts with a permit and not without", testPermit},
		{"a permit is free when its run is not running", testPermitFree},
		{"a permit is taken at the version at which it was seen", testPermitVersion},
		{"a run is under the limit of its tenant and that of all", testPermitBoth},
		{"a start sent again needs no permit again", testPermitResend},
		{"what does not come to run needs no permit", testPermitGone},
		{"a lower limit holds for what starts from then on", testLimitLowered},
		{"runs that wait are let go as there is room", testAdmit},
		{"the tenant with the fewest running goes first", testAdmitFair},
		{"a run that waits for a permit stays due", testHoldSwept},
	}
}

func (w *world) limit(tenant uuid.UUID, n int) {
	w.Helper()
	w.must(w.Store.SetLimit(w.ctx, core.Limit{Queue: queue, TenantID: tenant, Concurrency: n}))
}

// queued makes n runs of schedules of their own and returns their messages, in the
// order in which they were queued.
func (w *world) queued(n int) []core.Delivery {
	w.Helper()
	var out []core.Delivery
	for range n {
		_, h := w.reach(core.RunQueued, nil)
		out = append(out, core.Delivery{Message: core.Message{Key: h.Key, Fence: h.Fence}, Token: uuid.New()})
	}
	return out
}

func (w *world) permits(ds ...core.Delivery) core.PermitView {
	w.Helper()
	v, err := w.Store.Permits(w.ctx, ds)
	w.must(err)
	return v
}

// with gives a delivery permits.
func with(d core.Delivery, ps ...core.Permit) core.Delivery {
	d.Permits = ps
	return d
}

func testLimitAdmin(w *world) {
	other := uuid.New()
	w.limit(core.AllTenants, 3)
	w.limit(w.tenant, 2)
	w.limit(w.tenant, 1)
	w.limit(other, 5)
	got, err := w.Store.Limits(w.ctx, w.tenant)
	w.must(err)
	w.same("limits", []core.Limit{{Queue: queue, Concurrency: 3}, {Queue: queue, TenantID: w.tenant, Concurrency: 1}}, got)
	ds := w.queued(3)
	v := w.permits(ds[0])
	w.start(with(ds[0], pick(v, core.AllTenants), pick(v, w.tenant)))
	w.must(w.Store.Hold(w.ctx, []core.Message{ds[1].Message}))
	got, err = w.Store.Limits(w.ctx, w.tenant)
	w.must(err)
	w.same("in use", []int{1, 1, 1, 1}, []int{got[0].Running, got[0].Waiting, got[1].Running, got[1].Waiting})
	names, err := w.Store.LimitedQueues(w.ctx)
	w.must(err)
	w.same("queues", []string{queue}, names)
	w.must(w.Store.DropLimit(w.ctx, queue, w.tenant))
	w.fails("dropped twice", core.ErrNotFound, w.Store.DropLimit(w.ctx, queue, w.tenant))
	w.fails("too large", core.ErrBadRow, w.Store.SetLimit(w.ctx, core.Limit{Queue: queue, Concurrency: core.MaxConcurrency + 1}))
}

// pick returns a free permit of a tenant's limit.
func pick(v core.PermitView, tenant uuid.UUID) core.Permit {
	for _, p := range v.Free {
		if p.TenantID == tenant {
			return p
		}
	}
	return core.Permit{}
}

func testPermit(w *world) {
	w.limit(w.tenant, 1)
	ds := w.queued(2)
	v := w.permits(ds...)
	w.same("under", map[core.RunKey][]core.Permit{
		ds[0].Key: {{Queue: queue, TenantID: w.tenant}}, ds[1].Key: {{Queue: queue, TenantID: w.tenant}},
	}, v.Under)
	w.same("free", []core.Permit{{Queue: queue, TenantID: w.tenant, N: 1, Version: 1}}, v.Free)
	w.same("without a permit", 0, len(w.start(ds...)))
	w.same("state", core.RunQueued, w.run(ds[0].Key).State)
	w.same("attempts", 0, w.run(ds[0].Key).Attempt)
	got := w.start(with(ds[0], v.Free[0]), ds[1])
	if len(got) != 1 || got[0].Key != ds[0].Key {
		w.Fatalf("started %+v, want the one with a permit", got)
	}
	w.same("free then", 0, len(w.permits(ds[1]).Free))
	w.same("with one that is taken", 0, len(w.start(with(ds[1], v.Free[0]))))
}

func testPermitFree(w *world) {
	w.limit(core.AllTenants, 1)
	ds := w.queued(3)
	first := w.start(with(ds[0], w.permits(ds[0]).Free[0]))[0]
	w.end(first, core.RunSucceeded)
	v := w.permits(ds[1])
	w.same("after the end", 1, len(v.Free))
	second := w.start(with(ds[1], v.Free[0]))[0]
	w.Advance(2 * lease)
	w.sweep(sweepOptions()) // the second lost its heartbeats
	v = w.permits(ds[2])
	w.same("after the loss", 1, len(v.Free))
	w.same("third", 1, len(w.start(with(ds[2], v.Free[0]))))
	w.same("a late finish", 0, len(w.finish(core.Outcome{Held: held(second), State: core.RunSucceeded})))
	w.same("while the third runs", 0, len(w.permits(w.queued(1)...).Free))
}

func testPermitVersion(w *world) {
	w.limit(w.tenant, 2)
	ds := w.queued(3)
	seen := w.permits(ds...).Free
	w.same("free", 2, len(seen))
	w.end(w.start(with(ds[0], seen[0]))[0], core.RunSucceeded)
	w.same("seen before it was taken and given back", 0, len(w.start(with(ds[1], seen[0]))))
	w.same("the other", 1, len(w.start(with(ds[1], seen[1]))))
}

func testPermitBoth(w *world) {
	w.limit(core.AllTenants, 2)
	w.limit(w.tenant, 1)
	ds := w.queued(2)
	v := w.permits(ds...)
	w.same("limits of a run", 2, len(v.Under[ds[0].Key]))
	w.same("free", 3, len(v.Free))
	all, own := pick(v, core.AllTenants), pick(v, w.tenant)
	w.same("with one of two", 0, len(w.start(with(ds[0], all))))
	w.same("with the other of two", 0, len(w.start(with(ds[0], own))))
	v = w.permits(ds...)
	w.same("free again", 3, len(v.Free))
	w.same("with both", 1, len(w.start(with(ds[0], pick(v, core.AllTenants), pick(v, w.tenant)))))
	v = w.permits(ds[1])
	w.same("left", []int{1, 0}, []int{len(v.Free), pick(v, w.tenant).N})
}

func testPermitResend(w *world) {
	w.limit(w.tenant, 1)
	d := w.queued(1)[0]
	d = with(d, w.permits(d).Free[0])
	first := w.start(d)
	w.same("again", first[0].Fence, w.start(d)[0].Fence)
	d.Permits = nil
	w.same("again without", 1, w.start(d)[0].Attempt)
	w.same("limits of a running run", 0, len(w.permits(d).Under))
}

func testPermitGone(w *world) {
	w.limit(w.tenant, 0)
	late := w.add(func(s *core.Schedule) { s.CatchUpWithin = 2 * time.Minute })
	moved := w.add(nil)
	l, m := message(w.next(late)), message(w.next(moved))
	e := w.editOf(moved)
	e.Schedule.Job.Queue = "other"
	w.must(w.Store.Apply(w.ctx, w.tenant, e))
	w.Advance(3 * time.Minute)
	states := map[core.RunKey]core.RunState{}
	for _, s := range w.start(l, m) {
		states[s.Key] = s.State
	}
	w.same("states", map[core.RunKey]core.RunState{l.Key: core.RunCanceled, m.Key: core.RunQueued}, states)
	w.same("queue", "other", w.run(m.Key).Queue)
}

// editOf is an edit that changes nothing yet.
func (w *world) editOf(id uuid.UUID) core.Edit {
	w.Helper()
	s := w.get(id)
	return core.Edit{Version: s.Schedule.Version, Fence: s.Timer.Fence, ValidUntil: w.now().Add(time.Hour), Schedule: s.Schedule}
}

func testLimitLowered(w *world) {
	w.limit(w.tenant, 3)
	ds := w.queued(4)
	for _, d := range ds[:3] {
		w.start(with(d, w.permits(d).Free[0]))
	}
	w.limit(w.tenant, 1)
	w.same("lowered", 0, len(w.permits(ds[3]).Free))
	w.limit(w.tenant, 4)
	v := w.permits(ds[3])
	w.same("raised", []int{1, 4}, []int{len(v.Free), v.Free[0].N})
	w.must(w.Store.DropLimit(w.ctx, queue, w.tenant))
	w.same("dropped", 1, len(w.start(ds[3])))
}

func (w *world) admit(n int) []core.RunKey {
	w.Helper()
	got, err := w.Store.Admit(w.ctx, core.AdmitOptions{Queues: []string{queue}, Most: n, DispatchLease: dispatchLease})
	w.must(err)
	var keys []core.RunKey
	for _, c := range got {
		w.same("let go", core.RunQueued, c.State)
		keys = append(keys, c.Key)
	}
	return keys
}

func testAdmit(w *world) {
	w.limit(w.tenant, 2)
	ds := w.queued(5)
	w.same("nobody waits", 0, len(w.admit(10)))
	var msgs []core.Message
	for _, d := range ds {
		msgs = append(msgs, d.Message)
	}
	msgs[4].Fence++ // of another time
	w.must(w.Store.Hold(w.ctx, msgs))
	w.must(w.Store.Hold(w.ctx, msgs[:1]))
	w.same("one at most", []core.RunKey{ds[0].Key}, w.admit(1))
	w.same("the oldest, as there is room", []core.RunKey{ds[1].Key}, w.admit(10))
	w.same("wake", w.now().Add(dispatchLease), w.run(ds[1].Key).WakeAt)
	w.same("no room while they have not started", 0, len(w.admit(10)))
	s := w.start(with(ds[0], w.permits(ds[0]).Free[0]))[0]
	w.same("nor while one runs", 0, len(w.admit(10)))
	w.end(s, core.RunSucceeded)
	w.same("room again", []core.RunKey{ds[2].Key}, w.admit(10))
	w.must(w.Store.Hold(w.ctx, msgs[1:2]))
	w.same("sent back, it is the oldest", []core.RunKey{ds[1].Key}, w.admit(10))
	w.must(w.Store.DropLimit(w.ctx, queue, w.tenant))
	w.same("without a limit", []core.RunKey{ds[3].Key}, w.admit(10))
}

func testAdmitFair(w *world) {
	w.limit(core.AllTenants, 3)
	mine := w.queued(6)
	first := w.tenant
	w.tenant = uuid.New()
	theirs := w.queued(2)
	var msgs []core.Message
	for _, d := range append(append([]core.Delivery{}, mine...), theirs...) {
		msgs = append(msgs, d.Message)
	}
	w.must(w.Store.Hold(w.ctx, msgs[:6]))
	w.same("alone, one has all", 3, len(w.admit(10)))
	var running []core.Started
	for _, d := range mine[:3] {
		running = append(running, w.start(with(d, w.permits(d).Free[0]))...)
	}
	w.must(w.Store.Hold(w.ctx, msgs[6:]))
	w.end(running[0], core.RunSucceeded)
	w.same("the other, although younger", []core.RunKey{theirs[0].Key}, w.admit(10))
	w.start(with(theirs[0], w.permits(theirs[0]).Free[0]))
	w.end(running[1], core.RunSucceeded)
	w.same("both have one, so the oldest", []core.RunKey{mine[3].Key}, w.admit(10))
	w.limit(first, 1)
	w.limit(core.AllTenants, 10)
	w.same("one is at its own limit", []core.RunKey{theirs[1].Key}, w.admit(10))
}

func testHoldSwept(w *world) {
	w.limit(w.tenant, 1)
	d := w.queued(1)[0]
	w.must(w.Store.Hold(w.ctx, []core.Message{d.Message}))
	w.Advance(dispatchLease)
	got := w.sweep(sweepOptions())
	w.same("swept", []bool{true, false}, []bool{got[0].Waiting, got[0].Admitted})
	w.admit(1)
	w.Advance(dispatchLease)
	got = w.sweep(sweepOptions())
	w.same("swept once it was let go", []bool{false, true}, []bool{got[0].Waiting, got[0].Admitted})
	w.start(with(d, w.permits(d).Free[0]))
	w.Advance(2 * lease)
	got = w.sweep(sweepOptions())
	w.same("lost", []bool{false, false}, []bool{got[0].Waiting, got[0].Admitted})
}
