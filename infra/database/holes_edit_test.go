package database_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/schedules"
)

const (
	settles      = "FROM moved AS m\n  CROSS JOIN"
	settlesNever = "FROM (SELECT x.* FROM moved AS x WHERE false) AS m\n  CROSS JOIN"
)

func editHoles() []hole {
	return []hole{
		{
			name: "H06_edit_with_a_due_slot", scenario: editWithDueSlot,
			guards: []mutation{{file: "apply_edit", guard: settles, instead: settlesNever}},
		},
		{
			name: "H06_claim_during_edit", scenario: claimDuringEdit,
			guards: []mutation{{file: "apply_edit", guard: " AND t.fence = $5::INT8", instead: " AND $5::INT8 > 0"}},
		},
		{
			name: "H06_edit_outlives_its_plan", scenario: editOutlivesPlan,
			guards: []mutation{{file: "apply_edit", guard: " AND now() < $6::TIMESTAMPTZ", instead: " AND $6::TIMESTAMPTZ IS NOT NULL"}},
		},
		{
			name: "H06_edit_while_a_run_is_alive", scenario: editWhileAlive,
			guards: []mutation{{file: "apply_edit", guard: "$21::TEXT <> 'allow' AND p.state IN ('queued', 'running', 'retrying')", instead: "$21::TEXT = ''"}},
		},
		{name: "H06_window_only", scenario: editWindowOnly},
		{name: "H06_neither_slots_nor_window", scenario: editNeither},
		{
			name: "H07_slots_of_a_pause", scenario: slotsOfPause,
			guards: []mutation{{file: "apply_edit", guard: settles, instead: settlesNever}},
		},
		{
			name: "H08_delete_between_claim_and_start", scenario: deleteBeforeStart,
			guards: []mutation{{file: "cancel_live", guard: "r.wake_at IS NOT NULL AND", instead: "false AND"}},
		},
		{
			name: "H08_start_of_a_deleted_schedule", scenario: startDeleted,
			guards: []mutation{{file: "start", guard: "s.id IS NULL OR s.deleted_at IS NOT NULL AS gone", instead: "false AS gone"}},
		},
		{
			name: "H08_deleted_run_is_not_retried", scenario: deletedRunNotRetried,
			guards: []mutation{
				{file: "finish", guard: "WHEN r.cancel_requested THEN 'canceled'\n        WHEN r.attempt", instead: "WHEN r.attempt"},
				{file: "sweep", guard: "WHEN r.cancel_requested THEN 'canceled'", instead: "WHEN false THEN 'canceled'"},
			},
		},
		{
			name: "H08_claim_during_delete", scenario: claimDuringDelete,
			guards: []mutation{{file: "delete_schedule", guard: " AND t.fence = $5::INT8", instead: " AND $5::INT8 > 0"}},
		},
		{
			name: "R_calendar_closes_during_claim", scenario: closeDuringClaim, stall: sleeping("claim", "want", "w"),
			guards: []mutation{{file: "raise_fences", guard: "SET fence = t.fence + 1", instead: "SET fence = t.fence"}},
		},
		{
			name: "H21_edit_writes_no_due_time_below_now", scenario: editBelowNow,
			guards: []mutation{{file: "apply_edit", guard: "GREATEST($19::TIMESTAMPTZ, now())", instead: "$19::TIMESTAMPTZ"}},
		},
	}
}

// slotRow returns the row that a slot ended in, alone or in a range.
func (w *world) slotRow(id uuid.UUID, slot time.Time) (core.Run, bool) {
	w.Helper()
	for _, r := range w.runs(id) {
		if r.Key.Slot.Equal(slot) || !r.RangeFrom.IsZero() && !slot.Before(r.RangeFrom) && !slot.After(r.Key.Slot) {
			return r, true
		}
	}
	return core.Run{}, false
}

// editWithDueSlot: a slot is due and not yet claimed when its spec is replaced.
func editWithDueSlot(w *world) string {
	id := w.overdue(nil)
	due := w.get(id)
	slot := w.slots(&due.Schedule).Prev(due.Now)
	_, err := w.service().Edit(w.ctx, w.tenant, id, schedules.Fields{Spec: ptr("0 0 1 1 *")})
	w.must(err)
	r, ok := w.slotRow(id, slot)
	if !ok {
		return "C1: the edit lost the slot that was due"
	}
	if r.State != core.RunQueued {
		return fmt.Sprintf("the due slot is %s, want queued", r.State)
	}
	return ""
}

