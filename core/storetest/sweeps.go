package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func sweepTests() []test {
	return []test{
		{"a sweep takes what is due and leaves the rest", testSweepTakes},
		{"queued runs are published again, with a gap that doubles", testSweepQueued},
		{"a lost run is queued at once, then waits, then is dead", testSweepLost},
		{"a retrying run that is due is queued", testSweepRetrying},
		{"a run that was asked to cancel is not run again", testSweepCanceled},
		{"a sweep takes 64 runs of a shard, the longest due", testSweepLimit},
	}
}

func testSweepTakes(w *world) {
	_, queued := w.reach(core.RunQueued, nil)
	_, other := w.reach(core.RunQueued, func(s *core.Schedule) { s.Job.Queue = "other" })
	_, running := w.reach(core.RunRunning, nil)
	_, retrying := w.reach(core.RunRetrying, nil)
	w.reach(core.RunSucceeded, nil)
	_, dead := w.reach(core.RunDead, nil)
	w.reach(core.RunCanceled, nil)
	// Each reach took an hour, so all are due; only the newest can be not.
	_, fresh := w.reach(core.RunRunning, nil)
	w.Advance(lease - time.Microsecond)
	for _, tt := range []struct {
		name   string
		change func(*core.SweepOptions)
		want   []core.Held
	}{
		{"nothing", func(o *core.SweepOptions) { o.Queues, o.LostIn = nil, nil }, nil},
		{"no shards", func(o *core.SweepOptions) { o.Marks = nil }, nil},
		{"above the mark", func(o *core.SweepOptions) {
			for i := range o.Marks {
				o.Marks[i].Low = w.now()
			}
		}, nil},
		{"another queue", func(o *core.SweepOptions) { o.Queues, o.LostIn = []string{"other"}, nil }, []core.Held{other}},
		{"queued", func(o *core.SweepOptions) { o.LostIn = nil }, []core.Held{queued}},
		{"lost and due", func(o *core.SweepOptions) { o.Queues = nil }, []core.Held{running, retrying, dead}},
	} {
		o := sweepOptions()
		tt.change(&o)
		got := w.sweep(o)
		var keys, want []core.RunKey
		for _, s := range got {
			keys = append(keys, s.Key)
			w.same("shard", core.ShardOf(s.Key.ScheduleID), s.Shard)
		}
		for _, h := range tt.want {
			want = append(want, h.Key)
		}
		w.same(tt.name, want, keys)
	}
	w.same("state before its lease's end", core.RunRunning, w.run(fresh.Key).State)
	w.Advance(time.Microsecond)
	taken := w.sweep(sweepOptions())
	w.same("taken at its lease's end", fresh.Key, taken[len(taken)-1].Key)
}

func testSweepQueued(w *world) {
	_, h := w.reach(core.RunQueued, nil)
	born := w.now()
	w.Advance(dispatchLease)
	want := w.run(h.Key)
	for _, gap := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		at := w.now()
		got := w.sweep(sweepOptions())
		w.same("swept", []core.Swept{{
			TenantID: w.tenant, Key: h.Key, Shard: core.ShardOf(h.Key.ScheduleID), Fence: h.Fence, State: core.RunQueued, From: core.RunQueued, Queue: queue,
		}}, got)
		want.WakeAt = at.Add(gap)
		w.same(fmt.Sprintf("run after %s", at.Sub(born)), want, w.run(h.Key))
		w.same("taken again at once", 0, len(w.sweep(sweepOptions())))
		w.to(want.WakeAt)
	}
	w.same("deliveries of the first message that get the run", 1, len(w.start(message(core.Claimed{Key: h.Key, Fence: h.Fence}))))
}

