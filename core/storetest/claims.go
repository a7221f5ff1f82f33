package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func claimTests() []test {
	return []test{
		{"a claim makes the run of a due slot and moves the timer on", testClaim},
		{"a claim whose plan does not hold does nothing", testClaimGuards},
		{"a claim sent again makes nothing and its runs are found", testClaimAgain},
		{"a slot that meets a live run follows the policy", testClaimBusy},
		{"a claim of missed slots makes a range row and a run", testClaimRange},
		{"a slot that has its row gets no other", testSlotTaken},
		{"a claim without rows moves the timer, never below now", testClaimWithoutRows},
		{"a batch with a refused value is not carried out", testBadRow},
		{"a batch carries out the moves that hold", testClaimBatch},
		{"a parked timer waits an hour and opens an alert", testPark},
		{"of claims at the same time one makes the run", testClaimRace},
		{"covered intervals follow each other without gap or overlap", testCovers},
	}
}

func testClaim(w *world) {
	id := w.add(nil)
	before := w.get(id)
	slot := before.Timer.FireAt
	m := w.due(id)
	got := w.claim(m)
	key := core.RunKey{Region: w.Region, ScheduleID: id, Slot: slot}
	const fence = 2 * 65536
	w.same("claimed", []core.Claimed{{Key: key, TenantID: w.tenant, Fence: fence, State: core.RunQueued, Queue: queue}}, got)
	w.same("run", core.Run{
		Key: key, TenantID: w.tenant, State: core.RunQueued, Cause: core.CauseSchedule, Queue: queue, Fence: fence, MaxAttempts: 3,
		WakeAt: w.now().Add(dispatchLease), CoversFrom: before.Timer.Done, CoversTo: slot, CreatedAt: w.now(),
	}, w.run(key))
	after := w.get(id)
	want := before.Timer
	want.FireAt, want.Done, want.LastRun, want.Fence = slot.Add(time.Hour), slot, slot, 2
	w.same("timer", want, after.Timer)
	w.same("last run live", true, after.LastRunLive())
}

func testClaimGuards(w *world) {
	id := w.add(nil)
	before := w.get(id).Timer
	early := w.due(id)
	w.to(early.FireAt.Add(-time.Microsecond))
	w.same("early claim", 0, len(w.claim(early)))
	w.to(early.FireAt)
	for name, change := range map[string]func(*core.Move){
		"another fence":        func(m *core.Move) { m.Fence++ },
		"an older fence":       func(m *core.Move) { m.Fence-- },
		"another fire_at":      func(m *core.Move) { m.FireAt = m.FireAt.Add(-time.Second) },
		"a plan past its life": func(m *core.Move) { m.ValidUntil = w.now() },
	} {
		m := early
		change(&m)
		w.same(name, 0, len(w.claim(m)))
	}
	other := (before.Shard + 1) % core.Shards
	got, err := w.Store.Claim(w.ctx, other, []core.Move{early}, dispatchLease)
	w.must(err)
	w.same("another shard", 0, len(got))
	w.same("timer", before, w.get(id).Timer)
	w.same("runs", 0, len(w.runs(id)))
	early.ValidUntil = w.now().Add(time.Microsecond)
	w.same("a plan at the end of its life", 1, len(w.claim(early)))
}

func testClaimAgain(w *world) {
	id := w.add(nil)
	m := w.due(id)
	read := func() []core.Claimed {
		got, err := w.Store.ReadClaimed(w.ctx, []core.Move{m, {ScheduleID: uuid.New(), LastRun: m.LastRun}, {ScheduleID: id}})
		w.must(err)
		return got
	}
	w.same("runs of a claim that was not sent", 0, len(read()))
	made := w.claim(m)
	w.same("the claim sent again", 0, len(w.claim(m)))
	w.same("runs of the claim", made, read())
	w.start(message(made[0]))
	w.same("runs of the claim once started", 0, len(read()))
}

