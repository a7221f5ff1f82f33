package database_test

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
)

func policyHoles() []hole {
	return []hole{
		{
			name: "H11_overlap_queue_one", scenario: queueOne,
			guards: []mutation{
				{file: "claim", guard: "w.on_busy <> 'allow' AND p.state IN ('queued', 'running', 'retrying')", instead: "false"},
				{file: "claim", guard: "WHERE NOT m.parked\n", instead: "WHERE true\n"},
			},
		},
		{
			name: "H12_cancel_previous", scenario: cancelPrevious,
			guards: []mutation{{file: "claim", guard: "w.on_busy <> 'allow' AND p.state IN ('queued', 'running', 'retrying')", instead: "false"}},
		},
		{
			name: "H12_cancel_by_a_plan_that_is_void", scenario: cancelByAVoidPlan,
			guards: []mutation{{file: "cancel_previous", guard: "AND i.fence = w.fence\n", instead: "\n"}},
		},
		{
			name: "H19_run_all_in_batches", scenario: runAllInBatches,
			natural: runAllWithoutTheRangeFirst,
		},
		{
			name: "S33_max_runs", scenario: maxRuns,
			guards: []mutation{{file: "claim", guard: "ELSE t.runs_left - l.uses END", instead: "ELSE t.runs_left END"}},
		},
		{
			name: "S38_too_late_to_start", scenario: tooLate,
			guards: []mutation{{file: "start", guard: "WHEN m.gone OR r.late_at < now() THEN 'canceled'", instead: "WHEN m.gone THEN 'canceled'"}},
		},
	}
}

// again claims a schedule whose next slot has come, as a claimer does: what is to
// be recorded goes before what is to run. It ends with a run, or when one waits.
func (w *world) again(s core.Scheduled) []core.Claimed {
	w.Helper()
	id := s.Schedule.ID
	for range 5 {
		w.waitDue(id)
		cur := w.get(id)
		got := w.claim(id, w.move(id, cur.Now))
		for _, c := range got {
			if c.State == core.RunQueued {
				return []core.Claimed{c}
			}
		}
		if w.get(id).Timer.Parked {
			return nil
		}
	}
	return nil
}

func (w *world) alive(s core.Scheduled) int {
	w.Helper()
	n := 0
	for _, r := range w.runs(s.Schedule.ID) {
		if !r.State.Final() {
			n++
		}
	}
	return n
}

// queueOne: a slot comes while a run is alive; it waits, is no row meanwhile, and
// runs when the other has ended.
func queueOne(w *world) string {
	id := w.schedule("every 1s", w.now(), func(s *core.Schedule) { s.Overlap = core.OverlapQueueOne })
	s := w.get(id)
	st := w.start(delivery(w.again(s)[0]), 60e9)[0]
	w.again(s)
	if n := w.alive(s); n != 1 {
		return fmt.Sprintf("C10: %d runs are alive under overlap queue_one", n)
	}
	if n := len(w.runs(id)); n != 1 {
		return fmt.Sprintf("C1: a slot that waits has a row: %d rows", n)
	}
	w.finish(held(st), core.RunSucceeded)
	w.again(s)
	if n := w.alive(s); n != 1 {
		return fmt.Sprintf("C1: %d runs are alive after the one before has ended", n)
	}
	return ""
}

// cancelPrevious: the new run waits until the old one has ended.
func cancelPrevious(w *world) string {
	id := w.schedule("every 1s", w.now(), func(s *core.Schedule) { s.Overlap = core.OverlapCancelPrevious })
	s := w.get(id)
	st := w.start(delivery(w.again(s)[0]), 60e9)[0]
	w.waitDue(id)
	cur := w.get(id)
	m := w.move(id, cur.Now)
	_, err := w.db.CancelPrevious(w.ctx, cur.Timer.Shard, []core.Move{m})
	w.must(err)
	w.claim(id, m)
	if n := w.alive(s); n != 1 {
		return fmt.Sprintf("C10: %d runs are alive while the one before is asked to end", n)
	}
	w.finish(held(st), core.RunCanceled)
	w.again(s)
	if n := w.alive(s); n != 1 {
		return fmt.Sprintf("C1: %d runs are alive after the one before has ended", n)
	}
	return ""
}

