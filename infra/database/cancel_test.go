package database_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// TestCancelUnderLoad lets cancels meet starts, finishes and sweeps of the same
// runs in whatever order they make: whoever was answered was told the truth, and
// each run ends in one state.
func TestCancelUnderLoad(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, w *world) {
		for _, wrong := range cancelUnderLoad(w) {
			t.Error(wrong)
		}
	})
	t.Run("a cancel that looks before it writes", func(t *testing.T) {
		t.Parallel()
		blind := mutation{file: "cancel_run", guard: "AND r.state IN ('queued', 'running', 'retrying')\n", instead: "\n"}
		if len(cancelUnderLoad(newWorld(t, false, blind.rewrite(t)))) == 0 {
			t.Error("nothing went wrong without the guard: the clients did not meet")
		}
	})
}

// story is what the clients were told of one run.
type story struct {
	mu       sync.Mutex
	canceled bool // by an answer to a cancel
	final    core.RunState
	finished core.RunState // as a finish was answered
}

func (s *story) tell(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// wrong compares what was told with what came of the run.
func (s *story) wrong(r *core.Run) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch told := fmt.Sprintf("told canceled: %t, final: %q, finished: %q; it is %s, %s", s.canceled, s.final, s.finished, r.State, r.Reason); {
	case !r.State.Final():
		return "it goes on although it was asked to end: " + told
	case s.canceled && (r.State != core.RunCanceled || s.finished == core.RunSucceeded):
		return "a cancel that was answered did not hold: " + told
	case s.finished == core.RunSucceeded && r.State != core.RunSucceeded:
		return "a success that was answered did not hold: " + told
	case s.final != "" && s.final != r.State:
		return "a final state changed: " + told
	case r.State == core.RunCanceled && r.Reason != core.ReasonRequested:
		return "it was canceled for another reason: " + told
	}
	return ""
}

// cancelUnderLoad returns what it saw go wrong.
func cancelUnderLoad(w *world) []string {
	const many = 40
	id := w.schedule("@yearly", w.now(), func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	stories := map[core.RunKey]*story{}
	todo := make(chan core.Delivery, 100*many)
	for range many {
		r, err := w.service().Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
		w.must(err)
		stories[r.Key] = &story{}
		todo <- core.Delivery{Message: core.Message{Key: r.Key, Fence: r.Fence}, Token: uuid.New()}
	}
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	var others, cancels sync.WaitGroup
	for i := range 3 {
		others.Go(func() { w.workLoop(ctx, i, todo, stories) })
	}
	others.Go(func() { w.sweepLoop(ctx, todo) })
	w.waitFor("some to end", func() bool { return w.live(id) < many-many/8 })
	for range 2 {
		cancels.Go(func() {
			for key, s := range stories {
				w.tellCancel(key, s)
			}
		})
	}
	cancels.Wait()
	w.waitFor("all to end", func() bool { return w.live(id) == 0 })
	stop()
	others.Wait()
	var all []string
	for key, s := range stories {
		w.tellCancel(key, s)
		r := w.run(key)
		if wrong := s.wrong(&r); wrong != "" {
			all = append(all, wrong)
		}
	}
	return all
}

// tellCancel cancels a run and notes the answer.
func (w *world) tellCancel(key core.RunKey, s *story) {
	r, err := w.db.CancelRun(w.ctx, w.tenant, key)
	switch {
	case err == nil && r.State == core.RunCanceled:
		s.tell(func() { s.canceled = true })
	case errors.Is(err, core.ErrRunFinal):
		s.tell(func() { s.final = r.State })
	case err != nil:
		w.Errorf("cancel: %v", err)
	}
}

// workLoop executes runs: some succeed, some fail, some lose their holder.
func (w *world) workLoop(ctx context.Context, n int, todo <-chan core.Delivery, stories map[core.RunKey]*story) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-todo:
			n++
			started, err := w.db.Start(ctx, []core.Delivery{d}, time.Millisecond)
			if err != nil || len(started) == 0 || n%3 == 2 {
				continue
			}
			state := []core.RunState{core.RunSucceeded, core.RunRetrying}[n%3]
			finished, err := w.db.Finish(ctx, []core.Outcome{{Held: held(started[0]), State: state, Reason: core.ReasonExhausted}})
			if s := stories[d.Key]; err == nil && len(finished) == 1 {
				s.tell(func() { s.finished = finished[0].State })
			}
		}
	}
}

// sweepLoop sweeps and publishes.
func (w *world) sweepLoop(ctx context.Context, todo chan<- core.Delivery) {
	for ctx.Err() == nil {
		swept, err := w.trySweep()
		if err != nil {
			continue // it is tried again
		}
		for _, s := range swept {
			if s.State == core.RunQueued {
				todo <- core.Delivery{Message: core.Message{Key: s.Key, Fence: s.Fence}, Token: uuid.New()}
			}
		}
	}
}
