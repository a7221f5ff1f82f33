package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
)

// Parts of the texts by which the proxy knows the statements.
const (
	claimText     = "FOR UPDATE OF t SKIP LOCKED"
	startText     = "AS u(schedule_id, scheduled_for, fence, token)"
	heartbeatText = "AS h(schedule_id, scheduled_for, fence)"
	finishText    = "AS f(schedule_id, scheduled_for, fence, state"
	sweepText     = "FOR UPDATE OF r SKIP LOCKED"
)

// eachMoment runs a test at both isolation levels, with a cut after the commit
// of its statement and with one before its arrival.
func eachMoment(t *testing.T, test func(w *world, when moment)) {
	for _, when := range []moment{afterCommit, beforeArrival} {
		t.Run(string(when), func(t *testing.T) {
			t.Parallel()
			eachLevel(t, func(w *world) { test(w, when) })
		})
	}
}

// The connection breaks at a claim, a start or a finish: each run is executed
// once all the same, by its first attempt, and none waits for a lease to end.
func TestStageStatementOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"claim": claimText, "start": startText, "finish": finishText} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMoment(t, func(w *world, when moment) {
				w.seedDue(10)
				p, url := newProxy(w)
				c := p.arm(text, when)
				box, done, recorded := newMailbox(w), &tally{}, make(chan executor.Report, 100)
				w.claimer(w.open(url), box, nil)
				stop := w.executor(w.open(url), box, done, func(c *executor.Config) {
					c.OnFinish = func(r executor.Report) { recorded <- r }
				})
				signal(w, "the connection is cut", c.done)
				w.allOnce(10, done)
				stop()
				if len(recorded) != 10 {
					w.Errorf("the executor knows of %d outcomes that they were recorded, want 10", len(recorded))
				}
			})
		})
	}
}

// allOnce waits until n runs have succeeded and checks that each was executed
// once, by its first attempt.
func (w *world) allOnce(n int, done *tally) {
	w.Helper()
	end := w.succeeded(n)
	if diff := cmp.Diff(map[int]int{1: n}, attempts(end)); diff != "" {
		w.Errorf("runs by attempts: %s", diff)
	}
	if diff := cmp.Diff(once(end), done.executions()); diff != "" {
		w.Errorf("executions: %s", diff)
	}
	if n := w.count("attempts"); n != 0 {
		w.Errorf("%d attempts failed", n)
	}
}

// The database goes away with the answer to a claim: the look-up of what the
// claim did has to wait, and still no run waits for its dispatch lease.
func TestH15OutageAtAClaim(t *testing.T) {
	t.Parallel()
	eachMoment(t, func(w *world, when moment) {
		w.seedDue(10)
		p, url := newProxy(w)
		c := p.armOutage(claimText, when)
		box, done := newMailbox(w), &tally{}
		w.claimer(w.open(url), box, nil)
		w.executor(w.db, box, done, nil)
		signal(w, "the connection is cut", c.done)
		w.until("the claimer has tried again", func() bool { return p.refusals() >= 5 })
		p.accepting()
		w.allOnce(10, done)
	})
}

// The database goes away with the answer to a start, for longer than a few
// tries: the executor goes on asking whether the run is its own.
func TestOutageAtAStart(t *testing.T) {
	t.Parallel()
	eachMoment(t, func(w *world, when moment) {
		w.seedDue(10)
		p, url := newProxy(w)
		c := p.armOutage(startText, when)
		box, done := newMailbox(w), &tally{}
		w.claimer(w.db, box, nil)
		w.executor(w.open(url), box, done, nil)
		signal(w, "the connection is cut", c.done)
		w.until("the executor has tried again", func() bool { return p.refusals() >= 7 })
		p.accepting()
		w.allOnce(10, done)
	})
}

// The database goes away with the answer to a finish: the outcome is recorded
// when it is back.
func TestOutageAtAFinish(t *testing.T) {
	t.Parallel()
	eachMoment(t, func(w *world, when moment) {
		w.seedDue(10)
		p, url := newProxy(w)
		c := p.armOutage(finishText, when)
		box, done := newMailbox(w), &tally{}
		w.claimer(w.db, box, nil)
		w.executor(w.open(url), box, done, nil)
		signal(w, "the connection is cut", c.done)
		w.until("the executor has tried again", func() bool { return p.refusals() >= 5 })
		p.accepting()
		w.allOnce(10, done)
	})
}

// The connection breaks at a heartbeat: the next one renews the lease, and the
// attempt goes on undisturbed.
func TestHeartbeatOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	eachMoment(t, func(w *world, when moment) {
		w.seedDue(1)
		p, url := newProxy(w)
		box, begun, leave := newMailbox(w), make(chan struct{}), make(chan struct{})
		done := &tally{then: func(ctx context.Context, _ core.Execution) error {
			close(begun)
			select {
			case <-leave:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}}
		w.claimer(w.db, box, nil)
		w.executor(w.open(url), box, done, func(c *executor.Config) { c.Lease = 6 * time.Second })
		signal(w, "the attempt begins", begun)
		c := p.arm(heartbeatText, when)
		signal(w, "the connection is cut", c.done)
		before := rows[time.Time](w, "SELECT wake_at FROM runs")[0]
		w.until("another heartbeat renews the lease", func() bool {
			return rows[time.Time](w, "SELECT wake_at FROM runs")[0].After(before)
		})
		close(leave)
		w.allOnce(1, done)
	})
}

// The connection breaks at a sweep that takes a silent run from its holder: the
// run is queued once, and the end of its dispatch lease brings its message.
func TestSweepOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	eachMoment(t, func(w *world, when moment) {
		w.seedDue(10)
		box, done := newMailbox(w), &tally{}
		stop := w.claimer(w.db, box, nil)
		startAll(w, box, 10, never)
		stop()
		w.sql("UPDATE runs SET wake_at = now() - INTERVAL '1 second'")

		p, url := newProxy(w)
		c := p.arm(sweepText, when)
		w.claimer(w.open(url), box, func(c *claimer.Config) { c.DispatchLease = 2 * time.Second })
		w.executor(w.db, box, done, nil)
		signal(w, "the connection is cut", c.done)
		end := w.succeeded(10)
		if diff := cmp.Diff(map[int]int{2: 10}, attempts(end)); diff != "" {
			w.Errorf("runs by attempts: %s", diff)
		}
		if diff := cmp.Diff(once(end), done.executions()); diff != "" {
			w.Errorf("executions of the second attempts: %s", diff)
		}
		if n := w.count("attempts WHERE attempt = 1"); n != 10 || w.count("attempts") != 10 {
			w.Errorf("%d of %d failed attempts are the silent ones, want 10 of 10", n, w.count("attempts"))
		}
	})
}
