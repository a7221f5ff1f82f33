package database_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

func claimHoles() []hole {
	return []hole{
		{
			name: "H02_pause_during_claim", scenario: pauseDuringClaim, stall: sleeping("claim", "want", "w"),
			guards: []mutation{{file: "apply_edit", guard: "AND t.fire_at = l.fire_at AND t.schedule_id = l.id", instead: "AND false"}},
		},
		{
			name: "H03_old_plan_after_edit", scenario: oldPlanAfterEdit,
			guards: []mutation{{file: "claim", guard: "t.fence = w.fence AND ", instead: ""}},
		},
		{
			name: "H04_never_early", scenario: neverEarly,
			guards: []mutation{{file: "claim", guard: "t.fire_at <= now() AND ", instead: "", and: &mutation{file: "claim", guard: "w.valid_from <= now() AND "}}},
		},
		{
			name: "H25_plan_by_a_clock_ahead", scenario: planAhead,
			guards: []mutation{{file: "claim", guard: " AND w.valid_from <= now()", instead: ""}},
		},
		{
			name: "H18_interval_after_overlap_changed", scenario: intervalAfterAllow,
			guards: []mutation{{file: "claim", guard: "LEAST(t.last_run, t.done)", instead: "t.last_run"}},
		},
		{
			name: "H05_stale_plan", scenario: stalePlan,
			guards: []mutation{{file: "claim", guard: " AND now() < w.valid_until", instead: ""}},
		},
		{
			name: "H11_overlap_skip", scenario: overlapSkip,
			guards: []mutation{{file: "claim", guard: "w.on_busy <> 'allow' AND p.state IN ('queued', 'running', 'retrying')", instead: "false"}},
		},
		{
			name: "H11_trigger_during_claim", scenario: triggerDuringClaim, stall: sleeping("claim", "want", "w"),
			guards: []mutation{
				{file: "claim", guard: "t.fence = w.fence AND ", instead: "", and: &mutation{file: "claim", guard: " AND t.fence = l.fence"}},
				{file: "trigger", guard: "open_from = NULL, fence = t.fence + 1", instead: "open_from = NULL"},
			},
		},
		{
			name: "H11_claim_during_trigger", scenario: claimDuringTrigger,
			guards: []mutation{{file: "trigger", guard: " AND t.fence = $4::INT8", instead: " AND $4::INT8 > 0"}},
		},
		{
			name: "H17_trigger_at_a_slot", scenario: triggerAtSlot, natural: triggerTakesSlot,
		},
		{
			name: "H18_covered_intervals", scenario: coveredIntervals,
			guards: []mutation{
				{file: "claim", guard: "CASE WHEN p.state = 'succeeded' THEN p.covers_to ELSE p.covers_from END", instead: "p.covers_to"},
				{file: "claim", guard: "CASE WHEN p.state = 'succeeded' THEN p.covers_to ELSE p.covers_from END", instead: "p.covers_from"},
			},
		},
		{
			name: "H21_no_due_time_below_now", scenario: noDueTimeBelowNow,
			guards: []mutation{{file: "claim", guard: "GREATEST(l.next_at, now())", instead: "l.next_at"}},
		},
		{
			name: "H22_fences_rise_over_runs", scenario: fencesRiseOverRuns,
			guards: []mutation{{file: "claim", guard: "m.fence * 65536", instead: "m.fence"}},
		},
	}
}

// pauseDuringClaim: a claim has taken its snapshot; pause commits and is
// answered; the claim goes on. Nothing may start after the answer.
func pauseDuringClaim(w *world) string {
	id := w.overdue(nil)
	m := w.move(id, w.now())
	var got []core.Claimed
	var wg sync.WaitGroup
	wg.Go(func() { got = w.claim(id, m) })
	w.waitAsleep()
	_, err := w.service().Pause(w.ctx, w.tenant, id, schedules.PauseOptions{})
	w.must(err)
	wg.Wait()
	if len(got) > 0 {
		return "C8: a run was made after pause had been answered"
	}
	return ""
}

// oldPlanAfterEdit: a plan of the old spec meets a timer that was paused,
// edited, resumed and stands at the same time again.
func oldPlanAfterEdit(w *world) string {
	id := w.overdue(nil)
	m := w.move(id, w.now())
	s := w.service()
	for _, step := range []func() (core.Scheduled, error){
		func() (core.Scheduled, error) { return s.Pause(w.ctx, w.tenant, id, schedules.PauseOptions{}) },
		func() (core.Scheduled, error) {
			return s.Edit(w.ctx, w.tenant, id, schedules.Fields{Spec: ptr("0 0 1 1 *")})
		},
		func() (core.Scheduled, error) { return s.Resume(w.ctx, w.tenant, id) },
	} {
		_, err := step()
		w.must(err)
	}
	w.sql("UPDATE timers SET fire_at = $2 WHERE schedule_id = $1", id, m.FireAt)
	if got := w.claim(id, m); len(got) > 0 {
		return "C8: a plan of the old spec made a run after the edit"
	}
	return ""
}

