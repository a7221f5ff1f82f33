package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/clock"
)

// fake is a store and a queue in one: start gives each delivery its run, and
// the rest is done by the functions, which may be nil.
type fake struct {
	core.LimitStore // nil: no queue has a limit
	deliveries      chan core.Delivery
	start           func(ctx context.Context, ds []core.Delivery) ([]core.Started, error)
	beat            func(ctx context.Context, hs []core.Held) ([]core.Beat, error)
	mu              sync.Mutex
	finished        []core.Outcome
}

func (*fake) LimitedQueues(context.Context) ([]string, error) { return nil, nil }

func newFake() *fake { return &fake{deliveries: make(chan core.Delivery, 100)} }

func (f *fake) Receive(ctx context.Context, _ string, most int) ([]core.Delivery, error) {
	select {
	case d := <-f.deliveries:
		out := []core.Delivery{d}
		for len(out) < most && len(f.deliveries) > 0 {
			out = append(out, <-f.deliveries)
		}
		return out, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (*fake) Done(context.Context, []core.Delivery) error { return nil }

func (f *fake) Start(ctx context.Context, ds []core.Delivery, _ time.Duration) ([]core.Started, error) {
	if f.start != nil {
		return f.start(ctx, ds)
	}
	return started(ds), nil
}

func started(ds []core.Delivery) []core.Started {
	out := make([]core.Started, len(ds))
	for i, d := range ds {
		out[i] = core.Started{Execution: core.Execution{Key: d.Key, Fence: d.Fence + 1, Attempt: 1}, State: core.RunRunning, Token: d.Token, Queue: "test"}
	}
	return out
}

func (f *fake) Heartbeat(ctx context.Context, hs []core.Held, _ time.Duration) ([]core.Beat, error) {
	if f.beat != nil {
		return f.beat(ctx, hs)
	}
	out := make([]core.Beat, len(hs))
	for i, h := range hs {
		out[i] = core.Beat{Held: h}
	}
	return out, nil
}

func (f *fake) Finish(_ context.Context, os []core.Outcome) ([]core.Finished, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = append(f.finished, os...)
	out := make([]core.Finished, len(os))
	for i, o := range os {
		out[i] = core.Finished{Held: o.Held, State: o.State}
	}
	return out, nil
}

func (*fake) Nudge(context.Context, []uuid.UUID) error { return nil }

type targetFunc func(ctx context.Context, e core.Execution) error

func (f targetFunc) Execute(ctx context.Context, e core.Execution) (json.RawMessage, error) {
	return nil, f(ctx, e)
}

func (targetFunc) Check(json.RawMessage) error { return nil }

func delivery(fence int64) core.Delivery {
	key := core.RunKey{Region: "local", ScheduleID: uuid.MustParse("01234567-89ab-7def-8123-456789abcdef"), Slot: time.Unix(0, 0).UTC()}
	return core.Delivery{Message: core.Message{Key: key, Fence: fence}, Token: uuid.New()}
}

// run starts an executor with a lease of 30 s; the returned function stops it.
func run(t *testing.T, f *fake, target targetFunc) (stop func()) {
	t.Helper()
	e, err := executor.New(executor.Config{
		Store: f, Queue: f, Clock: clock.System{}, Targets: map[string]core.Target{"test": target}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Heartbeats that hang must not keep the executor from ending an attempt when
// its lease can no longer be trusted, whatever their phase: a second before the
// lease's end.
func TestHangingHeartbeats(t *testing.T) {
	t.Parallel()
	for _, phase := range []time.Duration{0, time.Second, 3 * time.Second, 5 * time.Second, 9 * time.Second} {
		t.Run(phase.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.beat = func(ctx context.Context, _ []core.Held) ([]core.Beat, error) {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				var trusted time.Duration
				var cause error
				ended := make(chan struct{})
				stop := run(t, f, func(ctx context.Context, _ core.Execution) error {
					began := time.Now()
					<-ctx.Done()
					trusted, cause = time.Since(began), context.Cause(ctx)
					close(ended)
					return nil
				})
				time.Sleep(phase)
				f.deliveries <- delivery(1)
				<-ended
				stop()
				if diff := cmp.Diff(29*time.Second, trusted); diff != "" || !errors.Is(cause, executor.ErrLeaseLost) {
					t.Errorf("the attempt ended with %v after: %s", cause, diff)
				}
			})
		})
	}
}
