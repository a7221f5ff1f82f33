package e2e_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database/dbtest"
	"github.com/fencepost/fencepost/infra/sqs"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
)

// TestSQSStopped: SQS stops for 15 seconds and comes back without its messages, while
// 600 runs come due. Claims go on meanwhile, nothing is lost, each run is executed
// once, and SQS is not called ever faster. TestRefusedBacklogIsBounded has the memory.
func TestSQSStopped(t *testing.T) {
	t.Parallel()
	const n, outage = 600, 15 * time.Second
	w := newWorld(t, dbtest.New(t))
	front := sqstest.NewStoppable(t)
	name := "q-" + uuid.NewString()
	address := sqstest.CreateQueue(t, front.URL, name, nil)
	c := &carried{front.Front, sqs.Config{
		AWS: sqstest.Config(front.URL), Queues: map[string]string{queue: address}, Clock: clock.System{}, Wait: time.Second, Logger: w.logger(),
	}}
	seedOverSeconds(w, n, 12)
	done := &tally{}
	w.claimer(w.db, w.sender(c), func(c *claimer.Config) { c.DispatchLease, c.MaxDispatchLease = 2*time.Second, 4*time.Second })
	w.executor(w.db, w.receiver(c), done, func(c *executor.Config) { c.Concurrency = 10 })
	w.until("some runs have succeeded", func() bool { return w.count("runs WHERE state = 'succeeded'") >= n/10 })

	front.Stop()
	began, before := time.Now(), front.Counts()["SendMessageBatch"]
	w.until("15 seconds are over, and all are claimed", func() bool {
		return time.Since(began) > outage && w.count("runs") == n
	})
	if w.count("runs WHERE state = 'succeeded'") == n {
		t.Fatal("the outage came at a moment that proves nothing")
	}
	if calls := front.Counts()["SendMessageBatch"] - before; calls < 10 || calls > 1500 {
		t.Errorf("%d calls to send 600 messages were made in %s without SQS, want 100 a second at most", calls, time.Since(began))
	}
	front.Start(t)
	if again := sqstest.CreateQueue(t, front.URL, name, nil); again != address {
		t.Fatalf("the queue is at %s now, was at %s", again, address)
	}
	end := w.succeeded(n)
	if diff := cmp.Diff(once(end), done.executions()); diff != "" {
		t.Errorf("executions: %s", diff)
	}
	if diff := cmp.Diff(map[int]int{1: n}, attempts(end)); diff != "" {
		t.Errorf("runs by attempts: %s", diff)
	}
}
