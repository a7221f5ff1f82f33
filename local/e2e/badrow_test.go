package e2e_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// One of a hundred timers of a shard cannot be claimed, because the database
// refuses its run. The other 99 run; the one is put off by an hour, unsettled,
// and an alert tells of it (H9).
func TestH09OneBadTimerInABatch(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(w *world) {
		w.sql("ALTER TABLE runs ADD CONSTRAINT refused CHECK (queue <> 'bad')")
		due := w.now().Truncate(time.Second).Add(-time.Second)
		w.seed(99, "every 2h", due, due.Add(-time.Second), func(s *core.Schedule) { s.ID = idInShard(7) })
		w.seed(1, "every 2h", due, due.Add(-time.Second), func(s *core.Schedule) { s.ID, s.Job.Queue = idInShard(7), "bad" })
		box, done := newMailbox(w), &tally{}
		w.claimer(w.db, box, nil)
		w.executor(w.db, box, done, nil)
		w.until("99 runs have succeeded and one timer is put off", func() bool {
			return w.count("runs WHERE state = 'succeeded'") == 99 && w.count("timers WHERE fire_at > now() + INTERVAL '59 minutes' AND done < $1", due) == 1
		})

		w.allOnce(99, done)
		if n := w.count(`timers AS t JOIN schedules AS s ON s.id = t.schedule_id
			WHERE s.queue = 'bad' AND t.done < $1 AND t.fire_at BETWEEN now() + INTERVAL '59 minutes' AND now() + INTERVAL '61 minutes'`, due); n != 1 {
			w.Errorf("the bad timer is not an hour ahead and unsettled")
		}
		if n := w.count("alerts AS a JOIN schedules AS s ON s.id = a.schedule_id WHERE s.queue = 'bad'"); n != 1 || w.count("alerts") != 1 {
			w.Errorf("%d of %d alerts are about the bad timer, want 1 of 1", n, w.count("alerts"))
		}
		if n := w.count("timers WHERE fire_at = $1", due.Add(2*time.Hour)); n != 99 {
			w.Errorf("%d timers stand at their next slot, want 99", n)
		}
	})
}

// idInShard returns a new id of a schedule that belongs to the shard.
func idInShard(shard int16) uuid.UUID {
	for {
		if id := uuid.New(); core.ShardOf(id) == shard {
			return id
		}
	}
}