// edited plans an edit of the spec without writing it.
func (w *world) edited(id uuid.UUID, text string) core.Edit {
	w.Helper()
	cur := w.get(id)
	next := cur.Schedule
	next.Spec, next.Anchor = text, time.Time{}
	return plan.Edit(&cur, plan.Change{
		Old: cur.Schedule, New: next, OldSlots: w.slots(&cur.Schedule), NewSlots: w.slots(&next), SlotsChanged: true,
	})
}

// claimDuringEdit: an edit is planned, a claim takes the slots, the edit writes.
func claimDuringEdit(w *world) string {
	id := w.overdue(nil)
	e := w.edited(id, "0 0 1 1 *")
	w.claimNow(id)
	if err := w.db.Apply(w.ctx, w.tenant, e); !errors.Is(err, core.ErrChanged) {
		return fmt.Sprintf("C1: an edit planned before a claim was written after it (%v)", err)
	}
	return ""
}

// editOutlivesPlan: an edit is planned, frozen, and written after a further slot
// came.
func editOutlivesPlan(w *world) string {
	id := w.schedule("every 1s", w.now().Add(-time.Second), nil)
	e := w.edited(id, "0 0 1 1 *")
	w.waitFor("the plan to end", func() bool { return !w.now().Before(e.ValidUntil) })
	if err := w.db.Apply(w.ctx, w.tenant, e); !errors.Is(err, core.ErrChanged) {
		return fmt.Sprintf("C1: an edit was written although a slot came after its plan (%v)", err)
	}
	return ""
}

// editWhileAlive: the owed slot may not run beside a live run.
func editWhileAlive(w *world) string {
	id := w.schedule("every 1s", w.now().Add(-time.Second), nil)
	w.claimNow(id)
	w.waitDue(id)
	_, err := w.service().Edit(w.ctx, w.tenant, id, schedules.Fields{Spec: ptr("0 0 1 1 *")})
	w.must(err)
	if n := w.live(id); n != 1 {
		return fmt.Sprintf("C10: %d runs are alive after an edit under overlap skip", n)
	}
	if r := w.runs(id)[0]; r.Reason != core.ReasonEdited {
		return fmt.Sprintf("the owed slot says %q, want edited", r.Reason)
	}
	return ""
}

// editWindowOnly: a new window moves the start of a slot that is not due yet and
// settles nothing.
func editWindowOnly(w *world) string {
	id := w.schedule("0 0 1 1 *", w.now(), nil)
	before := w.get(id)
	_, err := w.service().Edit(w.ctx, w.tenant, id, schedules.Fields{Window: ptr(20 * time.Minute)})
	w.must(err)
	after := w.get(id)
	want := before.Timer.FireAt.Add(after.Schedule.Offset())
	if !after.Timer.FireAt.Equal(want) || !after.Timer.Done.Equal(before.Timer.Done) {
		return fmt.Sprintf("fire_at %s done %s, want %s and %s", after.Timer.FireAt, after.Timer.Done, want, before.Timer.Done)
	}
	return ""
}

// editNeither: an edit of the payload leaves the timer where it is, due or not.
func editNeither(w *world) string {
	id := w.overdue(nil)
	before := w.get(id)
	_, err := w.service().Edit(w.ctx, w.tenant, id, schedules.Fields{Job: &core.Job{Queue: "test", Payload: []byte(`{"n":2}`)}})
	w.must(err)
	after := w.get(id)
	if !after.Timer.FireAt.Equal(before.Timer.FireAt) || after.Timer.Fence != before.Timer.Fence+1 || len(w.runs(id)) != 0 {
		return fmt.Sprintf("the timer went from %+v to %+v", before.Timer, after.Timer)
	}
	return ""
}

