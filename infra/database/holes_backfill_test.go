package database_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/backfill"
)

func backfillHoles() []hole {
	return []hole{
		{
			name: "R_stale_step_of_a_backfill", scenario: staleStep,
			guards: []mutation{{file: "advance_backfill", guard: " AND b.fence = $3::INT8", instead: " AND $3::INT8 > 0"}},
		},
		{
			name: "R_backfill_of_a_deleted_schedule", scenario: stepAfterDelete,
			guards: []mutation{{
				file: "advance_backfill", guard: "JOIN timers AS t ON t.region = m.region AND t.schedule_id = m.schedule_id",
				instead: "CROSS JOIN (SELECT 1::INT8 AS fence) AS t",
			}},
		},
	}
}

// filling makes a backfill of three slots, one at a time.
func (w *world) filling(id uuid.UUID) uuid.UUID {
	w.Helper()
	b := core.Backfill{ID: uuid.New(), TenantID: w.tenant, ScheduleID: id, From: w.now().Add(-time.Hour), To: w.now(), Concurrency: 1}
	var runs []core.BackfillRun
	for n := range 3 {
		runs = append(runs, core.BackfillRun{Key: w.now().Truncate(time.Second).Add(time.Duration(n-60)*time.Minute + time.Microsecond)})
	}
	w.must(w.db.CreateBackfill(w.ctx, b, runs))
	return b.ID
}

// steps returns the step that a backfill is to take next.
func (w *world) nextStep() core.BackfillStep {
	w.Helper()
	due, err := w.db.DueBackfills(w.ctx, core.AllShards())
	w.must(err)
	if len(due) != 1 {
		w.Fatalf("%d backfills are due", len(due))
	}
	step, _ := backfill.Step(due[0])
	return step
}

func (w *world) advance(s core.BackfillStep) []core.Claimed {
	w.Helper()
	made, err := w.db.AdvanceBackfill(w.ctx, s, time.Minute)
	w.must(err)
	return made
}

// staleStep: a claimer reads, freezes while another moves on twice, and goes on.
func staleStep(w *world) string {
	id := w.schedule("@yearly", w.now(), nil)
	fill := w.filling(id)
	stale := w.nextStep()
	for range 2 {
		c := w.advance(w.nextStep())[0]
		w.finish(held(w.start(delivery(c), time.Minute)[0]), core.RunSucceeded)
	}
	w.advance(stale)
	b, err := w.db.Backfill(w.ctx, w.tenant, fill)
	w.must(err)
	if b.Admitted != 2 {
		return fmt.Sprintf("C4: a backfill that had made two runs says %d after a stale step", b.Admitted)
	}
	return ""
}

// stepAfterDelete: a claimer reads, the schedule is deleted, the claimer goes on.
func stepAfterDelete(w *world) string {
	id := w.schedule("@yearly", w.now(), nil)
	w.filling(id)
	step := w.nextStep()
	w.must(w.service().Delete(w.ctx, w.tenant, id))
	if made := w.advance(step); len(made) > 0 {
		return "C8: a backfill made a run after the delete of its schedule had been answered"
	}
	return ""
}
