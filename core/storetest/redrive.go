package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func redriveTests() []test {
	return []test{
		{"a redriven run has a new allowance and goes on counting", testRedrive},
		{"only dead runs are redriven", testRedriveOfOthers},
		{"a run that later ones superseded is not redriven", testRedriveSuperseded},
		{"redriven runs may be beside others where overlap allows it", testRedriveAllow},
		{"a redriven run keeps its covered interval, and the next begins behind it", testRedriveCovers},
		{"dead runs are told of until that is settled", testTellDead},
		{"a slot that comes during a redriven run meets it alive", testRedriveIsMet},
	}
}

// kill lets all attempts of a schedule's next run fail.
func (w *world) kill(id uuid.UUID) core.RunKey {
	w.Helper()
	s := w.begin(id)
	for {
		w.end(s, core.RunRetrying)
		r := w.run(s.Key)
		if r.State == core.RunDead {
			return s.Key
		}
		w.Advance(r.WakeAt.Sub(w.now()))
		w.sweep(sweepOptions())
		s = w.startOf(s.Key)
	}
}

// startOf starts a queued run.
func (w *world) startOf(key core.RunKey) core.Started {
	w.Helper()
	got := w.start(core.Delivery{Message: core.Message{Key: key, Fence: w.run(key).Fence}, Token: uuid.New()})
	if len(got) != 1 {
		w.Fatalf("run %s was not started: %+v", key.ID(), w.run(key))
	}
	return got[0]
}

func (w *world) redrive(key core.RunKey) error {
	w.Helper()
	cur := w.get(key.ScheduleID)
	return w.Store.Redrive(w.ctx, w.tenant, core.Redrive{Key: key, Fence: cur.Timer.Fence, Within: cur.Schedule.Rules.TotalTimeout})
}

func testRedrive(w *world) {
	key := w.kill(w.add(func(s *core.Schedule) { s.MaxAttempts, s.Rules.TotalTimeout = 2, time.Hour }))
	dead, before := w.run(key), w.get(key.ScheduleID).Timer
	w.Advance(2 * time.Hour)
	w.must(w.redrive(key))
	want := dead
	want.State, want.Reason, want.FinishedAt, want.WakeAt = core.RunQueued, "", time.Time{}, w.now()
	want.MaxAttempts, want.Fence = 4, (before.Fence+1)*65536
	w.same("redriven", want, w.run(key))
	timer := w.get(key.ScheduleID).Timer
	w.same("timer", []any{before.Fence + 1, before.LastRun, before.FireAt, before.Done}, []any{timer.Fence, timer.LastRun, timer.FireAt, timer.Done})
	w.fails("with the fence of before", core.ErrChanged, w.Store.Redrive(w.ctx, w.tenant, core.Redrive{Key: key, Fence: before.Fence}))
	w.fails("again", core.ErrRunNotDead, w.redrive(key))
	w.same("swept", core.RunQueued, w.sweep(sweepOptions())[0].State)
	s := w.startOf(key)
	w.same("third attempt", []any{3, time.Hour}, []any{s.Attempt, *s.Left})
	w.end(s, core.RunRetrying)
	w.Advance(w.run(key).WakeAt.Sub(w.now()))
	w.sweep(sweepOptions())
	w.end(w.startOf(key), core.RunRetrying)
	r := w.run(key)
	w.same("dead again", []any{core.RunDead, core.ReasonExhausted, 4}, []any{r.State, r.Reason, r.Attempt})
	w.same("failed attempts", 4, len(w.failed(key)))
}

func testRedriveOfOthers(w *world) {
	for _, state := range []core.RunState{core.RunQueued, core.RunRetrying, core.RunRunning, core.RunSucceeded, core.RunCanceled} {
		_, h := w.reach(state, nil)
		before := w.run(h.Key)
		w.fails("of a run that is "+string(state), core.ErrRunNotDead, w.redrive(h.Key))
		w.same("the run that is "+string(state), before, w.run(h.Key))
	}
	key := w.kill(w.add(nil))
	fence := w.get(key.ScheduleID).Timer.Fence
	w.fails("of another tenant", core.ErrChanged, w.Store.Redrive(w.ctx, uuid.New(), core.Redrive{Key: key, Fence: fence}))
	w.fails("of no run", core.ErrChanged, w.Store.Redrive(w.ctx, w.tenant, core.Redrive{
		Key: core.RunKey{Region: key.Region, ScheduleID: key.ScheduleID, Slot: key.Slot.Add(time.Microsecond)}, Fence: fence,
	}))
	w.same("the dead run", core.RunDead, w.run(key).State)
}

