package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// recorder counts events by kind and what tells them apart.
type recorder struct {
	mu     sync.Mutex
	counts map[string]int
	lags   []time.Duration
}

func (r *recorder) observe(e core.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[fmt.Sprintf("%d%s%s", e.Kind, e.State, e.What)] += e.N
	if e.Kind == core.EventStarted && e.Took >= 0 {
		r.lags = append(r.lags, e.Took)
	}
}

func (r *recorder) count(kind core.EventKind, what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[fmt.Sprintf("%d%s", kind, what)]
}

// TestEvents: what the stages tell is what happened: 12 runs of which some fail, some
// are dead, and one is taken from its holder, whose writes are refused.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.New(t))
	r := &recorder{counts: map[string]int{}}
	due := w.now().Truncate(time.Second).Add(-time.Second)
	kind := func(name string, n int) {
		w.seed(n, "every 1h", due, due.Add(-time.Second), func(s *core.Schedule) {
			s.Job.Payload, s.MaxAttempts = []byte(fmt.Sprintf(`{"n":%q}`, name)), 2
			s.Rules.Retry = core.Retry{InitialDelay: 100 * time.Millisecond, MaxDelay: time.Second, Multiplier: 2}
		})
	}
	kind("fine", 5)
	kind("once", 3)  // fails once
	kind("never", 2) // fails twice
	kind("poison", 1)
	kind("taken", 1)
	taken, release := make(chan core.RunKey, 1), make(chan struct{})
	job := &tally{then: func(_ context.Context, e core.Execution) error {
		var p struct{ N string }
		_ = json.Unmarshal(e.Payload, &p) // it was written above
		switch {
		case p.N == "poison":
			return core.Permanent(errors.New("no"))
		case p.N == "never", p.N == "once" && e.Attempt == 1:
			return errors.New("not now")
		case p.N == "taken" && e.Attempt == 1:
			taken <- e.Key
			<-release
		}
		return nil
	}}
	box := newMailbox(w)
	w.claimer(w.db, box, func(c *claimer.Config) { c.Observe = r.observe })
	w.executor(w.db, box, job, func(c *executor.Config) { c.Observe = r.observe })
	key := signal(w, "the run that is taken", taken)
	w.sql("UPDATE runs SET wake_at = now() WHERE schedule_id = $1 AND state = 'running'", key.ScheduleID)
	w.until("it is run by another", func() bool { return job.executions()[key] == 2 })
	close(release)
	w.until("all have ended", func() bool {
		return w.count("runs WHERE state = 'succeeded'") == 9 && w.count("runs WHERE state = 'dead'") == 3 && r.count(core.EventStale, "finish") > 0
	})
	got := map[string]int{
		"due": r.count(core.EventDue, ""), "claimed": r.count(core.EventClaimed, "queued"), "dispatched": r.count(core.EventDispatched, ""),
		"started": r.count(core.EventStarted, ""), "retried": r.count(core.EventRetried, ""), "lost": r.count(core.EventLost, ""),
		"dead": r.count(core.EventDead, ""), "stale": r.count(core.EventStale, "finish"), "republished": r.count(core.EventRepublished, ""),
		"succeeded": r.count(core.EventFinished, "succeeded"), "retrying": r.count(core.EventFinished, "retrying"), "died": r.count(core.EventFinished, "dead"),
	}
	want := map[string]int{
		"due": 12, "claimed": 12, "dispatched": 12 + 5 + 1, "started": 12 + 5 + 1, "retried": 5, "lost": 1, "dead": 3, "stale": 1, "republished": 0,
		"succeeded": 9, "retrying": 5, "died": 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(r.lags) != 12 {
		t.Errorf("%d starts with a lag, want the first of each run", len(r.lags))
	}
	for _, lag := range r.lags {
		if lag < time.Second/2 || lag > patience {
			t.Errorf("a lag of %s for a slot of a second ago", lag)
		}
	}
}
