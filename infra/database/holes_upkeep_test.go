package database_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/infra/database"
)

func upkeepHoles() []hole {
	return []hole{
		{name: "H09_slot_without_a_partition", scenario: slotWithoutPartition, natural: slotWithoutDefault},
		{name: "H09_day_that_the_default_partition_has_rows_of", scenario: dayInDefault},
		{
			name: "H10_retention_and_live_runs", scenario: retentionOfLiveRun,
			guards: []mutation{{file: "day_alive", guard: "r.wake_at IS NOT NULL", instead: "false"}},
		},
		{
			name: "H10_retention_of_another_region", scenario: retentionOfAnotherRegion,
			guards: []mutation{{file: "day_alive", guard: "r.wake_at IS NOT NULL", instead: "r.wake_at IS NOT NULL AND r.region = 'other'"}},
		},
		{
			name: "H18_interval_of_a_live_run", scenario: intervalOfLiveRun,
			guards: []mutation{{file: "hand_over_intervals", guard: "p.state IN ('succeeded', 'dead', 'canceled') AND", instead: "", and: &mutation{
				file: "hand_over_intervals", guard: "p.finished_at < $3::TIMESTAMPTZ", instead: "$3::TIMESTAMPTZ IS NOT NULL",
			}}},
		},
		{
			name: "H18_interval_outlives_its_row", scenario: intervalOutlivesRow,
			guards: []mutation{{file: "hand_over_intervals", guard: "t.open_from IS NULL", instead: "false"}},
		},
	}
}

// oldSlotRun claims the run of a slot of so many days ago, in a partition of
// its own if asked for.
func (w *world) oldSlotRun(days int, partition bool) core.Claimed {
	w.Helper()
	at := w.now().Truncate(24*time.Hour).AddDate(0, 0, -days).Add(12 * time.Hour)
	if partition {
		day := at.Truncate(24 * time.Hour)
		w.sql(fmt.Sprintf("CREATE TABLE runs_p%s PARTITION OF runs FOR VALUES FROM ('%s') TO ('%s')",
			day.Format("20060102"), day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339)))
	}
	return w.claimNow(w.schedule("at "+at.Format(time.RFC3339), at.Add(-time.Second), nil))
}

// slotWithoutPartition: a slot from 61 days ago beside others in one claim.
func slotWithoutPartition(w *world) string {
	c := w.oldSlotRun(61, false)
	if got := w.run(c.Key); got.State != core.RunQueued {
		return fmt.Sprintf("C1: the run of a slot from 61 days ago is %s", got.State)
	}
	return ""
}

// slotWithoutDefault: the same without a default partition.
func slotWithoutDefault(w *world) string {
	w.sql("DROP TABLE runs_default")
	at := w.now().Truncate(24*time.Hour).AddDate(0, 0, -61)
	id := w.schedule("at "+at.Format(time.RFC3339), at.Add(-time.Second), nil)
	if _, err := w.db.Claim(w.ctx, core.ShardOf(id), []core.Move{w.move(id, w.now())}, time.Minute); err != nil {
		return fmt.Sprintf("C1: the whole claim is refused: %v", err)
	}
	return ""
}

// dayInDefault: the partition maker failed for a week; rows of today lie in the
// default partition when it works again.
func dayInDefault(w *world) string {
	name := "runs_p" + w.now().Format("20060102")
	w.sql("DROP TABLE " + name)
	c := w.claimed(nil)
	w.must(w.db.EnsurePartitions(w.ctx))
	if got := w.run(c.Key); got.State != core.RunQueued {
		return fmt.Sprintf("the run is %s", got.State)
	}
	if n := value[int](w, "SELECT count(*) FROM "+name); n == 0 {
		return "the row did not move to the partition of its day"
	}
	return ""
}

// retentionOfLiveRun: history of 35 days ago is dropped with its day, unless
// something in it is alive.
func retentionOfLiveRun(w *world) string {
	c := w.oldSlotRun(35, true)
	const keep = 30 * 24 * time.Hour
	if n, err := w.db.DropExpired(w.ctx, keep); err != nil || n != 0 {
		return fmt.Sprintf("C1: retention dropped a day with a live run (%d days, %v)", n, err)
	}
	w.finish(held(w.start(delivery(c), time.Minute)[0]), core.RunSucceeded)
	if n, err := w.db.DropExpired(w.ctx, keep); err != nil || n != 1 {
		return fmt.Sprintf("retention kept a day in which nothing is alive (%d days, %v)", n, err)
	}
	return ""
}

// retentionOfAnotherRegion: a process of one region must not drop a day in which
// a run of another is alive.
func retentionOfAnotherRegion(w *world) string {
	c := w.oldSlotRun(40, true)
	other, err := database.Open(w.ctx, database.Config{URL: w.url, Region: "other", Logger: quiet(), Rewrite: w.rewrite})
	w.must(err)
	defer other.Close()
	if n, err := other.DropExpired(w.ctx, 30*24*time.Hour); err != nil || n != 0 {
		return fmt.Sprintf("C1: retention of one region dropped a live run of another (%d days, %v)", n, err)
	}
	if got := w.run(c.Key); got.State != core.RunQueued {
		return fmt.Sprintf("the run is %s", got.State)
	}
	return ""
}

// intervalOfLiveRun: retention passes while a run is alive that is older than
// what is kept; then the run succeeds.
func intervalOfLiveRun(w *world) string {
	c := w.oldSlotRun(35, false)
	st := w.start(delivery(c), time.Minute)
	_, err := w.db.DropExpired(w.ctx, 30*24*time.Hour)
	w.must(err)
	w.finish(held(st[0]), core.RunSucceeded)
	r, err := w.service().Trigger(w.ctx, w.tenant, c.Key.ScheduleID, schedules.TriggerOptions{})
	w.must(err)
	if first := w.run(c.Key); !r.CoversFrom.Equal(first.CoversTo) {
		return fmt.Sprintf("covered intervals: one ends at %s, the next begins at %s", first.CoversTo, r.CoversFrom)
	}
	return ""
}

// intervalOutlivesRow: the last run failed and its row expires: the next run
// still covers from where it began.
func intervalOutlivesRow(w *world) string {
	at := w.now().Truncate(24*time.Hour).AddDate(0, 0, -35).Add(12 * time.Hour)
	day := at.Truncate(24 * time.Hour)
	w.sql(fmt.Sprintf("CREATE TABLE runs_p%s PARTITION OF runs FOR VALUES FROM ('%s') TO ('%s')",
		day.Format("20060102"), day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339)))
	opened := at.Add(-time.Hour)
	id := w.schedule("at "+at.Format(time.RFC3339), opened, nil)
	w.finish(held(w.start(delivery(w.claimNow(id)), time.Minute)[0]), core.RunDead)
	w.sweep() // somebody is told of the death, or nobody wants to know
	if n, err := w.db.DropExpired(w.ctx, 30*24*time.Hour); err != nil || n != 1 {
		return fmt.Sprintf("retention answered %d days, %v", n, err)
	}
	r, err := w.service().Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
	w.must(err)
	if !r.CoversFrom.Equal(opened) {
		return fmt.Sprintf("covered intervals: %s to the expired run are nobody's", opened.Format(time.RFC3339))
	}
	st := w.start(core.Delivery{Message: core.Message{Key: r.Key, Fence: r.Fence}, Token: uuid.New()}, time.Minute)
	if len(st) != 1 {
		return "the manual run was not started"
	}
	return ""
}
