package executor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// An outage of less than a lease costs no attempt: the start goes on being sent
// with the same token, by which the database knows it again.
func TestStartOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		began := time.Now()
		tokens := map[uuid.UUID]int{}
		f.start = func(_ context.Context, ds []core.Delivery) ([]core.Started, error) {
			tokens[ds[0].Token]++
			if time.Since(began) < 20*time.Second {
				return nil, core.ErrUnknownOutcome
			}
			return started(ds), nil
		}
		executed := make(chan struct{})
		stop := run(t, f, func(context.Context, core.Execution) error {
			close(executed)
			return nil
		})
		f.deliveries <- delivery(1)
		select {
		case <-executed:
		case <-time.After(time.Minute):
			t.Error("the run was given up")
		}
		stop()
		if len(tokens) != 1 {
			t.Errorf("the start was sent with %d tokens, want 1", len(tokens))
		}
	})
}

// Once the lease of a start that happened would be over, sending it again is of
// no use.
func TestStartGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		began := time.Now()
		var last time.Duration
		f.start = func(context.Context, []core.Delivery) ([]core.Started, error) {
			last = time.Since(began)
			return nil, core.ErrUnknownOutcome
		}
		stop := run(t, f, func(context.Context, core.Execution) error {
			t.Error("a run was executed that nobody started")
			return nil
		})
		f.deliveries <- delivery(1)
		time.Sleep(5 * time.Minute)
		stop()
		if last < 29*time.Second || last > 31*time.Second {
			t.Errorf("the start was sent for %s, want about 29s", last)
		}
	})
}

// A stale double that comes first must not push out the message that can start
// the run.
func TestStaleDoubleInABatch(t *testing.T) {
	t.Parallel()
	for name, fences := range map[string][]int64{"stale first": {1, 3}, "stale last": {3, 1}, "equal": {3, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				var mu sync.Mutex
				var sent []int64
				f.start = func(_ context.Context, ds []core.Delivery) ([]core.Started, error) {
					mu.Lock()
					defer mu.Unlock()
					for _, d := range ds {
						sent = append(sent, d.Fence)
					}
					return started(ds), nil
				}
				for _, fence := range fences {
					f.deliveries <- delivery(fence)
				}
				stop := run(t, f, func(context.Context, core.Execution) error { return nil })
				synctest.Wait()
				stop()
				if diff := cmp.Diff([]int64{3}, sent); diff != "" {
					t.Errorf("fences of the deliveries that were started: %s", diff)
				}
			})
		})
	}
}