// neverEarly: a claimer whose clock is ahead.
func neverEarly(w *world) string {
	id := w.schedule("0 0 1 1 *", w.now(), nil)
	m := w.move(id, w.get(id).Timer.FireAt)
	if got := w.claim(id, m); len(got) > 0 {
		return "C3: a run was made before its time"
	}
	return ""
}

// stalePlan: planned on time, frozen, thawed ten minutes later.
func stalePlan(w *world) string {
	id := w.overdue(nil)
	m := w.move(id, w.get(id).Timer.FireAt)
	if got := w.claim(id, m); len(got) > 0 {
		return "C2: a plan made on time was carried out ten minutes late"
	}
	if got := w.claim(id, w.move(id, w.now())); len(got) != 2 {
		return fmt.Sprintf("C1: the new plan made %d rows, want a range and a run", len(got))
	}
	return ""
}

// planAhead: a timer is due, and the claimer plans for a time that has not come:
// its wall clock stepped forward between two looks at the database's.
func planAhead(w *world) string {
	newest := w.now().Truncate(time.Second).Add(-30 * time.Second)
	id := w.schedule("every 1m", newest.Add(-time.Second), func(s *core.Schedule) { s.Anchor = newest })
	if got := w.claim(id, w.move(id, w.now().Add(5*time.Minute))); len(got) > 0 {
		return fmt.Sprintf("C3: %d slots that have not come were recorded", len(got))
	}
	w.claimNow(id)
	return ""
}

// intervalAfterAllow: a manual run under overlap allow, then overlap skip: the
// next slot's interval must not begin behind its end.
func intervalAfterAllow(w *world) string {
	id := w.schedule("every 1h", w.now().Add(-time.Minute), func(s *core.Schedule) {
		s.Anchor, s.Overlap = w.now().Truncate(time.Second).Add(-30*time.Second), core.OverlapAllow
	})
	r, err := w.service().Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
	w.must(err)
	st := w.start(core.Delivery{Message: core.Message{Key: r.Key, Fence: r.Fence}, Token: uuid.New()}, time.Minute)
	w.finish(held(st[0]), core.RunSucceeded)
	_, err = w.service().Edit(w.ctx, w.tenant, id, schedules.Fields{Overlap: ptr(core.OverlapSkip)})
	w.must(err)
	got := w.run(w.claimNow(id).Key)
	if got.CoversFrom.After(got.CoversTo) {
		return fmt.Sprintf("covered intervals: one begins %s after its end", got.CoversFrom.Sub(got.CoversTo).Round(time.Second))
	}
	return ""
}

// overlapSkip: a slot comes while the run before is alive.
func overlapSkip(w *world) string {
	id := w.schedule("every 1s", w.now().Add(-time.Second), nil)
	first := w.claimNow(id)
	w.waitDue(id)
	var second []core.Claimed
	for range 50 { // a plan is void at the next second
		if second = w.claim(id, w.move(id, w.now())); len(second) > 0 {
			break
		}
	}
	for _, c := range second {
		if c.State != core.RunSkipped {
			return "C10: two runs are alive under overlap skip"
		}
	}
	last := w.runs(id)[0]
	if last.Reason != core.ReasonOverlap {
		return fmt.Sprintf("the slot's row says %q, want overlap", last.Reason)
	}
	w.finish(held(w.start(delivery(first), time.Minute)[0]), core.RunSucceeded)
	w.waitDue(id)
	w.claimNow(id)
	return ""
}

// live counts the runs of a schedule that are alive.
func (w *world) live(id uuid.UUID) int {
	w.Helper()
	return value[int](w, "SELECT count(*) FROM runs WHERE schedule_id = $1 AND wake_at IS NOT NULL", id)
}

// triggerDuringClaim: claim takes its snapshot, trigger is admitted, the claim
// goes on with what it read.
func triggerDuringClaim(w *world) string {
	id := w.overdue(nil)
	m := w.move(id, w.now())
	var wg sync.WaitGroup
	wg.Go(func() { w.claim(id, m) })
	w.waitAsleep()
	_, err := w.service().Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
	w.must(err)
	wg.Wait()
	if n := w.live(id); n != 1 {
		return fmt.Sprintf("C10: %d runs are alive under overlap skip", n)
	}
	return ""
}

