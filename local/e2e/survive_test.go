package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// TestOutageWithLiveRuns: the database is gone for 20 seconds while 200 runs are live.
// Half of their jobs end meanwhile, half afterwards: each is recorded, none is executed
// again. The lease is 45 s, since the last renewal is up to a third of it old.
func TestOutageWithLiveRuns(t *testing.T) {
	t.Parallel()
	const n, outage = 200, 20 * time.Second
	w := newWorld(t, dbtest.New(t))
	ids, _ := w.seedDue(n)
	early := map[string]bool{}
	for _, id := range ids[:n/2] {
		early[id.String()] = true
	}
	during, after := make(chan struct{}), make(chan struct{})
	box, done := newMailbox(w), &tally{then: func(ctx context.Context, e core.Execution) error {
		leave := after
		if early[e.Key.ScheduleID.String()] {
			leave = during
		}
		select {
		case <-leave:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}
	w.claimer(w.open(w.url), box, nil)
	w.executor(w.open(w.url), box, done, func(c *executor.Config) { c.Concurrency, c.Lease = n, 45*time.Second })
	w.until("all are live", func() bool { return len(interrupted(w)) == n })

	admin := w.closeDatabase()
	began := time.Now()
	close(during)
	w.until("20 seconds are over", func() bool { return time.Since(began) > outage })
	admin("ALTER DATABASE %s ALLOW_CONNECTIONS true")
	w.until("what ended meanwhile is recorded", func() bool { return w.count("runs WHERE state = 'succeeded'") == n/2 })
	if live := len(interrupted(w)); live != n/2 {
		t.Errorf("%d runs are live after the outage, want %d", live, n/2)
	}
	close(after)
	w.allOnce(n, done)
}

// off is a clock that goes wrong by some time.
type off struct {
	clock.System
	by time.Duration
}

// Now returns the wrong time.
func (o off) Now() time.Time { return o.System.Now().Add(o.by) }

// TestClockOff: the clocks of claimer and executor are 30 seconds off, each to another
// side. The database's decides: no run is early, late or done twice.
func TestClockOff(t *testing.T) {
	t.Parallel()
	const seconds = 8
	for name, by := range map[string]time.Duration{"claimer ahead": 30 * time.Second, "claimer behind": -30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dbtest.New(t))
			first := w.now().Truncate(time.Second).Add(2 * time.Second)
			w.seed(10, "every 1s", first, first.Add(-time.Second), func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
			box, done := newMailbox(w), &tally{}
			stopClaimer := w.claimer(w.db, box, func(c *claimer.Config) { c.Clock = off{by: by} })
			stopExecutor := w.executor(w.db, box, done, func(c *executor.Config) { c.Clock, c.Lease = off{by: -by}, 30*time.Second })
			w.until("8 seconds are settled", func() bool {
				return w.count("timers WHERE done >= $1", first.Add((seconds-1)*time.Second)) == 10
			})
			stopClaimer()
			w.until("all runs have ended", func() bool { return w.count("runs WHERE state NOT IN ('succeeded', 'skipped')") == 0 })
			stopExecutor()
			own := 0
			for _, r := range w.runs() {
				if r.StartedAt == nil {
					continue
				}
				own++
				if lag := r.StartedAt.Sub(r.ScheduledFor); lag < 0 || lag > 3*time.Second {
					t.Errorf("the run of %s started %s after its slot", r.ScheduledFor, lag)
				}
				if got := done.executions()[r.key()]; got != 1 || r.Attempt != 1 {
					t.Errorf("the run of %s was executed %d times in %d attempts", r.ScheduledFor, got, r.Attempt)
				}
			}
			if own < 10*seconds/2 { // a busy machine merges some
				t.Errorf("%d of %d slots have a run of their own", own, 10*seconds)
			}
			w.noGaps()
		})
	}
}