func testClaimBusy(w *world) {
	alive := map[core.RunState]bool{core.RunQueued: true, core.RunRunning: true, core.RunRetrying: true}
	for _, state := range []core.RunState{core.RunQueued, core.RunRunning, core.RunRetrying, core.RunSucceeded, core.RunDead, core.RunCanceled} {
		for _, policy := range []core.OnBusy{core.BusyAllow, core.BusySkip, core.BusyWait} {
			what := fmt.Sprintf("%s during %s", policy, state)
			id, h := w.reach(state, nil)
			w.twin(id, h.Key.Slot, contrary(state))
			before := w.get(id).Timer
			m := w.due(id)
			m.OnBusy = policy
			got := w.claim(m)
			busy := alive[state] && policy != core.BusyAllow
			want := before
			want.Fence++
			if busy && policy == core.BusyWait {
				want.Parked, want.FireAt = true, w.now().Add(2*time.Second)
				w.same(what+": timer", want, w.get(id).Timer)
				w.same(what+": rows", 0, len(got))
				continue
			}
			want.FireAt, want.Done = m.NextAt, m.Done
			run := core.Run{
				Key: core.RunKey{Region: w.Region, ScheduleID: id, Slot: m.LastRun}, TenantID: w.tenant, Cause: core.CauseSchedule, Queue: queue,
				MaxAttempts: 3, Fence: want.Fence * 65536, CreatedAt: w.now(),
			}
			if busy {
				run.State, run.Reason, run.FinishedAt = core.RunSkipped, core.ReasonOverlap, w.now()
			} else {
				want.LastRun = m.LastRun
				run.State, run.WakeAt = core.RunQueued, w.now().Add(dispatchLease)
			}
			if !busy && policy != core.BusyAllow {
				run.CoversFrom, run.CoversTo = w.covered(before), m.LastRun
			}
			w.same(what+": timer", want, w.get(id).Timer)
			w.same(what+": rows", []core.Claimed{{Key: run.Key, TenantID: w.tenant, Fence: run.Fence, State: run.State, Queue: queue}}, got)
			w.same(what+": run", run, w.run(run.Key))
		}
	}
}

// covered returns up to where the last run of a timer has done its work.
func (w *world) covered(t core.Timer) time.Time {
	w.Helper()
	r := w.run(core.RunKey{Region: w.Region, ScheduleID: t.ScheduleID, Slot: t.LastRun})
	if r.State == core.RunSucceeded {
		return r.CoversTo
	}
	return r.CoversFrom
}

func testClaimRange(w *world) {
	id := w.add(nil)
	first := w.get(id).Timer.FireAt
	w.to(first.Add(3*time.Hour + 30*time.Minute))
	m := w.due(id)
	got := w.claim(m)
	skipped := core.RunKey{Region: w.Region, ScheduleID: id, Slot: first.Add(2 * time.Hour)}
	newest := core.RunKey{Region: w.Region, ScheduleID: id, Slot: first.Add(3 * time.Hour)}
	const fence = 2 * 65536
	w.same("claimed", []core.Claimed{
		{Key: skipped, TenantID: w.tenant, Fence: fence, State: core.RunSkipped, Queue: queue}, {Key: newest, TenantID: w.tenant, Fence: fence, State: core.RunQueued, Queue: queue},
	}, got)
	w.same("range", core.Run{
		Key: skipped, TenantID: w.tenant, State: core.RunSkipped, Cause: core.CauseSchedule, Reason: core.ReasonMisfire, RangeFrom: first,
		RangeCount: 3, Queue: queue, Fence: fence, MaxAttempts: 3, CreatedAt: w.now(), FinishedAt: w.now(),
	}, w.run(skipped))
	run := w.run(newest)
	w.same("cause", core.CauseCatchUp, run.Cause)
	w.same("wake_at", w.now().Add(dispatchLease), run.WakeAt)
}

func testSlotTaken(w *world) {
	id := w.add(nil)
	m := w.due(id)
	w.end(w.begin(id), core.RunSucceeded)
	again := w.due(id)
	again.Rows[0].Slot = m.LastRun
	w.same("rows", 0, len(w.claim(again)))
	w.same("state of the slot's run", core.RunSucceeded, w.runs(id)[0].State)
	w.same("fence of the timer", again.Fence+1, w.get(id).Timer.Fence)
}

func testClaimWithoutRows(w *world) {
	id := w.add(nil)
	before := w.get(id).Timer
	m := w.due(id)
	m.Rows, m.LastRun, m.Done, m.NextAt = nil, time.Time{}, before.Done, w.now().Add(-time.Minute)
	w.same("rows", 0, len(w.claim(m)))
	want := before
	want.FireAt, want.Fence = w.now(), before.Fence+1
	w.same("timer", want, w.get(id).Timer)
	w.same("the next run covers", before.Done, w.run(w.next(id).Key).CoversFrom)
}