// claimDuringTrigger: trigger reads, a claim commits, trigger writes.
func claimDuringTrigger(w *world) string {
	id := w.overdue(nil)
	before := w.get(id)
	slot := before.Now.Truncate(time.Millisecond).Add(time.Microsecond)
	c := w.claimNow(id)
	w.sql("UPDATE timers SET last_run = NULL WHERE schedule_id = $1", id) // the answer that trigger would have read
	_, err := w.db.Trigger(w.ctx, w.tenant, core.Manual{ScheduleID: before.Schedule.ID, Fence: before.Timer.Fence, Slot: slot})
	if err == nil || w.live(id) != 1 {
		return fmt.Sprintf("C10: trigger went past the claim of %s", c.Key.Slot.Format(time.RFC3339))
	}
	return ""
}

// triggerAtSlot: a manual run must never take a slot's key.
func triggerAtSlot(w *world) string {
	id := w.overdue(nil)
	r, err := w.service().Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
	w.must(err)
	if r.Key.Slot.Equal(r.Key.Slot.Truncate(time.Millisecond)) {
		return "C4: a manual run has the key that a slot could have"
	}
	if got := w.claim(id, w.move(id, w.now())); len(got) != 2 {
		return fmt.Sprintf("C1: the claim after a trigger made %d rows, want 2", len(got))
	}
	return ""
}

// triggerTakesSlot: a manual run at the very instant of a slot that is due.
func triggerTakesSlot(w *world) string {
	id := w.overdue(nil)
	cur := w.get(id)
	slot := w.slots(&cur.Schedule).Prev(cur.Now)
	r, err := w.db.Trigger(w.ctx, w.tenant, core.Manual{ScheduleID: cur.Schedule.ID, Fence: cur.Timer.Fence, Slot: slot})
	w.must(err)
	w.finish(held(w.start(core.Delivery{Message: core.Message{Key: r.Key, Fence: r.Fence}, Token: uuid.New()}, time.Minute)[0]), core.RunSucceeded)
	for _, c := range w.claim(id, w.move(id, w.now())) {
		if c.Key.Slot.Equal(slot) {
			return ""
		}
	}
	return "C1: the manual run swallowed the slot"
}

// coveredIntervals: successes, failures and triggers; the intervals of what
// succeeded must follow each other without gap or overlap.
func coveredIntervals(w *world) string {
	start := w.now().Truncate(time.Minute).Add(-30 * time.Second)
	id := w.schedule("every 1s", start, nil)
	for _, end := range []core.RunState{core.RunSucceeded, core.RunDead, core.RunDead, core.RunSucceeded, "manual", core.RunDead, core.RunSucceeded} {
		var st []core.Started
		if end == "manual" {
			r, err := w.service().Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
			w.must(err)
			st = w.start(core.Delivery{Message: core.Message{Key: r.Key, Fence: r.Fence}, Token: uuid.New()}, time.Minute)
			end = core.RunSucceeded
		} else {
			w.waitDue(id)
			st = w.start(delivery(w.claimSoon(id)), time.Minute)
		}
		if len(st) != 1 {
			return "a run was not started"
		}
		w.finish(held(st[0]), end)
	}
	open := start
	runs := w.runs(id)
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		if r.State != core.RunSucceeded {
			continue
		}
		if !r.CoversFrom.Equal(open) {
			return fmt.Sprintf("covered intervals: one ends at %s, the next begins at %s", open.Format(time.TimeOnly), r.CoversFrom.Format(time.TimeOnly))
		}
		open = r.CoversTo
	}
	return ""
}

// noDueTimeBelowNow: a claim that comes late moves the timer to a slot that has
// passed as well; below the low-water mark nobody would look for it.
func noDueTimeBelowNow(w *world) string {
	now := w.now()
	id := w.schedule("every 1s", now.Truncate(time.Second).Add(-20*time.Second), nil)
	s := w.get(id)
	m := w.move(id, s.Timer.FireAt)
	if len(w.claim(id, m)) == 0 {
		return "the plan was refused"
	}
	if got := w.get(id).Timer.FireAt; got.Before(now) {
		return fmt.Sprintf("C12: the claim wrote a due time %s below its own now", now.Sub(got).Round(time.Second))
	}
	return ""
}

// fencesRiseOverRuns: the fence handed to a job must rise over the runs of its
// schedule, or the job's store refuses the newer run.
func fencesRiseOverRuns(w *world) string {
	id := w.schedule("every 1s", w.now().Add(-time.Second), nil)
	st := w.start(delivery(w.claimNow(id)), time.Minute)[0]
	for range 3 { // three attempts, each with a higher fence
		w.finish(held(st), core.RunRetrying)
		w.expire()
		for _, s := range w.sweep() {
			st = w.start(core.Delivery{Message: core.Message{Key: s.Key, Fence: s.Fence}, Token: uuid.New()}, time.Minute)[0]
		}
	}
	w.finish(held(st), core.RunSucceeded)
	w.waitDue(id)
	next := w.start(delivery(w.claimSoon(id)), time.Minute)[0]
	if next.Fence <= st.Fence {
		return fmt.Sprintf("C5: a later run has fence %d, the one before had %d", next.Fence, st.Fence)
	}
	return ""
}
