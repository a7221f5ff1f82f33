package e2e_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/database/dbtest"
	"github.com/fencepost/fencepost/infra/inprocess"
)

// seedMany makes n due schedules of a queue by batches.
func (w *world) seedMany(n int, of string) {
	w.Helper()
	due := w.now().Truncate(time.Second).Add(-time.Second)
	for n > 0 {
		var batch []core.NewSchedule
		for range min(n, 1000) {
			s := core.Schedule{
				Region: region, TenantID: w.tenant, ID: uuid.Must(uuid.NewV7()), Spec: "every 1h", Anchor: due, Misfire: core.MisfireRunOnce,
				MisfireGrace: time.Minute, Overlap: core.OverlapSkip, MaxAttempts: 5, Job: core.Job{Queue: of, Payload: []byte(`{}`)},
			}
			s.Name = s.ID.String()
			batch = append(batch, core.NewSchedule{Schedule: s, NextAt: due, Done: due.Add(-time.Second)})
		}
		_, err := w.db.CreateMany(w.ctx, w.tenant, batch)
		w.must(err)
		n -= len(batch)
	}
	w.sql("UPDATE timers SET fire_at = $1 WHERE fire_at < $2", due, due.Add(30*time.Minute))
}

// TestManyRunsDueForOneQueue: 10,000 runs are due for a queue with room for 2,500
// messages, which is worked on by ten at a time. What is held in memory is bounded by
// these two, nothing is lost, and the runs of another queue do not wait.
func TestManyRunsDueForOneQueue(t *testing.T) {
	t.Parallel()
	const n, few, capacity, concurrency = 10_000, 100, 2500, 10
	w := newWorld(t, dbtest.New(t))
	w.seedMany(n, queue)
	w.seedMany(few, "other")
	q, err := inprocess.New(inprocess.Config{Queues: []string{queue, "other"}, Capacity: capacity})
	w.must(err)
	var mu sync.Mutex
	var live, most, deepest int
	busy := &tally{then: func(context.Context, core.Execution) error {
		mu.Lock()
		live++
		most, deepest = max(most, live), max(deepest, q.Len(queue))
		mu.Unlock()
		runtime.Gosched() // lets the others begin
		mu.Lock()
		live--
		mu.Unlock()
		return nil
	}}
	others := &tally{}
	w.claimer(w.db, q, func(c *claimer.Config) {
		c.Queues, c.DispatchLease, c.MaxDispatchLease = []string{queue, "other"}, time.Second, 2*time.Second
	})
	w.executor(w.db, q, busy, func(c *executor.Config) {
		c.Targets, c.Concurrency = map[string]core.Target{queue: busy, "other": others}, concurrency
	})
	w.until("the other queue is done", func() bool { return len(others.executions()) == few })
	if done := len(busy.executions()); done > n/2 {
		t.Errorf("the other queue's runs waited for %d runs", done)
	}
	w.until("all runs have succeeded", func() bool { return w.count("runs WHERE state = 'succeeded'") == n+few })
	if got := w.count("runs WHERE attempt <> 1"); got > 0 || w.count("runs") != n+few {
		t.Errorf("%d of %d runs were not executed by their first attempt", got, w.count("runs"))
	}
	for key, times := range busy.executions() {
		if times != 1 {
			t.Errorf("run %s was executed %d times", key.ID(), times)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(busy.executions()) != n || most > concurrency || deepest < capacity/2 {
		t.Errorf("%d runs were executed, %d at once, and %d messages waited at most", len(busy.executions()), most, deepest)
	}
}

// TestBacklogIsCopiedSeldom: nobody receives for many times the dispatch lease. Beside
// the first message of a run there are at most 1 + log2(wait / dispatch lease), and it
// is executed once.
func TestBacklogIsCopiedSeldom(t *testing.T) {
	t.Parallel()
	const n, lease, wait = 100, time.Second, 9 * time.Second
	w := newWorld(t, dbtest.New(t))
	w.seedDue(n)
	box, done := newMailbox(w), &tally{}
	w.claimer(w.db, box, func(c *claimer.Config) { c.DispatchLease = lease })
	w.until("it has waited long", func() bool { return w.count("runs WHERE queued_at < now() - $1::INTERVAL", wait.String()) == n })
	w.executor(w.db, box, done, nil)
	end := w.succeeded(n)
	longest := rows[float64](w, "SELECT max(EXTRACT(EPOCH FROM started_at - queued_at))::FLOAT8 FROM runs")[0]
	allowed := 1 + 1 + int(math.Log2(longest/lease.Seconds()))
	messages := map[core.RunKey]int{}
	for _, m := range box.published() {
		messages[m.Key]++
	}
	fewest := math.MaxInt
	for _, r := range end {
		got := messages[r.key()]
		fewest = min(fewest, got)
		if got > allowed {
			t.Errorf("run %s had %d messages in %.1f s, want %d at most", r.key().ID(), got, longest, allowed)
		}
	}
	if fewest < 3 {
		t.Errorf("a run that waited for %s had %d messages: it would not have survived their loss", wait, fewest)
	}
	if diff := cmp.Diff(once(end), done.executions()); diff != "" {
		t.Errorf("executions: %s", diff)
	}
	if diff := cmp.Diff(map[int]int{1: n}, attempts(end)); diff != "" {
		t.Errorf("runs by attempts: %s", diff)
	}
}
