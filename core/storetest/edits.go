package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
)

func editTests() []test {
	return []test{
		{"an edit changes the content and leaves the timer in place", testEditContent},
		{"an edit of the slots moves the timer, never below now", testEditMoves},
		{"an edit whose plan does not hold does nothing", testEditGuards},
		{"slots owed before an edit get their rows", testEditSettles},
		{"the first interval begins where the schedule did, edits or not", testEditFirst},
		{"an edit with a refused row is not carried out", testEditBadRow},
		{"of edits at the same time one is carried out", testEditRace},
		{"an edit between plan and claim makes the claim void", testEditDuringClaim},
		{"a deleted schedule ends its waiting runs and asks the running", testDelete},
		{"a delete records the slots owed", testDeleteSettles},
		{"a delete whose plan does not hold does nothing", testDeleteGuards},
	}
}

// planEdit plans a change of content that leaves the slots as they are.
func (w *world) planEdit(id uuid.UUID, change func(*core.Schedule)) core.Edit {
	w.Helper()
	cur := w.get(id)
	next := cur.Schedule
	change(&next)
	slots := w.slots(&cur.Schedule)
	return plan.Edit(&cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: slots})
}

func (w *world) edit(id uuid.UUID, change func(*core.Schedule)) {
	w.Helper()
	w.must(w.Store.Apply(w.ctx, w.tenant, w.planEdit(id, change)))
}

// respec plans a change to "every 3h" with an origin half an hour from now.
func (w *world) respec(id uuid.UUID) core.Edit {
	w.Helper()
	cur := w.get(id)
	next := cur.Schedule
	next.Spec, next.Anchor = "every 3h", cur.Now.Truncate(time.Second).Add(30*time.Minute)
	return plan.Edit(&cur, plan.Change{
		Old: cur.Schedule, New: next, OldSlots: w.slots(&cur.Schedule), NewSlots: w.slots(&next), SlotsChanged: true,
	})
}

func testEditContent(w *world) {
	other, id := w.add(nil), w.add(nil)
	bystander, before := w.get(other), w.get(id)
	w.Advance(time.Minute)
	change := func(s *core.Schedule) {
		s.Name, s.TimeZone, s.MisfireGrace, s.Overlap, s.Timeout, s.MaxAttempts = "new", "Asia/Tokyo", time.Hour, core.OverlapAllow, 0, 9
		s.DSTGap, s.DSTOverlap, s.Exact, s.CatchUpWithin = core.DSTGapRunAfter, core.DSTOverlapFirst, true, 2*time.Hour
		s.Job = core.Job{Queue: "other", Payload: []byte(`[1, 2]`)}
		s.Version, s.TenantID, s.Region = 77, uuid.New(), "elsewhere"
		s.CreatedAt, s.UpdatedAt = time.Time{}, time.Time{}
	}
	w.edit(id, change)
	want := before
	change(&want.Schedule)
	want.Schedule.Version, want.Schedule.TenantID, want.Schedule.Region = 2, w.tenant, w.Region
	want.Schedule.CreatedAt, want.Schedule.UpdatedAt = before.Schedule.CreatedAt, w.now()
	want.Timer.Fence, want.Now, bystander.Now = 2, w.now(), w.now()
	w.same("schedule", want, w.get(id))
	w.same("another schedule", bystander, w.get(other))
}

func testEditMoves(w *world) {
	id := w.add(nil)
	parked, _ := w.reach(core.RunRunning, nil)
	m := w.due(parked)
	m.OnBusy = core.BusyWait
	w.claim(m)
	for _, id := range []uuid.UUID{id, parked} {
		before := w.get(id).Timer
		e := w.respec(id)
		e.Settle, e.LastRun = nil, time.Time{}
		w.must(w.Store.Apply(w.ctx, w.tenant, e))
		want := before
		want.FireAt, want.Done, want.Fence, want.Parked = e.NextAt, e.Done, before.Fence+1, false
		got := w.get(id)
		w.same("timer", want, got.Timer)
		w.same("spec", "every 3h", got.Schedule.Spec)
	}
	e := w.respec(id)
	e.NextAt = w.now().Add(-time.Hour)
	w.must(w.Store.Apply(w.ctx, w.tenant, e))
	w.same("a due time below now", w.now(), w.get(id).Timer.FireAt)
	cur := w.get(id)
	w.must(w.Store.Apply(w.ctx, w.tenant, plan.Pause(&cur, w.slots(&cur.Schedule), time.Time{}, "")))
	cur = w.get(id)
	w.same("state of a paused schedule", core.SchedulePaused, cur.State())
	w.same("fire_at of a paused schedule", core.Forever, cur.Timer.FireAt)
}

