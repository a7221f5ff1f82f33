package e2e_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// TestBugs plays what other schedulers were reported for and takes a database and
// several holders to show. Each is a subtest that is named by its id.
func TestBugs(t *testing.T) {
	t.Parallel()
	for id, play := range map[string]func(*world){
		"bug-h46": zombie, "bug-h47": orphan, "bug-h48": outlivedLease, "bug-h49": poison, "bug-h51": deadRunBlocks,
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			play(newWorld(t, dbtest.New(t)))
		})
	}
}

// claimedOnce returns the messages of n due runs.
func (w *world) claimedOnce(n int) []core.Message {
	w.Helper()
	w.seedDue(n)
	box := newMailbox(w)
	stop := w.claimer(w.db, box, nil)
	w.until("all are claimed", func() bool { return box.Len(queue) == n })
	stop()
	return box.published()
}

func held(s core.Started) core.Held { return core.Held{Key: s.Key, Fence: s.Fence} }

// A holder freezes, its lease ends and another has the run. What the first one reports
// is refused, and its next heartbeat tells it to stop.
func zombie(w *world) {
	first, next := w.lost(w.claimedOnce(1))
	second, err := w.db.Start(w.ctx, []core.Delivery{{Message: next[0]}}, never)
	w.must(err)
	before := w.runs()
	got, err := w.db.Finish(w.ctx, []core.Outcome{{Held: held(first[0]), State: core.RunSucceeded}})
	w.must(err)
	beats, err := w.db.Heartbeat(w.ctx, []core.Held{held(first[0]), held(second[0])}, never)
	w.must(err)
	if len(got) > 0 || len(beats) != 1 || beats[0].Held != held(second[0]) {
		w.Errorf("the stale holder finished %v; of both heartbeats came back %v", got, beats)
	}
	after := w.runs()
	before[0].WakeAt, after[0].WakeAt = nil, nil // which the second heartbeat moved
	if diff := cmp.Diff(before, after); diff != "" {
		w.Errorf("the run of the second holder changed: %s", diff)
	}
	got, err = w.db.Finish(w.ctx, []core.Outcome{{Held: held(second[0]), State: core.RunSucceeded}})
	w.must(err)
	if len(got) != 1 {
		w.Errorf("the second holder finished %v", got)
	}
}

// A live run that nobody holds is queued again within its lease and a sweep, and one
// without a lease cannot be written.
func orphan(w *world) {
	ms := w.claimedOnce(1)
	_, err := w.db.Start(w.ctx, []core.Delivery{{Message: ms[0]}}, 2*time.Second)
	w.must(err)
	if _, err := w.watch.Exec(w.ctx, "UPDATE runs SET wake_at = NULL WHERE state = 'running'"); err == nil {
		w.Error("a run may be running without a lease")
	}
	box, done := newMailbox(w), &tally{}
	w.claimer(w.db, box, nil)
	w.executor(w.db, box, done, nil)
	r := w.succeeded(1)[0]
	if r.Attempt != 2 || len(done.executions()) != 1 {
		w.Errorf("the run took %d attempts, and the executor saw %v", r.Attempt, done.executions())
	}
	failed := rows[time.Duration](w, "SELECT finished_at - started_at FROM attempts")[0]
	if failed < 2*time.Second || failed > 8*time.Second {
		w.Errorf("the lost attempt was found after %s, want its lease of 2 s and a sweep", failed)
	}
}

// A healthy run that takes longer than its lease is executed once.
func outlivedLease(w *world) {
	w.seedDue(1)
	const lease = 3 * time.Second
	box, done := newMailbox(w), &tally{then: func(ctx context.Context, _ core.Execution) error {
		select {
		case <-time.After(lease * 4 / 3 * 2):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}
	w.claimer(w.db, box, nil)
	for range 2 {
		w.executor(w.db, box, done, func(c *executor.Config) { c.Lease = lease })
	}
	w.allOnce(1, done)
}

// A job kills each executor that tries it: that stops after its five attempts. It
// costs the runs beside it an attempt each time, and no more: they are done.
func poison(w *world) {
	const attempts = 5
	due := w.now().Truncate(time.Second).Add(-time.Second)
	bad := w.seed(1, "every 1h", due, due.Add(-time.Second), func(s *core.Schedule) {
		s.MaxAttempts, s.Job.Payload = attempts, []byte(deadly)
	})[0]
	w.seed(20, "every 1h", due, due.Add(-time.Second), func(s *core.Schedule) { s.MaxAttempts = attempts + 1 })
	w.claimer(w.db, nil, func(c *claimer.Config) {
		c.Backoff = core.Backoff{Initial: 100 * time.Millisecond, Max: 100 * time.Millisecond}
	})
	begun := 0
	for range attempts {
		p := w.process(executorRole)
		if err := p.ended(); err == nil {
			w.Fatal("the executor lives on")
		}
		for e, n := range w.wrote(p) {
			if e.what == "begin" && e.key.ScheduleID == bad {
				begun += n
			}
		}
		p.gone()
		w.sql("UPDATE runs SET wake_at = now() WHERE state = 'running'") // its lease ends
		w.until("the sweep has found it", func() bool {
			return w.count("runs WHERE schedule_id = $1 AND state IN ('queued', 'dead')", bad) == 1
		})
	}
	last := w.process(executorRole)
	w.until("all others have succeeded", func() bool { return w.count("runs WHERE state = 'succeeded'") == 20 })
	r := rows[string](w, "SELECT state || ' ' || reason || ' ' || attempt FROM runs WHERE schedule_id = $1", bad)
	if diff := cmp.Diff([]string{"dead lost 5"}, r); diff != "" || begun != attempts {
		w.Errorf("it began %d times: %s", begun, diff)
	}
	for e := range w.wrote(last) {
		if e.key.ScheduleID == bad {
			w.Errorf("it was tried after its end")
		}
	}
}

// A dead run keeps none of the slots behind it from running.
func deadRunBlocks(w *world) {
	first := w.now().Truncate(time.Second).Add(time.Second)
	w.seed(1, "every 1s", first, first.Add(-time.Second), nil)
	var tried atomic.Bool
	box, done := newMailbox(w), &tally{then: func(context.Context, core.Execution) error {
		if tried.CompareAndSwap(false, true) {
			return core.Permanent(errors.New("broken"))
		}
		return nil
	}}
	w.claimer(w.db, box, nil)
	w.executor(w.db, box, done, nil)
	w.until("slots behind a dead run have run", func() bool {
		return w.count("runs AS r JOIN runs AS d ON d.state = 'dead' AND d.scheduled_for < r.scheduled_for WHERE r.state = 'succeeded'") >= 2
	})
	if n := w.count("runs WHERE state = 'dead'"); n != 1 {
		w.Errorf("%d runs are dead\n%s", n, describe(w.runs()))
	}
}
