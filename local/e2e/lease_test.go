package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
)

// silent is a store whose heartbeats hang until their time is up, as behind a
// network that swallows packets.
type silent struct{ executor.Store }

// Heartbeat renews nothing.
func (silent) Heartbeat(ctx context.Context, _ []core.Held, _ time.Duration) ([]core.Beat, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// farewell is when and why an attempt's context ended.
type farewell struct {
	at    time.Time
	cause error
}

// stubborn is a job that ignores every sign to stop until it is thawed.
type stubborn struct {
	targetFunc
	begun chan core.Execution
	ended chan farewell
	thaw  chan struct{}
}

func newStubborn() *stubborn {
	s := &stubborn{begun: make(chan core.Execution, 1), ended: make(chan farewell, 1), thaw: make(chan struct{})}
	s.targetFunc = func(ctx context.Context, e core.Execution) error {
		s.begun <- e
		<-ctx.Done()
		s.ended <- farewell{time.Now(), context.Cause(ctx)}
		<-s.thaw
		return nil
	}
	return s
}

// A holder is cut off from the database, and its job ignores every sign to
// stop for one and a half leases. The run goes to another executor, whose
// outcome counts. The first one knew before its lease ended.
func TestFrozenHolder(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	eachLevel(t, func(w *world) {
		w.seedDue(1)
		box, job, other := newMailbox(w), newStubborn(), &tally{}
		var reports []executor.Report
		w.claimer(w.db, box, nil)
		stop := w.executor(silent{w.db}, box, job, func(c *executor.Config) {
			c.Lease, c.Concurrency = lease, 1
			c.OnFinish = func(r executor.Report) { reports = append(reports, r) }
		})
		first := signal(w, "the first attempt begins", job.begun)
		leaseEnd := rows[time.Time](w, "SELECT wake_at FROM runs")[0]
		w.executor(w.db, box, other, nil)

		bye := signal(w, "the first attempt is told to end", job.ended)
		if !errors.Is(bye.cause, executor.ErrLeaseLost) {
			w.Errorf("the attempt ended with %v, want %v", bye.cause, executor.ErrLeaseLost)
		}
		if !bye.at.Before(leaseEnd) {
			w.Errorf("the attempt was told to end %s after its lease ended", bye.at.Sub(leaseEnd))
		}
		end := w.succeeded(1)
		w.until("one and a half leases are over", func() bool { return w.now().After(leaseEnd.Add(lease / 2)) })
		close(job.thaw)
		stop()

		if len(reports) > 0 {
			w.Errorf("the frozen executor recorded %+v", reports)
		}
		late, err := w.db.Finish(w.ctx, []core.Outcome{{Held: core.Held{Key: first.Key, Fence: first.Fence}, State: core.RunDead}})
		w.must(err)
		if len(late) > 0 {
			w.Errorf("the late outcome was accepted: %+v", late)
		}
		if diff := cmp.Diff(end, w.runs()); diff != "" {
			w.Errorf("the run changed after its end: %s", diff)
		}
		if diff := cmp.Diff(map[int]int{2: 1}, attempts(end)); diff != "" {
			w.Errorf("runs by attempts: %s", diff)
		}
		if diff := cmp.Diff(once(end), other.executions()); diff != "" {
			w.Errorf("executions by the second holder: %s", diff)
		}
	})
}