func testBadRow(w *world) {
	ids := inShard(11, 2)
	for _, id := range ids {
		w.add(func(s *core.Schedule) { s.ID, s.Name = id, id.String() })
	}
	moves := []core.Move{w.due(ids[0]), w.due(ids[1])}
	before := []core.Timer{w.get(ids[0]).Timer, w.get(ids[1]).Timer}
	for name, spoil := range map[string]func(*core.PlannedRow){
		"a text with NUL":  func(r *core.PlannedRow) { r.Queue = "a\x00b" },
		"a text not UTF-8": func(r *core.PlannedRow) { r.Queue = "a\xff" },
		"an unknown cause": func(r *core.PlannedRow) { r.Cause = "whim" },
	} {
		bad := moves[1]
		bad.Rows = []core.PlannedRow{moves[1].Rows[0]}
		spoil(&bad.Rows[0])
		got, err := w.Store.Claim(w.ctx, 11, []core.Move{moves[0], bad}, dispatchLease)
		w.fails(name, core.ErrBadRow, err)
		w.same(name+": rows", 0, len(got))
		w.same(name+": timers", before, []core.Timer{w.get(ids[0]).Timer, w.get(ids[1]).Timer})
	}
	w.same("rows of the good ones", 2, len(w.claim(moves...)))
}

func testClaimBatch(w *world) {
	ids := inShard(12, 3)
	var moves []core.Move
	for _, id := range ids {
		w.add(func(s *core.Schedule) { s.ID, s.Name = id, id.String() })
	}
	for _, id := range ids {
		moves = append(moves, w.due(id))
	}
	moves[1].Fence++
	w.same("rows", 2, len(w.claim(moves...)))
	w.same("runs of the move that did not hold", 0, len(w.runs(ids[1])))
}

func testPark(w *world) {
	id := w.add(nil)
	m := w.due(id)
	before := w.get(id).Timer
	stale := m
	stale.Fence++
	w.must(w.Store.Park(w.ctx, before.Shard, stale, "stale"))
	w.same("timer after a stale park", before, w.get(id).Timer)
	w.same("alert after a stale park", "", w.Alert(id))
	for n, text := range []string{"cannot be claimed", "still cannot"} {
		w.must(w.Store.Park(w.ctx, before.Shard, m, text))
		want := before
		want.FireAt, want.Fence = w.now().Add(time.Hour), before.Fence+int64(n)+1
		w.same("timer", want, w.get(id).Timer)
		w.same("alert", text, w.Alert(id))
		m.FireAt, m.Fence = want.FireAt, want.Fence
	}
	w.same("runs", 0, len(w.runs(id)))
}

func testClaimRace(w *world) {
	const rivals = 8
	id := w.add(nil)
	m := w.due(id)
	var made atomic.Int64
	var wg sync.WaitGroup
	for range rivals {
		wg.Go(func() {
			got, err := w.Store.Claim(w.ctx, core.ShardOf(id), []core.Move{m}, dispatchLease)
			if err != nil {
				w.Error(err)
			}
			made.Add(int64(len(got)))
		})
	}
	wg.Wait()
	w.same("rows made", int64(1), made.Load())
	w.same("runs", 1, len(w.runs(id)))
}

func testCovers(w *world) {
	id := w.add(nil)
	open := w.get(id).Timer.Done
	for n, end := range []core.RunState{core.RunSucceeded, core.RunDead, core.RunDead, core.RunSucceeded, "manual", core.RunDead, "manual", core.RunSucceeded} {
		var s core.Started
		if end == "manual" {
			r := w.trigger(id)
			w.same("interval of a manual run", []time.Time{open, open}, []time.Time{r.CoversFrom, r.CoversTo})
			s = w.start(message(core.Claimed{Key: r.Key, Fence: r.Fence}))[0]
			end = core.RunSucceeded
		} else {
			s = w.begin(id)
			w.same(fmt.Sprintf("interval of run %d", n+1), []time.Time{open, s.Key.Slot}, []time.Time{s.CoversFrom, s.CoversTo})
		}
		w.end(s, end)
		if end == core.RunSucceeded && s.CoversTo.After(open) {
			open = s.CoversTo
		}
	}
}
