package e2e_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database/dbtest"
	"github.com/fencepost/fencepost/infra/sqs"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
)

// carried is a queue of the emulator behind a front.
type carried struct {
	front  *sqstest.Front
	config sqs.Config
}

func (w *world) sqs() *carried {
	w.Helper()
	front := sqstest.NewFront(w.T)
	address := sqstest.NewQueue(w.T, nil)
	return &carried{front, sqs.Config{AWS: sqstest.Config(front.URL), Queues: map[string]string{queue: address}, Clock: clock.System{}, Wait: time.Second, Logger: w.logger()}}
}

func (w *world) sender(c *carried) *sqs.Publisher {
	w.Helper()
	p, err := sqs.NewPublisher(c.config)
	w.must(err)
	return p
}

func (w *world) receiver(c *carried) *sqs.Consumer {
	w.Helper()
	r, err := sqs.NewConsumer(w.ctx, c.config)
	w.must(err)
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			w.Errorf("close the consumer: %v", err)
		}
	})
	return r
}

// counting counts the statements of stages, those that only look excepted.
type counting struct {
	claimer.Store
	core.RunStore // and LimitStore of the other
	n             atomic.Int64
}

func (c *counting) Claim(ctx context.Context, shard int16, moves []core.Move, lease time.Duration) ([]core.Claimed, error) {
	c.n.Add(1)
	return c.Store.Claim(ctx, shard, moves, lease)
}

func (c *counting) Start(ctx context.Context, ds []core.Delivery, lease time.Duration) ([]core.Started, error) {
	c.n.Add(1)
	return c.RunStore.Start(ctx, ds, lease)
}

func (c *counting) Finish(ctx context.Context, os []core.Outcome) ([]core.Finished, error) {
	c.n.Add(1)
	return c.RunStore.Finish(ctx, os)
}

func (c *counting) Heartbeat(ctx context.Context, hs []core.Held, lease time.Duration) ([]core.Beat, error) {
	c.n.Add(1)
	return c.RunStore.Heartbeat(ctx, hs, lease)
}

func (c *counting) Nudge(ctx context.Context, ids []uuid.UUID) error {
	c.n.Add(1)
	return c.RunStore.Nudge(ctx, ids)
}

// oneShard puts schedules into one shard.
func oneShard(s *core.Schedule) {
	for core.ShardOf(s.ID) != 7 {
		s.ID = uuid.Must(uuid.NewV7())
	}
}

// TestSQSCounts runs 1,000 runs of one shard over SQS; -v prints what 100 of them
// cost in statements and requests. An executor with room for ten asks for ten.
func TestSQSCounts(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{10, 100} {
		t.Run(strconv.Itoa(concurrency), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dbtest.New(t))
			const n = 1000
			due := w.now().Truncate(time.Second).Add(-time.Second)
			w.seed(n, "every 1h", due, due.Add(-time.Second), oneShard)
			c, done := w.sqs(), &tally{}
			store := &counting{Store: w.db, RunStore: w.db}
			w.claimer(store, w.sender(c), nil)
			w.executor(store, w.receiver(c), done, func(c *executor.Config) { c.Concurrency = concurrency })
			end := w.succeeded(n)
			if diff := cmp.Diff(once(end), done.executions()); diff != "" {
				t.Errorf("executions: %s", diff)
			}
			w.until("the messages are deleted", func() bool { return c.front.Counts()["DeleteMessageBatch"] >= n/10 })
			counts, requests := c.front.Counts(), 0
			for _, n := range counts {
				requests += n
			}
			t.Logf("100 runs: %.1f statements, %.1f requests (%v in all)", float64(store.n.Load())/(n/100), float64(requests)/(n/100), counts)
			if got := store.n.Load(); got > 30*n/100 {
				t.Errorf("%d statements for %d runs, want 30 for 100 at most", got, n)
			}
			if requests > 32*n/100+10 { // some polls before there was anything
				t.Errorf("%d requests for %d runs, want 32 for 100 at most", requests, n)
			}
		})
	}
}

// TestInProcessCounts is the same within one process.
func TestInProcessCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.New(t))
	const n = 1000
	due := w.now().Truncate(time.Second).Add(-time.Second)
	w.seed(n, "every 1h", due, due.Add(-time.Second), oneShard)
	box, done := newMailbox(w), &tally{}
	store := &counting{Store: w.db, RunStore: w.db}
	w.claimer(store, box, nil)
	w.executor(store, box, done, func(c *executor.Config) { c.Concurrency = 100 })
	w.succeeded(n)
	t.Logf("100 runs: %.1f statements", float64(store.n.Load())/(n/100))
	if got := store.n.Load(); got > 8*n/100 {
		t.Errorf("%d statements for %d runs, want 8 for 100 at most", got, n)
	}
}

// TestSQSFaults: whatever the queue does, each run is executed once.
func TestSQSFaults(t *testing.T) {
	t.Parallel()
	few := func(n int64, rule sqstest.Rule) sqstest.Rule {
		left := &atomic.Int64{}
		left.Store(n)
		return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			if left.Add(-1) >= 0 {
				rule(w, r, forward)
				return
			}
			forward.ServeHTTP(w, r)
		}
	}
	twice := func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		sqstest.Again(r, forward)
		forward.ServeHTTP(w, r)
	}
	for name, set := range map[string]func(f *sqstest.Front){
		"publish lost":            func(f *sqstest.Front) { f.Set("SendMessageBatch", few(5, sqstest.Drop)) },
		"answer of publish lost":  func(f *sqstest.Front) { f.Set("SendMessageBatch", few(5, sqstest.LoseAnswer)) },
		"messages twice":          func(f *sqstest.Front) { f.Set("SendMessageBatch", few(100, twice)) },
		"throttled":               func(f *sqstest.Front) { f.Set("SendMessageBatch", few(8, sqstest.Refuse(400, "RequestThrottled"))) },
		"receive lost":            func(f *sqstest.Front) { f.Set("ReceiveMessage", few(5, sqstest.Drop)) },
		"delete refused":          func(f *sqstest.Front) { f.Set("DeleteMessageBatch", few(10, sqstest.Refuse(500, "InternalError"))) },
		"queue gone for a while":  func(f *sqstest.Front) { f.Set("", few(40, sqstest.Drop)) },
		"nothing wrong, in short": func(*sqstest.Front) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dbtest.New(t))
			w.seedDue(100)
			c, done := w.sqs(), &tally{}
			set(c.front)
			w.claimer(w.db, w.sender(c), func(c *claimer.Config) { c.DispatchLease, c.MaxDispatchLease = 2*time.Second, 4*time.Second })
			w.executor(w.db, w.receiver(c), done, nil)
			end := w.succeeded(100)
			if diff := cmp.Diff(once(end), done.executions()); diff != "" {
				t.Errorf("executions: %s", diff)
			}
		})
	}
}