// guards are the ways in which the plan of an edit does not hold.
func (w *world) guards() map[string]func(*core.Edit) {
	return map[string]func(*core.Edit){
		"another version":      func(e *core.Edit) { e.Version++ },
		"an older version":     func(e *core.Edit) { e.Version-- },
		"another fence":        func(e *core.Edit) { e.Fence++ },
		"an older fence":       func(e *core.Edit) { e.Fence-- },
		"a plan past its life": func(e *core.Edit) { e.ValidUntil = w.now() },
		"an unknown schedule":  func(e *core.Edit) { e.Schedule.ID = uuid.New() },
	}
}

func testEditGuards(w *world) {
	id := w.add(nil)
	before := w.get(id)
	for name, change := range w.guards() {
		e := w.respec(id)
		change(&e)
		w.fails(name, core.ErrChanged, w.Store.Apply(w.ctx, w.tenant, e))
		w.same(name, before, w.get(id))
	}
	e := w.respec(id)
	e.ValidUntil = w.now().Add(time.Microsecond)
	w.must(w.Store.Apply(w.ctx, w.tenant, e))
	w.fails("sent again", core.ErrChanged, w.Store.Apply(w.ctx, w.tenant, e))
}

func testEditSettles(w *world) {
	for _, state := range []core.RunState{core.RunQueued, core.RunRunning, core.RunRetrying, core.RunSucceeded, core.RunDead} {
		for _, policy := range []core.OnBusy{core.BusySkip, core.BusyAllow} {
			what := fmt.Sprintf("%s, %s", state, policy)
			id, h := w.reach(state, nil)
			w.twin(id, h.Key.Slot, contrary(state))
			before := w.get(id).Timer
			first := before.FireAt
			w.to(first.Add(90 * time.Minute))
			e := w.respec(id)
			e.OnBusy = policy
			w.must(w.Store.Apply(w.ctx, w.tenant, e))
			want := before
			want.FireAt, want.Done, want.Fence = e.NextAt, e.Done, before.Fence+1
			key := core.RunKey{Region: w.Region, ScheduleID: id, Slot: first.Add(time.Hour)}
			run := core.Run{
				Key: key, TenantID: w.tenant, Cause: core.CauseCatchUp, Queue: queue, MaxAttempts: 3, Fence: want.Fence * 65536, CreatedAt: w.now(),
			}
			if !state.Final() && policy == core.BusySkip {
				run.State, run.Reason, run.FinishedAt = core.RunSkipped, core.ReasonEdited, w.now()
			} else {
				want.LastRun = key.Slot
				run.State, run.WakeAt = core.RunQueued, w.now()
			}
			if run.State == core.RunQueued && policy == core.BusySkip {
				run.CoversFrom, run.CoversTo = w.covered(before), key.Slot
			}
			w.same(what+": timer", want, w.get(id).Timer)
			w.same(what+": run", run, w.run(key))
			older := w.runs(id)[1]
			w.same(what+": older slot", []any{first, core.RunSkipped, core.ReasonMisfire}, []any{older.Key.Slot, older.State, older.Reason})
		}
	}
}

func testEditFirst(w *world) {
	id := w.add(nil)
	before := w.get(id).Timer
	w.to(before.FireAt)
	e := w.respec(id)
	skipped := e
	skipped.LastRun, skipped.Settle = time.Time{}, nil
	w.must(w.Store.Apply(w.ctx, w.tenant, skipped))
	e.Version, e.Fence = e.Version+1, e.Fence+1
	w.must(w.Store.Apply(w.ctx, w.tenant, e))
	w.same("start of the first interval", before.Done, w.runs(id)[0].CoversFrom)
	w.end(w.start(message(core.Claimed{Key: w.runs(id)[0].Key, Fence: w.runs(id)[0].Fence}))[0], core.RunSucceeded)
	w.same("start of the second", before.FireAt, w.begin(id).CoversFrom)
}