func testRedriveSuperseded(w *world) {
	id := w.add(nil)
	first := w.kill(id)
	second := w.kill(id)
	w.fails("of the first", core.ErrSuperseded, w.redrive(first))
	w.same("the first", core.RunDead, w.run(first).State)
	w.must(w.redrive(second))
}

func testRedriveAllow(w *world) {
	id := w.add(func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	first := w.kill(id)
	live := w.begin(id)
	last := w.get(id).Timer.LastRun
	w.must(w.redrive(first))
	w.same("both", []core.RunState{core.RunQueued, core.RunRunning}, []core.RunState{w.run(first).State, w.run(live.Key).State})
	w.same("last run", last, w.get(id).Timer.LastRun)
}

func testRedriveCovers(w *world) {
	id := w.add(nil)
	key := w.kill(id)
	covers := []time.Time{w.run(key).CoversFrom, w.run(key).CoversTo}
	w.must(w.redrive(key))
	s := w.startOf(key)
	w.same("interval", covers, []time.Time{s.CoversFrom, s.CoversTo})
	w.end(s, core.RunSucceeded)
	next := w.begin(id)
	w.same("the next", covers[1], next.CoversFrom)
}

// testTellDead: a dead run is returned by the sweeps of its shard's owner until
// somebody was told, whoever found it dead; where nobody is told, once.
func testTellDead(w *world) {
	once := func(s *core.Schedule) { s.MaxAttempts = 1 }
	lost := w.begin(w.add(once))
	w.Advance(lease)
	w.same("lost", core.RunDead, w.sweep(sweepOptions())[0].State)
	keys := []core.RunKey{lost.Key, w.kill(w.add(once)), w.kill(w.add(once))}
	o := sweepOptions()
	o.TellDead = 30 * time.Second
	foreign := o
	foreign.LostIn = nil
	w.same("by another process", []core.Swept{}, w.sweep(foreign))
	told := func() map[core.RunKey]core.Swept {
		out := map[core.RunKey]core.Swept{}
		for _, s := range w.sweep(o) {
			w.same("state", [2]core.RunState{core.RunDead, core.RunDead}, [2]core.RunState{s.From, s.State})
			w.same("fence", w.run(s.Key).Fence, s.Fence)
			out[s.Key] = s
		}
		return out
	}
	before := w.run(keys[1])
	first := told()
	w.same("told of", len(keys), len(first))
	before.WakeAt = w.now().Add(30 * time.Second)
	w.same("the run", before, w.run(keys[1]))
	w.same("not yet again", 0, len(told()))
	w.must(w.Store.Settle(w.ctx, []core.Held{{Key: keys[0], Fence: first[keys[0]].Fence}, {Key: keys[1], Fence: first[keys[1]].Fence - 1}}))
	w.Advance(30 * time.Second)
	w.must(w.redrive(keys[2]))
	w.must(w.Store.Settle(w.ctx, []core.Held{{Key: keys[2], Fence: first[keys[2]].Fence}}))
	w.same("redriven meanwhile", core.RunQueued, w.run(keys[2]).State)
	o.Queues = nil
	again := told()
	w.same("again, but for the one that is settled and the one redriven", []int{1, 1}, []int{len(again), len(w.sweep(sweepOptions()))})
	_, ok := again[keys[1]]
	w.same("which", true, ok)
	w.Advance(30 * time.Second)
	o.TellDead = 0
	w.same("told to nobody", 1, len(told()))
	w.same("settled", time.Time{}, w.run(keys[1]).WakeAt)
}

func testRedriveIsMet(w *world) {
	id := w.add(nil)
	key := w.kill(id)
	w.must(w.redrive(key))
	c := w.claim(w.due(id))[0]
	w.same("the slot after", core.RunSkipped, c.State)
	w.same("its reason", core.ReasonOverlap, w.run(c.Key).Reason)
}
