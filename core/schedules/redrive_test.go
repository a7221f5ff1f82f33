package schedules_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// TestRedriveWithLostAnswers: whatever became of the writes, one redrive is one, and
// a run that died again in between is not redriven a second time.
func TestRedriveWithLostAnswers(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(*flaky){
		"not sent":      func(f *flaky) { f.instead = []error{core.ErrUnknownOutcome} },
		"answer lost":   func(f *flaky) { f.after = []error{core.ErrUnknownOutcome} },
		"moved on":      func(f *flaky) { f.instead = []error{core.ErrChanged, core.ErrChanged} },
		"nothing wrong": func(*flaky) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			key := w.dead(t)
			lost(w.store)
			run, err := w.service.Redrive(t.Context(), w.tenant, key)
			if err != nil || run.State != core.RunQueued || run.MaxAttempts != 6 {
				t.Errorf("redriven: %+v, %v", run, err)
			}
			cur, err := w.service.Get(t.Context(), w.tenant, key.ScheduleID)
			if err != nil || cur.Timer.Fence*65536 != run.Fence {
				t.Errorf("the timer's fence is %d, the run's %d: %v", cur.Timer.Fence, run.Fence, err)
			}
		})
	}
}

// TestRedriveOfARunThatDiesAtOnce: the answer of the redrive is lost, and the run
// dies before it is looked for.
func TestRedriveOfARunThatDiesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	key := w.dead(t)
	w.store.after = []error{core.ErrUnknownOutcome}
	w.store.then = func() { w.fail(t, key) }
	run, err := w.service.Redrive(t.Context(), w.tenant, key)
	if err != nil || run.State != core.RunDead || run.Attempt != 2 {
		t.Errorf("redriven: %+v, %v", run, err)
	}
}

// dead makes a run that is dead after its first attempt.
func (w *world) dead(t *testing.T) core.RunKey {
	t.Helper()
	s, err := w.service.Create(t.Context(), w.tenant, fields())
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.service.Trigger(t.Context(), w.tenant, s.Schedule.ID, schedules.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.fail(t, run.Key)
	return run.Key
}

// fail starts a queued run and lets it die.
func (w *world) fail(t *testing.T, key core.RunKey) {
	t.Helper()
	run, _, err := w.store.Run(t.Context(), w.tenant, key)
	if err != nil {
		t.Fatal(err)
	}
	store, ok := w.store.ScheduleStore.(core.RunStore)
	if !ok {
		t.Fatal("the store runs nothing")
	}
	started, err := store.Start(t.Context(), []core.Delivery{{Message: core.Message{Key: key, Fence: run.Fence}, Token: uuid.New()}}, time.Minute)
	if err == nil && len(started) == 1 {
		_, err = store.Finish(t.Context(), []core.Outcome{{Held: core.Held{Key: key, Fence: started[0].Fence}, State: core.RunDead, Reason: core.ReasonPermanent}})
	} else {
		err = errors.Join(err, errors.New("not started"))
	}
	if err != nil {
		t.Fatal(err)
	}
}