func testSweepLost(w *world) {
	id := w.add(func(s *core.Schedule) { s.MaxAttempts = 4 })
	s := w.begin(id)
	back := core.Backoff{Initial: 10 * time.Second, Max: 15 * time.Second}
	o := sweepOptions()
	o.Backoff = back
	for loss, want := range []core.RunState{core.RunQueued, core.RunRetrying, core.RunRetrying, core.RunDead} {
		w.Advance(lease)
		before := w.run(s.Key)
		got := w.sweep(o)
		w.same("swept", []core.Swept{{
			TenantID: w.tenant, Key: s.Key, Shard: core.ShardOf(id), Fence: s.Fence + 1, State: want, From: core.RunRunning, Queue: queue,
		}}, got)
		w.same("beats of the one who lost it", 0, len(w.beat(held(s))))
		w.same("failed attempt", core.Attempt{
			Number: loss + 1, Fence: s.Fence, StartedAt: before.StartedAt, FinishedAt: w.now(), Error: "heartbeats stopped",
		}, w.failed(s.Key)[loss])
		run := w.run(s.Key)
		before.State, before.Fence, before.WakeAt, before.Error = want, s.Fence+1, run.WakeAt, "heartbeats stopped"
		switch want {
		case core.RunQueued:
			w.same("wake_at", w.now().Add(dispatchLease), run.WakeAt)
		case core.RunRetrying:
			w.between("delay", run.WakeAt.Sub(w.now()), min(back.Initial<<(loss-1), back.Max))
			w.to(run.WakeAt)
			got = w.sweep(o)
		default:
			before.Reason, before.FinishedAt = core.ReasonLost, w.now()
		}
		w.same("run", before, run)
		if want != core.RunDead {
			s = w.start(core.Delivery{Message: core.Message{Key: s.Key, Fence: got[0].Fence}, Token: uuid.New()})[0]
		}
	}
}

// between wants a delay with equal jitter: at least half of the whole.
func (w *world) between(what string, got, whole time.Duration) {
	w.Helper()
	if got < whole/2 || got > whole {
		w.Errorf("%s is %s, want between %s and %s", what, got, whole/2, whole)
	}
}

func testSweepRetrying(w *world) {
	id, h := w.reach(core.RunRetrying, nil)
	w.Advance(10*time.Second - time.Microsecond)
	w.same("taken before its time", 0, len(w.sweep(sweepOptions())))
	w.Advance(time.Microsecond)
	want := w.run(h.Key)
	got := w.sweep(sweepOptions())
	w.same("swept", []core.Swept{{
		TenantID: w.tenant, Key: h.Key, Shard: core.ShardOf(id), Fence: h.Fence + 1, State: core.RunQueued, From: core.RunRetrying, Queue: queue,
	}}, got)
	want.State, want.Fence, want.WakeAt = core.RunQueued, h.Fence+1, w.now().Add(dispatchLease)
	w.same("run", want, w.run(h.Key))
	w.to(want.WakeAt)
	w.sweep(sweepOptions())
	w.same("gap, counted from when it was queued", w.now().Add(dispatchLease), w.run(h.Key).WakeAt)
	w.same("deliveries of the old fence", 0, len(w.start(message(core.Claimed{Key: h.Key, Fence: h.Fence}))))
	next := w.start(message(core.Claimed{Key: h.Key, Fence: h.Fence + 1}))
	w.same("attempt", 2, next[0].Attempt)
}

func testSweepCanceled(w *world) {
	id, h := w.reach(core.RunRunning, nil)
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(id)))
	w.Advance(lease)
	want := w.run(h.Key)
	got := w.sweep(sweepOptions())
	w.same("swept", []core.Swept{{
		TenantID: w.tenant, Key: h.Key, Shard: core.ShardOf(id), Fence: h.Fence + 1, State: core.RunCanceled, From: core.RunRunning, Queue: queue,
	}}, got)
	want.State, want.Fence, want.WakeAt, want.FinishedAt, want.Error = core.RunCanceled, h.Fence+1, time.Time{}, w.now(), "heartbeats stopped"
	w.same("run", want, w.run(h.Key))
	w.same("failed attempts", 1, len(w.failed(h.Key)))
	w.Advance(time.Hour)
	w.same("taken again", 0, len(w.sweep(sweepOptions())))
}

func testSweepLimit(w *world) {
	const shard, limit, more = 5, 64, 2
	ids := inShard(shard, limit+more)
	var moves []core.Move
	for _, id := range ids {
		w.add(func(s *core.Schedule) { s.ID, s.Name = id, id.String() })
	}
	for _, id := range ids {
		moves = append(moves, w.due(id))
	}
	w.same("claimed", limit+more, len(w.claim(moves...)))
	w.Advance(time.Hour)
	w.same("taken", limit, len(w.sweep(sweepOptions())))
	w.same("taken by the next sweep", more, len(w.sweep(sweepOptions())))
}