func testEditBadRow(w *world) {
	id := w.add(nil)
	w.to(w.get(id).Timer.FireAt)
	before := w.get(id)
	e := w.respec(id)
	e.Settle[0].Queue = "a\x00b"
	w.fails("a text with NUL", core.ErrBadRow, w.Store.Apply(w.ctx, w.tenant, e))
	e = w.respec(id)
	e.Settle[0].Cause = "whim"
	w.fails("an unknown cause", core.ErrBadRow, w.Store.Apply(w.ctx, w.tenant, e))
	w.same("schedule", before, w.get(id))
	w.same("runs", 0, len(w.runs(id)))
}

func testEditRace(w *world) {
	id := w.add(nil)
	e := w.respec(id)
	var done atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := w.Store.Apply(w.ctx, w.tenant, e)
			if err == nil {
				done.Add(1)
				return
			}
			w.fails("an edit that came late", core.ErrChanged, err)
		})
	}
	wg.Wait()
	w.same("edits carried out", int64(1), done.Load())
	w.same("version", int64(2), w.get(id).Schedule.Version)
}

func testEditDuringClaim(w *world) {
	id := w.add(nil)
	m := w.due(id)
	w.edit(id, func(s *core.Schedule) { s.MaxAttempts = 7 })
	w.same("rows of the void claim", 0, len(w.claim(m)))
	w.same("attempts of the run of a new plan", 7, w.run(w.next(id).Key).MaxAttempts)
}

func testDelete(w *world) {
	for _, state := range []core.RunState{core.RunQueued, core.RunRunning, core.RunRetrying, core.RunSucceeded, core.RunDead} {
		id, h := w.reach(state, nil)
		want := w.run(h.Key)
		w.Advance(time.Second)
		w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(id)))
		switch state {
		case core.RunRunning:
			want.CancelRequested, want.Reason = true, core.ReasonDeleted
		case core.RunQueued, core.RunRetrying:
			want.State, want.CancelRequested, want.Reason = core.RunCanceled, true, core.ReasonDeleted
			want.Fence, want.WakeAt, want.FinishedAt = want.Fence+1, time.Time{}, w.now()
		}
		w.same("run that was "+string(state), want, w.run(h.Key))
		_, err := w.Store.Get(w.ctx, w.tenant, id)
		w.fails("get", core.ErrNotFound, err)
		w.same("runs", 1, len(w.runs(id)))
		timers, _, err := w.Store.ReadTimers(w.ctx, []uuid.UUID{id})
		w.must(err)
		w.same("timers", 0, len(timers))
	}
}

func testDeleteSettles(w *world) {
	id := w.add(nil)
	first := w.get(id).Timer.FireAt
	w.to(first.Add(90 * time.Minute))
	m := w.due(id)
	e := w.deletion(id)
	e.Settle[0].Skipped = false // nothing of a deleted schedule runs, whatever the plan says
	w.must(w.Store.Delete(w.ctx, w.tenant, e))
	w.same("rows", []core.Run{{
		Key: core.RunKey{Region: w.Region, ScheduleID: id, Slot: first.Add(time.Hour)}, TenantID: w.tenant, State: core.RunSkipped,
		Cause: core.CauseSchedule, Reason: core.ReasonDeleted, RangeFrom: first, RangeCount: 2, Queue: queue, MaxAttempts: 3, Fence: 2 * 65536,
		CreatedAt: w.now(), FinishedAt: w.now(),
	}}, w.runs(id))
	w.same("rows of a claim planned before", 0, len(w.claim(m)))
}

func testDeleteGuards(w *world) {
	id, h := w.reach(core.RunQueued, nil)
	before, run := w.get(id), w.run(h.Key)
	for name, change := range w.guards() {
		e := w.deletion(id)
		change(&e)
		w.fails(name, core.ErrChanged, w.Store.Delete(w.ctx, w.tenant, e))
		w.same(name, before, w.get(id))
		w.same(name, run, w.run(h.Key))
	}
	e := w.deletion(id)
	w.must(w.Store.Delete(w.ctx, w.tenant, e))
	w.fails("sent again", core.ErrChanged, w.Store.Delete(w.ctx, w.tenant, e))
}
