package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/backfill"
)

func backfillTests() []test {
	return []test{
		{"a backfill runs its slots a few at a time", testBackfill},
		{"a backfill is advanced once for each fence", testBackfillFence},
		{"runs of a backfill keep the slot's interval and stand apart from the schedule", testBackfillRuns},
		{"a canceled backfill makes no more runs", testBackfillCancel},
		{"a backfill of a deleted schedule makes no runs", testBackfillGone},
		{"what is there of slots is told, backfills included", testSlotStates},
		{"a key that is taken is left alone", testBackfillTaken},
	}
}

// order creates a backfill of n hourly slots that passed.
func (w *world) order(id uuid.UUID, n, concurrency int, change func(*core.Backfill)) core.Backfill {
	w.Helper()
	slots := w.slots(&w.getSchedule(id).Schedule)
	b := core.Backfill{ID: uuid.New(), TenantID: w.tenant, ScheduleID: id, From: w.now().Add(-100 * time.Hour), To: w.now(), Concurrency: concurrency}
	if change != nil {
		change(&b)
	}
	var runs []core.BackfillRun
	for slot := slots.Next(w.now().Add(-50 * time.Hour)); len(runs) < n; slot = slots.Next(slot) {
		runs = append(runs, core.BackfillRun{Key: slot.Add(time.Microsecond), CoversFrom: slots.Prev(slot)})
	}
	w.must(w.Store.CreateBackfill(w.ctx, b, runs))
	w.must(w.Store.CreateBackfill(w.ctx, b, nil)) // sent again
	return w.backfill(b.ID)
}

func (w *world) getSchedule(id uuid.UUID) *core.Scheduled {
	w.Helper()
	s := w.get(id)
	return &s
}

func (w *world) backfill(id uuid.UUID) core.Backfill {
	w.Helper()
	b, err := w.Store.Backfill(w.ctx, w.tenant, id)
	w.must(err)
	return b
}

// fill moves a backfill on as the claimer does, and returns its new runs.
func (w *world) fill(id uuid.UUID) []core.Claimed {
	w.Helper()
	due, err := w.Store.DueBackfills(w.ctx, core.AllShards())
	w.must(err)
	for _, d := range due {
		step, ok := backfill.Step(d)
		if d.ID != id || !ok {
			continue
		}
		made, err := w.Store.AdvanceBackfill(w.ctx, step, dispatchLease)
		w.must(err)
		return made
	}
	return nil
}

func (w *world) runFill(c core.Claimed, state core.RunState) {
	w.Helper()
	w.end(w.start(message(c))[0], state)
}

func testBackfill(w *world) {
	id := w.add(func(s *core.Schedule) { s.MaxAttempts = 1 })
	b := w.order(id, 5, 2, nil)
	w.same("created", []any{core.BackfillRunning, 5, 0, int64(1), w.now()}, []any{b.State, b.Total, b.Admitted, b.Fence, b.CreatedAt})
	none, err := w.Store.DueBackfills(w.ctx, []int16{core.ShardOf(id) ^ 1})
	w.must(err)
	w.same("of other shards", []core.DueBackfill{}, none)
	first := w.fill(b.ID)
	w.same("made", 2, len(first))
	w.same("while both are alive", 0, len(w.fill(b.ID)))
	w.runFill(first[0], core.RunSucceeded)
	second := w.fill(b.ID)
	w.same("after one has ended", 1, len(second))
	w.runFill(first[1], core.RunDead)
	w.runFill(second[0], core.RunCanceled)
	b = w.backfill(b.ID)
	w.same("states", []core.RunState{core.RunDead, core.RunCanceled}, b.States)
	last := w.fill(b.ID)
	w.same("the last", 2, len(last))
	for _, c := range last {
		w.runFill(c, core.RunSucceeded)
	}
	w.same("nothing more", 0, len(w.fill(b.ID)))
	b = w.backfill(b.ID)
	w.same("finished", []any{core.BackfillFinished, 5, 3, 1, 1, 0, w.now()}, []any{b.State, b.Admitted, b.Succeeded, b.Dead, b.Canceled, len(b.Live), b.FinishedAt})
	all, err := w.Store.Backfills(w.ctx, w.tenant, id)
	w.must(err)
	w.same("listed", []core.Backfill{b}, all)
	_, err = w.Store.Backfill(w.ctx, uuid.New(), b.ID)
	w.fails("of another tenant", core.ErrNotFound, err)
}

func testBackfillFence(w *world) {
	b := w.order(w.add(nil), 3, 1, nil)
	due, err := w.Store.DueBackfills(w.ctx, core.AllShards())
	w.must(err)
	step, _ := backfill.Step(due[0])
	for n, want := range []int{1, 0} {
		made, err := w.Store.AdvanceBackfill(w.ctx, step, dispatchLease)
		w.must(err)
		w.same("made", want, len(made))
		w.same("fence", int64(2), w.backfill(b.ID).Fence)
		_ = n
	}
}

