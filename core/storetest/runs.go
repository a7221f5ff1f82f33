package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func runTests() []test {
	return []test{
		{"start gives a queued run to its delivery", testStart},
		{"start passes over what is not the delivery's", testStartRefused},
		{"a start sent again gets its row again", testStartAgain},
		{"a started run knows when it was due", testStartDue},
		{"of deliveries at the same time one gets the run", testStartRace},
		{"start moves runs to their schedule's queue and gets none of a deleted one", testStartElsewhere},
		{"heartbeats extend leases of their holders only", testHeartbeat},
		{"finish judges by outcome, attempts left and request to cancel", testFinishVerdicts},
		{"a finish sent again is accepted and a stale one refused", testFinishAgain},
		{"finish keeps result and error", testFinishKeeps},
		{"a finish with a refused value records nothing of its batch", testFinishBad},
	}
}

func testStart(w *world) {
	id := w.add(nil)
	c := w.next(id)
	d := message(c)
	got := w.start(d)
	before := w.run(c.Key)
	want := core.Started{
		Execution: core.Execution{
			Key: c.Key, TenantID: w.tenant, Name: id.String(), Cause: core.CauseSchedule, Attempt: 1, Fence: c.Fence + 1,
			Payload: []byte(`{"n": 1}`), CoversFrom: before.CoversFrom, CoversTo: c.Key.Slot,
		},
		State: core.RunRunning, Token: d.Token, Queue: queue, Timeout: 90 * time.Second, MaxAttempts: 3,
		StartedAt: w.now(), Due: c.Key.Slot,
	}
	w.same("started", []core.Started{want}, got)
	run := before
	run.State, run.Attempt, run.Fence, run.Version = core.RunRunning, 1, c.Fence+1, 1
	run.WakeAt, run.StartedAt = w.now().Add(lease), w.now()
	w.same("run", run, w.run(c.Key))
}

// testStartDue: a run that came by its schedule knows when it was to start, the first
// time.
func testStartDue(w *world) {
	id := w.add(func(s *core.Schedule) { s.Window, s.Overlap = 20*time.Minute, core.OverlapAllow })
	first := w.begin(id)
	s := w.get(id).Schedule
	w.same("with its spread", first.Key.Slot.Add(s.Offset()), first.Due)
	w.same("lag", w.now().Sub(first.Due), first.Lag())
	w.end(first, core.RunRetrying)
	w.Advance(time.Hour)
	again := w.start(message(core.Claimed{Key: first.Key, Fence: w.sweep(sweepOptions())[0].Fence}))[0]
	w.same("second attempt", time.Duration(-1), again.Lag())
	r := w.trigger(id)
	asked := w.start(message(core.Claimed{Key: r.Key, Fence: r.Fence}))[0]
	w.same("asked for", time.Duration(-1), asked.Lag())
}

func testStartRefused(w *world) {
	for _, state := range []core.RunState{core.RunRunning, core.RunRetrying, core.RunSucceeded, core.RunDead, core.RunCanceled} {
		_, h := w.reach(state, nil)
		before := w.run(h.Key)
		for n := int64(-2); n <= 1; n++ {
			d := core.Delivery{Message: core.Message{Key: h.Key, Fence: h.Fence + n}, Token: uuid.New()}
			w.same(fmt.Sprintf("deliveries of a %s run, fence %+d", state, n), 0, len(w.start(d)))
		}
		w.same(fmt.Sprintf("the %s run", state), before, w.run(h.Key))
	}
	_, h := w.reach(core.RunQueued, nil)
	for _, fence := range []int64{h.Fence - 1, h.Fence + 1} {
		w.same("deliveries of another fence", 0, len(w.start(message(core.Claimed{Key: h.Key, Fence: fence}))))
	}
	unknown := h.Key
	unknown.Slot = unknown.Slot.Add(time.Second)
	both := w.start(message(core.Claimed{Key: unknown, Fence: h.Fence}), message(core.Claimed{Key: h.Key, Fence: h.Fence}))
	w.same("deliveries that got a run", 1, len(both))
	w.same("no deliveries", 0, len(w.start()))
	_, h = w.reach(core.RunQueued, nil)
	d := message(core.Claimed{Key: h.Key, Fence: h.Fence})
	w.same("runs of a delivery passed twice", 1, len(w.start(d, d)))
}

func testStartAgain(w *world) {
	id := w.add(nil)
	d := message(w.next(id))
	first := w.start(d)
	before := w.run(d.Key)
	w.Advance(20 * time.Second)
	w.same("started again", first, w.start(d))
	before.WakeAt = before.WakeAt.Add(20 * time.Second)
	w.same("run", before, w.run(d.Key))
	double := d
	double.Token = uuid.New()
	w.same("the message's double", 0, len(w.start(double)))
	w.end(first[0], core.RunSucceeded)
	w.same("started once ended", 0, len(w.start(d)))
}

