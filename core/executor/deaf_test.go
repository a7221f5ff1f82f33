package executor_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/clock"
)

// deafTarget goes on until it is released, whatever its context says.
type deafTarget struct {
	core.Target
	release chan struct{}
}

func (d deafTarget) Execute(context.Context, core.Execution) (json.RawMessage, error) {
	<-d.release
	return nil, nil
}

// deafStore starts one run and counts its heartbeats.
type deafStore struct {
	core.RunStore
	core.LimitStore
	timeout time.Duration
	beats   []time.Time
}

func (*deafStore) LimitedQueues(context.Context) ([]string, error) { return nil, nil }

func (d *deafStore) Start(_ context.Context, ds []core.Delivery, _ time.Duration) ([]core.Started, error) {
	return []core.Started{{
		Execution: core.Execution{Key: ds[0].Key, Attempt: 1, Fence: ds[0].Fence + 1},
		State:     core.RunRunning, Token: ds[0].Token, Queue: "test", Timeout: d.timeout, MaxAttempts: 1,
	}}, nil
}

func (d *deafStore) Heartbeat(_ context.Context, hs []core.Held, _ time.Duration) ([]core.Beat, error) {
	d.beats = append(d.beats, time.Now())
	out := make([]core.Beat, len(hs))
	for i, h := range hs {
		out[i].Held = h
	}
	return out, nil
}

func (d *deafStore) Finish(context.Context, []core.Outcome) ([]core.Finished, error) { return nil, nil }

// single hands out one message and then waits.
type single struct{ sent bool }

func (s *single) Receive(ctx context.Context, _ string, _ int) ([]core.Delivery, error) {
	if !s.sent {
		s.sent = true
		return []core.Delivery{{Token: uuid.New()}}, nil
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (*single) Done(context.Context, []core.Delivery) error { return nil }

// TestDeafTarget: a target that does not hear the end of its context is renewed
// no longer, so that the sweep can take its run, and holds no shutdown up.
func TestDeafTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		store := &deafStore{timeout: time.Minute}
		e, err := executor.New(executor.Config{
			Store: store, Queue: &single{}, Clock: clock.System{}, Targets: map[string]core.Target{"test": deafTarget{release: release}},
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		time.Sleep(10 * time.Minute)
		if last := store.beats[len(store.beats)-1].Sub(began); last < time.Minute || last > 75*time.Second {
			t.Errorf("the last heartbeat came %s after the start, want it soon after the timeout of a minute", last)
		}
		asked := time.Now()
		stop()
		if err := <-done; err != nil || time.Since(asked) > 20*time.Second {
			t.Errorf("the end took %s: %v", time.Since(asked), err)
		}
		close(release)
		synctest.Wait()
	})
}