func testBackfillRuns(w *world) {
	id := w.add(func(s *core.Schedule) { s.Rules.TotalTimeout = 10 * time.Minute })
	live := w.begin(id) // overlap is skip
	before := w.get(id).Timer
	b := w.order(id, 2, 2, func(b *core.Backfill) { b.Payload = []byte(`{"n": 9}`) })
	made := w.fill(b.ID)
	w.same("made beside a live run", 2, len(made))
	r := w.run(made[0].Key)
	slot := r.Key.Slot.Truncate(time.Millisecond)
	w.same("run", []any{core.RunQueued, core.CauseBackfill, slot, slot.Add(-time.Hour), slot, before.Fence * 65536, w.now().Add(dispatchLease)},
		[]any{r.State, r.Cause, r.ScheduledFor(), r.CoversFrom, r.CoversTo, r.Fence, r.WakeAt})
	w.same("timer", before, w.get(id).Timer)
	s := w.start(message(made[0]))[0]
	left := 10 * time.Minute
	w.same("start", []any{`{"n": 9}`, left, slot}, []any{string(s.Payload), *s.Left, s.ScheduledFor()})
	w.end(live, core.RunSucceeded)
	next := w.begin(id)
	w.same("the schedule's next run", live.CoversTo, next.CoversFrom)
	beside := w.add(func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	b = w.order(beside, 1, 1, nil)
	w.same("no interval under allow", time.Time{}, w.run(w.fill(b.ID)[0].Key).CoversTo)
}

func testBackfillCancel(w *world) {
	b := w.order(w.add(nil), 3, 1, nil)
	c := w.fill(b.ID)[0]
	for range 2 {
		w.must(w.Store.CancelBackfill(w.ctx, w.tenant, b.ID))
		got := w.backfill(b.ID)
		w.same("canceled", []any{core.BackfillCanceled, w.now(), int64(3), 1}, []any{got.State, got.FinishedAt, got.Fence, len(got.Live)})
	}
	w.runFill(c, core.RunSucceeded)
	w.same("no more", 0, len(w.fill(b.ID)))
	w.same("what was alive", []core.RunState{core.RunSucceeded}, w.backfill(b.ID).States)
}

func testBackfillGone(w *world) {
	id := w.add(nil)
	b := w.order(id, 3, 1, nil)
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(id)))
	w.same("made", 0, len(w.fill(b.ID)))
	w.same("canceled", core.BackfillCanceled, w.backfill(b.ID).State)
}

func testSlotStates(w *world) {
	id := w.add(nil)
	c := w.next(id)
	slot := c.Key.Slot
	w.must(w.Store.CreateBackfill(w.ctx, core.Backfill{ID: uuid.New(), TenantID: w.tenant, ScheduleID: id, From: slot, To: w.now(), Concurrency: 1},
		[]core.BackfillRun{{Key: slot.Add(2 * time.Microsecond)}}))
	due, err := w.Store.DueBackfills(w.ctx, core.AllShards())
	w.must(err)
	w.fill(due[0].ID)
	got, err := w.Store.SlotStates(w.ctx, w.tenant, id, []time.Time{slot.Add(-time.Hour), slot})
	w.must(err)
	want := map[time.Time]core.SlotState{
		slot:                           {Slot: slot, Key: slot, State: core.RunQueued, Cause: core.CauseSchedule},
		slot.Add(2 * time.Microsecond): {Slot: slot, Key: slot.Add(2 * time.Microsecond), State: core.RunQueued, Cause: core.CauseBackfill},
	}
	found := map[time.Time]core.SlotState{}
	for _, s := range got {
		found[s.Key] = s
	}
	w.same("rows", want, found)
	got, err = w.Store.SlotStates(w.ctx, uuid.New(), id, []time.Time{slot})
	w.must(err)
	w.same("of another tenant", []core.SlotState{}, got)
}

func testBackfillTaken(w *world) {
	id := w.add(nil)
	one := w.order(id, 2, 2, nil)
	two := w.order(id, 2, 2, nil)
	made := w.fill(one.ID)
	w.same("made", 2, len(made))
	w.same("taken", 0, len(w.fill(two.ID)))
	for _, c := range made {
		w.runFill(c, core.RunSucceeded)
	}
	w.fill(two.ID)
	got := w.backfill(two.ID)
	w.same("counts for both", []any{core.BackfillFinished, 2}, []any{got.State, got.Succeeded})
}

func testExpiredBackfills(w *world) {
	id := w.add(nil)
	old, running := w.order(id, 1, 1, nil), w.order(id, 1, 1, nil)
	w.must(w.Store.CancelBackfill(w.ctx, w.tenant, old.ID))
	w.Advance(24 * time.Hour)
	young := w.order(id, 1, 1, nil)
	w.must(w.Store.CancelBackfill(w.ctx, w.tenant, young.ID))
	w.Advance(29*24*time.Hour + time.Second)
	_, err := w.Store.DropExpired(w.ctx, 30*24*time.Hour)
	w.must(err)
	_, err = w.Store.Backfill(w.ctx, w.tenant, old.ID)
	w.fails("the old one", core.ErrNotFound, err)
	w.same("those that are left", []core.BackfillState{core.BackfillRunning, core.BackfillCanceled},
		[]core.BackfillState{w.backfill(running.ID).State, w.backfill(young.ID).State})
}