func testStartRace(w *world) {
	c := w.next(w.add(nil))
	var got atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			started, err := w.Store.Start(w.ctx, []core.Delivery{message(c)}, lease)
			if err != nil {
				w.Error(err)
			}
			got.Add(int64(len(started)))
		})
	}
	wg.Wait()
	w.same("deliveries that got the run", int64(1), got.Load())
	w.same("attempts", 1, w.run(c.Key).Attempt)
}

func testStartElsewhere(w *world) {
	id := w.add(nil)
	c := w.next(id)
	w.edit(id, func(s *core.Schedule) { s.Job.Queue = "other" })
	before := w.run(c.Key)
	w.Advance(time.Second)
	got := w.start(message(c))
	if len(got) != 1 || got[0].State != core.RunQueued || got[0].Queue != "other" || got[0].Attempt != 0 {
		w.Errorf("a run whose schedule has another queue started as %+v", got)
	}
	want := before
	want.Queue, want.WakeAt, want.Fence, want.Version = "other", w.now(), before.Fence+1, 2
	w.same("the run whose schedule has another queue", want, w.run(c.Key))
	again := w.start(message(core.Claimed{Key: c.Key, Fence: want.Fence}))
	w.same("deliveries of the other queue that got it", 1, len(again))

	_, h := w.reach(core.RunQueued, nil)
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(h.Key.ScheduleID)))
	for fence := h.Fence; fence <= h.Fence+1; fence++ {
		w.same("deliveries after the delete", 0, len(w.start(message(core.Claimed{Key: h.Key, Fence: fence}))))
	}
	w.same("state after the delete", core.RunCanceled, w.run(h.Key).State)
}

func (w *world) beat(hs ...core.Held) []core.Beat {
	w.Helper()
	got, err := w.Store.Heartbeat(w.ctx, hs, lease)
	w.must(err)
	return got
}

func testHeartbeat(w *world) {
	id, h := w.reach(core.RunRunning, nil)
	before := w.run(h.Key)
	w.Advance(20 * time.Second)
	w.same("beat", []core.Beat{{Held: h}}, w.beat(h))
	before.WakeAt = w.now().Add(lease)
	w.same("run", before, w.run(h.Key))
	for n := int64(-1); n <= 1; n += 2 {
		w.same("beats of another fence", 0, len(w.beat(core.Held{Key: h.Key, Fence: h.Fence + n})))
	}
	w.Advance(lease + time.Second)
	w.same("beats after the lease's end, before a sweep", 1, len(w.beat(h)))
	for _, state := range []core.RunState{core.RunQueued, core.RunRetrying, core.RunSucceeded, core.RunDead, core.RunCanceled} {
		_, other := w.reach(state, nil)
		w.same(fmt.Sprintf("beats of a %s run", state), 0, len(w.beat(other)))
	}
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(id)))
	w.same("beat once asked to cancel", []core.Beat{{Held: h, CancelRequested: true}}, w.beat(h))
	w.same("no beats", 0, len(w.beat()))
	w.same("beats of a run named twice", 1, len(w.beat(h, h)))
}

func testFinishVerdicts(w *world) {
	const q, d, c, s = core.RunRetrying, core.RunDead, core.RunCanceled, core.RunSucceeded
	for _, tt := range []struct {
		outcome core.RunState
		max     int
		cancel  bool
		want    core.RunState
		reason  core.Reason
	}{
		{s, 2, false, s, ""},
		{s, 1, false, s, ""},
		{s, 2, true, s, ""},
		{q, 2, false, q, ""},
		{q, 1, false, d, core.ReasonTimeout},
		{q, 2, true, c, core.ReasonDeleted},
		{q, 1, true, c, core.ReasonDeleted},
		{d, 2, false, d, core.ReasonTimeout},
		{d, 2, true, d, core.ReasonTimeout},
		{c, 2, false, c, ""},
		{c, 2, true, c, core.ReasonDeleted},
	} {
		what := fmt.Sprintf("%s, %d attempts, cancel %t", tt.outcome, tt.max, tt.cancel)
		id, h := w.reach(core.RunRunning, func(s *core.Schedule) { s.MaxAttempts = tt.max })
		if tt.cancel {
			w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(id)))
		}
		want := w.run(h.Key)
		w.Advance(time.Second)
		got := w.finish(core.Outcome{Held: h, State: tt.outcome, Reason: core.ReasonTimeout, Delay: 1500 * time.Millisecond, Error: "text"})
		w.same(what+": accepted", []core.Finished{{Held: h, State: tt.want}}, got)
		want.State, want.Reason, want.Error, want.WakeAt, want.FinishedAt = tt.want, tt.reason, "text", time.Time{}, w.now()
		if tt.want == d {
			want.WakeAt = w.now()
		}
		if tt.want == q {
			want.WakeAt, want.FinishedAt = w.now().Add(1500*time.Millisecond), time.Time{}
		}
		w.same(what+": run", want, w.run(h.Key))
		var failed []core.Attempt
		if tt.want != s {
			failed = []core.Attempt{{Number: 1, Fence: h.Fence, StartedAt: want.StartedAt, FinishedAt: w.now(), Error: "text"}}
		}
		w.same(what+": failed attempts", failed, w.failed(h.Key))
	}
}

