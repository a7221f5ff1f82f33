package storetest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func otherTests() []test {
	return []test{
		{"nothing is done for a context that has ended", testEndedContext},
	}
}

func upkeepTests() []test {
	return []test{
		{"history goes when it is old, except what is alive", testExpiry},
		{"the interval of an expired run stays open", testExpiredInterval},
		{"backfills go when they ended long ago", testExpiredBackfills},
		{"partitions are made, again and again", testPartitions},
	}
}

const keep = 60 * 24 * time.Hour

// aged carries out do so long ago that what it leaves behind has expired.
func (w *world) aged(do func()) {
	w.Helper()
	const age = keep + 3*24*time.Hour
	w.Advance(-age)
	before := w.now()
	do()
	w.Advance(age - w.now().Sub(before))
}

func (w *world) expire() {
	w.Helper()
	_, err := w.Store.DropExpired(w.ctx, keep)
	w.must(err)
}

func testExpiry(w *world) {
	var gone, alive, fresh core.Held
	w.aged(func() {
		_, gone = w.reach(core.RunSucceeded, nil)
		_, alive = w.reach(core.RunRetrying, nil)
	})
	_, fresh = w.reach(core.RunDead, nil)
	w.expire()
	_, _, err := w.Store.Run(w.ctx, w.tenant, gone.Key)
	w.fails("a run that expired", core.ErrNotFound, err)
	w.same("an old run that is alive", core.RunRetrying, w.run(alive.Key).State)
	w.same("a fresh run", core.RunDead, w.run(fresh.Key).State)
}

func testExpiredInterval(w *world) {
	for _, tt := range []struct {
		name   string
		end    core.RunState
		manual bool
		fences int64 // by how much the timer's rises when its run expires
	}{{"dead", core.RunDead, false, 1}, {"succeeded", core.RunSucceeded, false, 0}, {"manual", core.RunSucceeded, true, 1}} {
		var id uuid.UUID
		var want time.Time
		w.aged(func() {
			id = w.add(nil)
			if want = w.get(id).Timer.Done; tt.manual {
				r := w.trigger(id)
				w.end(w.start(message(core.Claimed{Key: r.Key, Fence: r.Fence}))[0], tt.end)
			} else {
				s := w.begin(id)
				w.end(s, tt.end)
				if tt.end == core.RunSucceeded {
					want = s.CoversTo
				}
			}
			cur := w.get(id)
			w.must(w.Store.Apply(w.ctx, w.tenant, stopped(&cur)))
		})
		before := w.get(id).Timer.Fence
		w.expire()
		w.same(tt.name+": rise of the fence", tt.fences, w.get(id).Timer.Fence-before)
		w.same(tt.name+": start of the next interval", want, w.trigger(id).CoversFrom)
	}
}

// stopped plans to stop a schedule, so that it owes no slots of the time in between.
func stopped(cur *core.Scheduled) core.Edit {
	return core.Edit{
		Version: cur.Schedule.Version, Fence: cur.Timer.Fence, ValidUntil: core.Forever, Schedule: cur.Schedule,
		MoveTimer: true, NextAt: core.Forever, Done: cur.Timer.Done, OnBusy: core.BusySkip,
	}
}

func testPartitions(w *world) {
	for range 2 {
		w.must(w.Store.EnsurePartitions(w.ctx))
	}
	w.must(w.Store.Ping(w.ctx))
	_, h := w.reach(core.RunQueued, nil)
	w.must(w.Store.EnsurePartitions(w.ctx))
	w.same("state", core.RunQueued, w.run(h.Key).State)
}

func testEndedContext(w *world) {
	id := w.add(nil)
	m := w.due(id)
	before := w.get(id)
	ended, cancel := context.WithCancel(w.ctx)
	cancel()
	_, claimErr := w.Store.Claim(ended, before.Timer.Shard, []core.Move{m}, dispatchLease)
	applyErr := w.Store.Apply(ended, w.tenant, w.respec(id))
	deleteErr := w.Store.Delete(ended, w.tenant, w.deletion(id))
	for name, err := range map[string]error{"claim": claimErr, "apply": applyErr, "delete": deleteErr} {
		if err == nil {
			w.Errorf("%s answered without an error", name)
		}
	}
	w.same("schedule", before, w.get(id))
	w.same("runs", 0, len(w.runs(id)))
}
