package claimer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/infra/clock"
)

// morgue is a publisher whose queue "dead" refuses as often as it is told.
type morgue struct {
	s       *stage
	mu      sync.Mutex
	refuses int
	told    []time.Duration
	others  int
}

func (m *morgue) Publish(_ context.Context, queue string, msgs []core.Message) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if queue != "dead" {
		m.others += len(msgs)
		return len(msgs), nil
	}
	if m.refuses > 0 {
		m.refuses--
		return 0, errors.New("the queue is gone")
	}
	for range msgs {
		m.told = append(m.told, m.s.at())
	}
	return len(msgs), nil
}

// forgetful is a store that loses the first of its settles.
type forgetful struct {
	claimer.Store
	loses int
}

func (f *forgetful) Settle(ctx context.Context, hs []core.Held) error {
	if f.loses > 0 {
		f.loses--
		return core.ErrUnknownOutcome
	}
	return f.Store.Settle(ctx, hs)
}

// die lets the next attempt of a run fail for good.
func (s *stage) die(key core.RunKey) {
	s.Helper()
	r, _, err := s.db.Run(s.Context(), s.tenant, key)
	s.must(err)
	got, err := s.db.Start(s.Context(), []core.Delivery{{Message: core.Message{Key: key, Fence: r.Fence}, Token: uuid.New()}}, time.Minute)
	s.must(err)
	if len(got) != 1 {
		s.Fatalf("started %v", got)
	}
	_, err = s.db.Finish(s.Context(), []core.Outcome{{Held: core.Held{Key: key, Fence: got[0].Fence}, State: core.RunDead, Reason: core.ReasonPermanent}})
	s.must(err)
}

// A dead run is told of once, again as long as its queue refuses or it is not known
// whether it was, and not at all where nobody wants to know.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queue          string
		refuses, loses int
		want           []time.Duration
	}{
		"once":              {queue: "dead", want: []time.Duration{7 * time.Second}},
		"the queue is gone": {queue: "dead", refuses: 2, want: []time.Duration{67 * time.Second}},
		"an answer is lost": {queue: "dead", loses: 1, want: []time.Duration{7 * time.Second, 37 * time.Second}},
		"nobody is told":    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				m := &morgue{s: s, refuses: c.refuses}
				id := s.add("every 1h", 5*time.Second, nil)
				stop := s.claim(func(cc *claimer.Config) {
					cc.Store, cc.Publisher, cc.DeadLetters = &forgetful{s.db, c.loses}, m, c.queue
				})
				defer stop()
				s.until(6*time.Second + 500*time.Millisecond)
				key := s.runs(id)[0].Key
				s.die(key)
				s.until(5 * time.Minute)
				stop()
				if diff := cmp.Diff(c.want, m.told); diff != "" || m.others != 1 {
					t.Errorf("told at (-want +got), %d other messages:\n%s", m.others, diff)
				}
				if r := s.runs(id)[0]; r.State != core.RunDead || !r.WakeAt.IsZero() {
					t.Errorf("at the end the run is %s and wakes at %s", r.State, r.WakeAt)
				}
			})
		})
	}
}

func TestDeadLettersNeedAPublisher(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if _, err := claimer.New(claimer.Config{Store: s.db, Clock: clock.System{}, Owner: "a", DeadLetters: "dead"}); err == nil {
		t.Error("nobody can tell, and nobody says so")
	}
}