func testFinishAgain(w *world) {
	for _, state := range []core.RunState{core.RunSucceeded, core.RunRetrying, core.RunDead, core.RunCanceled} {
		_, h := w.reach(core.RunRunning, nil)
		o := core.Outcome{Held: h, State: state, Reason: core.ReasonPermanent, Delay: time.Second}
		want := w.finish(o)
		before, failed := w.run(h.Key), w.failed(h.Key)
		w.Advance(time.Millisecond)
		w.same(fmt.Sprintf("finish as %s sent again", state), want, w.finish(o))
		w.same("the run after it", before, w.run(h.Key))
		w.same("its failed attempts", failed, w.failed(h.Key))
		stale := o
		stale.Fence--
		w.same("a stale finish", 0, len(w.finish(stale)))
	}
	_, queued := w.reach(core.RunQueued, nil)
	_, running := w.reach(core.RunRunning, nil)
	ended := w.finish(core.Outcome{Held: queued, State: core.RunSucceeded}, core.Outcome{Held: running, State: core.RunSucceeded})
	w.same("accepted of one that never began and one that did", []core.Finished{{Held: running, State: core.RunSucceeded}}, ended)
	w.same("no outcomes", 0, len(w.finish()))
	_, twice := w.reach(core.RunRunning, nil)
	o := core.Outcome{Held: twice, State: core.RunSucceeded}
	w.same("accepted of one named twice", 1, len(w.finish(o, o)))
}

func testFinishKeeps(w *world) {
	id, h := w.reach(core.RunRunning, func(s *core.Schedule) { s.MaxAttempts = 2 })
	w.finish(core.Outcome{Held: h, State: core.RunRetrying, Error: "fäiled\n"})
	w.same("error", "fäiled\n", w.run(h.Key).Error)
	w.Advance(time.Second)
	again := w.start(message(core.Claimed{Key: h.Key, Fence: w.sweep(sweepOptions())[0].Fence}))
	w.same("attempt", 2, again[0].Attempt)
	w.finish(core.Outcome{Held: held(again[0]), State: core.RunSucceeded, Result: []byte(`{"rows":[1,2],"ok":true}`)})
	run := w.runs(id)[0]
	var got map[string]any
	w.must(json.Unmarshal(run.Result, &got))
	w.same("result", map[string]any{"rows": []any{1.0, 2.0}, "ok": true}, got)
	w.same("error of a run that succeeded", "", run.Error)
	w.same("failed attempts", 1, len(w.failed(h.Key)))
}

func testFinishBad(w *world) {
	_, good := w.reach(core.RunRunning, nil)
	_, poor := w.reach(core.RunRunning, nil)
	for name, o := range map[string]core.Outcome{
		"an error with NUL":      {State: core.RunRetrying, Error: "a\x00b"},
		"an error not UTF-8":     {State: core.RunRetrying, Error: "a\xff"},
		"a result that is none":  {State: core.RunSucceeded, Result: []byte(`{"a"`)},
		"a result with NUL":      {State: core.RunSucceeded, Result: []byte(`"\u0000"`)},
		"a state nobody knows":   {State: "tired"},
		"a state that is no end": {State: core.RunQueued},
		"a state of those at it": {State: core.RunRunning},
		"NUL after a backslash":  {State: core.RunSucceeded, Result: []byte(`"\\u0000 \\\u0000"`)},
	} {
		o.Held = poor
		_, err := w.Store.Finish(w.ctx, []core.Outcome{{Held: good, State: core.RunSucceeded}, o})
		w.fails(name, core.ErrBadRow, err)
		w.same(name+": state of the other", core.RunRunning, w.run(good.Key).State)
	}
	o := core.Outcome{Held: poor, State: core.RunSucceeded, Result: []byte(`"\\u0000"`)}
	w.same("accepted without fault", 2, len(w.finish(core.Outcome{Held: good, State: core.RunSucceeded}, o)))
}