// slotsOfPause: slots pass during a pause; resume records them in one row and
// goes on with the next.
func slotsOfPause(w *world) string {
	id := w.overdue(nil)
	first := w.get(id).Timer.FireAt
	s := w.service()
	_, err := s.Pause(w.ctx, w.tenant, id, schedules.PauseOptions{})
	w.must(err)
	got, err := s.Resume(w.ctx, w.tenant, id)
	w.must(err)
	r, ok := w.slotRow(id, first)
	if !ok {
		return "C1: the slots of a pause have no row"
	}
	if r.State != core.RunSkipped || r.Reason != core.ReasonPaused || len(w.runs(id)) != 1 {
		return "the slots of a pause are\n" + describe(w.runs(id))
	}
	if !got.Timer.FireAt.After(got.Now) {
		return "the timer fires for a slot of the pause"
	}
	return ""
}

// deleteBeforeStart: a run is claimed, its schedule is deleted, the message
// arrives.
func deleteBeforeStart(w *world) string {
	id := w.overdue(nil)
	c := w.claimNow(id)
	w.must(w.service().Delete(w.ctx, w.tenant, id))
	if got := w.run(c.Key); got.State != core.RunCanceled {
		return fmt.Sprintf("C9: the run of a deleted schedule is %s", got.State)
	}
	if st := w.start(delivery(c), time.Minute); len(st) != 0 {
		return "C8: a run of a deleted schedule was started"
	}
	w.expire()
	if sw := w.sweep(); len(sw) != 0 {
		return "C9: the sweep publishes a run of a deleted schedule"
	}
	return ""
}

// startDeleted: the same where the tombstone came first and the run was not
// canceled, as after a restore.
func startDeleted(w *world) string {
	id := w.overdue(nil)
	c := w.claimNow(id)
	w.sql("UPDATE schedules SET deleted_at = now() WHERE id = $1", id)
	for _, s := range w.start(delivery(c), time.Minute) {
		if s.State != core.RunCanceled {
			return "C8: a run of a deleted schedule was started"
		}
	}
	if got := w.run(c.Key); got.State != core.RunCanceled {
		return fmt.Sprintf("C9: the run of a deleted schedule is %s", got.State)
	}
	return ""
}

// deletedRunNotRetried: running when its schedule is deleted, then failed or
// lost.
func deletedRunNotRetried(w *world) string {
	for _, end := range []string{"failed", "lost"} {
		id := w.overdue(nil)
		c := w.claimNow(id)
		st := w.start(delivery(c), time.Minute)[0]
		w.must(w.service().Delete(w.ctx, w.tenant, id))
		beats, err := w.db.Heartbeat(w.ctx, []core.Held{held(st)}, time.Minute)
		w.must(err)
		if len(beats) != 1 || !beats[0].CancelRequested {
			return "the heartbeat does not bring the request to cancel"
		}
		if end == "failed" {
			_, err = w.tryFinish(held(st), core.RunRetrying)
		} else {
			w.sql("UPDATE runs SET wake_at = now() WHERE schedule_id = $1 AND wake_at IS NOT NULL", id)
			_, err = w.trySweep()
		}
		if err != nil {
			return fmt.Sprintf("C9: the end of the %s run was refused: %v", end, err)
		}
		if got := w.run(c.Key); got.State != core.RunCanceled {
			return fmt.Sprintf("C9: the %s run of a deleted schedule is %s", end, got.State)
		}
	}
	return ""
}

// claimDuringDelete: delete is planned, a claim commits a run, delete writes.
func claimDuringDelete(w *world) string {
	id := w.overdue(nil)
	cur := w.get(id)
	e := plan.Delete(&cur, w.slots(&cur.Schedule))
	w.claimNow(id)
	if err := w.db.Delete(w.ctx, w.tenant, e); !errors.Is(err, core.ErrChanged) {
		return fmt.Sprintf("C8: a delete planned before a claim was written after it (%v)", err)
	}
	return ""
}

// editBelowNow: a plan whose next slot has passed by the time it is written.
func editBelowNow(w *world) string {
	now := w.now()
	id := w.schedule("0 0 1 1 *", now, nil)
	e := w.edited(id, "0 0 2 1 *")
	e.NextAt = now.Add(-20 * time.Second)
	w.must(w.db.Apply(w.ctx, w.tenant, e))
	if got := w.get(id).Timer.FireAt; got.Before(now) {
		return "C12: the edit wrote a due time below its own now"
	}
	return ""
}
