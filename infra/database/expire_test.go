package database_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
)

// TestLeftovers: failed attempts go with their runs and deleted schedules go with their
// history, however many stay in front of them; what belongs to runs that stay stays.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	const keep = 60 * 24 * time.Hour
	fail := func(c core.Claimed, state core.RunState) {
		w.finish(held(w.start(delivery(c), time.Minute)[0]), state)
	}
	gone, alive, fresh := w.oldSlotRun(61, true), w.oldSlotRun(62, false), w.claimNow(w.overdue(nil))
	fail(gone, core.RunDead)
	fail(alive, core.RunRetrying)
	fail(fresh, core.RunDead)
	w.sweep() // nobody wants to be told of dead runs
	attempts := `INSERT INTO attempts (region, schedule_id, scheduled_for, attempt, tenant_id, fence, finished_at, error)
		SELECT $1, `
	w.sql(attempts+`$2::UUID, $3::TIMESTAMPTZ, n, $4::UUID, 1, now(), '' FROM generate_series(2, 1500) AS n`,
		region, alive.Key.ScheduleID, alive.Key.Slot, w.tenant)
	w.sql(attempts+`gen_random_uuid(), now() - INTERVAL '61 days', 1, $2::UUID, 1, now(), '' FROM generate_series(1, 2500) AS n`, region, w.tenant)
	deleted, recent, kept := w.overdue(nil), w.overdue(nil), w.overdue(nil)
	w.sql("UPDATE schedules SET deleted_at = now() - INTERVAL '61 days' WHERE id = $1", deleted)
	w.sql("UPDATE schedules SET deleted_at = now() - INTERVAL '59 days' WHERE id = $1", recent)
	for range 2 {
		_, err := w.db.DropExpired(w.ctx, keep)
		w.must(err)
	}
	got := []int{
		value[int](w, "SELECT count(*) FROM attempts WHERE schedule_id = $1", gone.Key.ScheduleID),
		value[int](w, "SELECT count(*) FROM attempts WHERE schedule_id = $1", alive.Key.ScheduleID),
		value[int](w, "SELECT count(*) FROM attempts WHERE schedule_id = $1", fresh.Key.ScheduleID),
		value[int](w, "SELECT count(*) FROM attempts"),
		value[int](w, "SELECT count(*) FROM schedules WHERE id = $1", deleted),
		value[int](w, "SELECT count(*) FROM schedules WHERE id = $1", recent),
		value[int](w, "SELECT count(*) FROM schedules WHERE id = $1", kept),
	}
	if diff := cmp.Diff([]int{0, 1500, 1, 1501, 0, 1, 1}, got); diff != "" {
		t.Errorf("attempts of a run that is gone, alive, fresh, and of all; schedules deleted long ago, lately, and not (-want +got):\n%s", diff)
	}
	if r := w.run(alive.Key); r.State.Final() {
		t.Errorf("the old run that is alive is %s", r.State)
	}
}
