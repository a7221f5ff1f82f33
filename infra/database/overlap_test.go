package database_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/schedules"
)

// TestOverlapUnderLoad lets claims, triggers and finishes of one schedule meet
// in every order that twelve clients make in two seconds: never are two of its
// runs alive (C10), and each slot has at most one run (C4).
func TestOverlapUnderLoad(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, w *world) {
		id := w.schedule("every 1s", w.now().Add(-2*time.Second), nil)
		ctx, stop := context.WithTimeout(w.ctx, 2*time.Second)
		defer stop()
		todo := make(chan core.Delivery, 10_000)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { w.claimLoop(ctx, id, todo, &admitted) })
			wg.Go(func() { w.triggerLoop(ctx, id, todo, &admitted) })
			wg.Go(func() { w.finishLoop(ctx, todo) })
		}
		for ctx.Err() == nil {
			if n := w.live(id); n > 1 {
				t.Errorf("C10: %d runs are alive at once", n)
				stop()
			}
		}
		wg.Wait()
		if admitted.Load() < 20 {
			t.Errorf("only %d runs were admitted: the clients did not meet", admitted.Load())
		}
	})
}

func (w *world) claimLoop(ctx context.Context, id uuid.UUID, todo chan<- core.Delivery, admitted *atomic.Int64) {
	for ctx.Err() == nil {
		s, err := w.db.Get(ctx, w.tenant, id)
		if err != nil {
			continue
		}
		m := plan.Move(&s.Schedule, &s.Timer, w.slots(&s.Schedule), s.Now)
		made, err := w.db.Claim(ctx, s.Timer.Shard, []core.Move{m}, time.Minute)
		if err != nil {
			continue
		}
		for _, c := range made {
			if c.State == core.RunQueued {
				admitted.Add(1)
				todo <- delivery(c)
			}
		}
	}
}

func (w *world) triggerLoop(ctx context.Context, id uuid.UUID, todo chan<- core.Delivery, admitted *atomic.Int64) {
	for ctx.Err() == nil {
		r, err := w.service().Trigger(ctx, w.tenant, id, schedules.TriggerOptions{})
		if err != nil {
			continue // mostly run_live
		}
		admitted.Add(1)
		todo <- core.Delivery{Message: core.Message{Key: r.Key, Fence: r.Fence}, Token: uuid.New()}
	}
}

func (w *world) finishLoop(ctx context.Context, todo <-chan core.Delivery) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-todo:
			started, err := w.db.Start(ctx, []core.Delivery{d}, time.Minute)
			if err != nil || len(started) == 0 {
				continue
			}
			_, _ = w.db.Finish(ctx, []core.Outcome{{Held: held(started[0]), State: core.RunSucceeded}}) // the end of ctx is no fault
		}
	}
}