// cancelByAVoidPlan: a claimer plans, a pause is answered, the claimer goes on: what
// runs is left alone.
func cancelByAVoidPlan(w *world) string {
	id := w.schedule("every 1s", w.now(), func(s *core.Schedule) { s.Overlap = core.OverlapCancelPrevious })
	c := w.again(w.get(id))[0]
	w.waitDue(id)
	cur := w.get(id)
	m := w.move(id, cur.Now)
	// The timer stays due where it is, under another fence.
	next := cur.Schedule
	next.MaxAttempts = 9
	slots := w.slots(&cur.Schedule)
	e := plan.Edit(&cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: slots})
	if err := w.db.Apply(w.ctx, w.tenant, e); err != nil {
		return ""
	}
	m.ValidUntil = core.Forever
	_, err := w.db.CancelPrevious(w.ctx, cur.Timer.Shard, []core.Move{m})
	w.must(err)
	if got := w.run(c.Key); got.State != core.RunQueued {
		return fmt.Sprintf("C6: a plan that was void canceled a run: %s", got.State)
	}
	return ""
}

// missedFive is a schedule with five missed slots and a cap of two.
func missedFive(w *world) core.Scheduled {
	id := w.schedule("every 1h", w.now().Add(-5*3600e9-60e9), func(s *core.Schedule) {
		s.Misfire, s.Overlap, s.Rules.MisfireCap = core.MisfireRunAll, core.OverlapSkip, 2
	})
	return w.get(id)
}

func countRuns(w *world, s core.Scheduled) string {
	ran := 0
	for _, r := range w.runs(s.Schedule.ID) {
		if r.State != core.RunSkipped {
			ran++
		}
	}
	if ran != 2 {
		return fmt.Sprintf("C2: %d of five missed slots ran, the cap is 2", ran)
	}
	return ""
}

// runAllInBatches: each claim is planned anew, and all together keep the cap.
func runAllInBatches(w *world) string {
	s := missedFive(w)
	for range 4 {
		for _, c := range w.again(s) {
			if c.State == core.RunQueued {
				w.finish(held(w.start(delivery(c), 60e9)[0]), core.RunSucceeded)
			}
		}
		if w.get(s.Schedule.ID).Timer.FireAt.After(w.now()) {
			break
		}
	}
	return countRuns(w, s)
}

// runAllWithoutTheRangeFirst counts the cap from where the last batch ended: each
// batch finds the rest missed anew and takes its oldest.
func runAllWithoutTheRangeFirst(w *world) string {
	s := missedFive(w)
	slots := w.slots(&s.Schedule)
	for range 5 {
		cur := w.get(s.Schedule.ID)
		slot := slots.Next(cur.Timer.Done)
		if slot.After(cur.Now) {
			break
		}
		m := w.move(s.Schedule.ID, cur.Now)
		m.Done, m.LastRun, m.NextAt, m.OnBusy = slot, slot, slots.Next(slot), core.BusySkip
		m.Rows = []core.PlannedRow{{Slot: slot, Cause: core.CauseCatchUp, Queue: "test", MaxAttempts: 1}}
		m.ValidFrom = cur.Timer.FireAt
		for _, c := range w.claim(s.Schedule.ID, m) {
			w.finish(held(w.start(delivery(c), 60e9)[0]), core.RunSucceeded)
		}
	}
	return countRuns(w, s)
}

// maxRuns: the limit counts down with each run that is made.
func maxRuns(w *world) string {
	id := w.schedule("every 1s", w.now(), func(s *core.Schedule) { s.Overlap, s.Rules.MaxRuns = core.OverlapAllow, 2 })
	s := w.get(id)
	for range 3 {
		if s.State() == core.ScheduleCompleted {
			break
		}
		w.again(s)
		s = w.get(id)
	}
	if n := len(w.runs(id)); n != 2 || s.State() != core.ScheduleCompleted {
		return fmt.Sprintf("a schedule of two runs ran %d times and is %s", n, s.State())
	}
	return ""
}

// tooLate: a run waits in the queue until its time is over.
func tooLate(w *world) string {
	c := w.claimed(func(s *core.Schedule) { s.CatchUpWithin = 2 * 3600e9 })
	w.sql("UPDATE runs SET late_at = now() - INTERVAL '1 second' WHERE schedule_id = $1", c.Key.ScheduleID)
	got, err := w.db.Start(w.ctx, []core.Delivery{delivery(c)}, time.Minute)
	if err != nil || len(got) == 1 && got[0].State == core.RunRunning {
		return fmt.Sprintf("C2: a run is started after the time in which it is useful, or not told: %v", err)
	}
	return ""
}
