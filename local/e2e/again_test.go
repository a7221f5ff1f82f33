package e2e_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// acknowledged is a queue that counts the deliveries that were done with.
type acknowledged struct {
	core.Consumer
	mu sync.Mutex
	n  int
}

func (a *acknowledged) Done(ctx context.Context, ds []core.Delivery) error {
	a.mu.Lock()
	a.n += len(ds)
	a.mu.Unlock()
	return a.Consumer.Done(ctx, ds)
}

func (a *acknowledged) done() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

// again is a world with a queue into which a test puts messages itself.
type again struct {
	*world
	to       core.Publisher
	from     *acknowledged
	executed *tally
	sent     int
	newest   map[core.RunKey]int64 // fence that was sent
}

// send publishes messages by themselves, so that each may arrive on its own.
func (a *again) send(ms ...core.Message) {
	a.Helper()
	for _, m := range ms {
		n, err := a.to.Publish(a.ctx, queue, []core.Message{m})
		a.must(err)
		a.sent += n
		a.newest[m.Key] = max(a.newest[m.Key], m.Fence)
	}
}

func (a *again) arrived() {
	a.Helper()
	a.until("every message has arrived and is done with", func() bool { return a.from.done() == a.sent })
}

// TestMessageAgain: a message that comes twice, three times, after the end of its run
// or after its fence was passed does nothing beside what the first one did.
func TestMessageAgain(t *testing.T) {
	t.Parallel()
	const n = 10
	for name, c := range map[string]struct {
		play    func(a *again, ms []core.Message)
		attempt int // that succeeded
	}{
		"twice":       {func(a *again, ms []core.Message) { a.send(append(ms, ms...)...) }, 1},
		"three times": {func(a *again, ms []core.Message) { a.send(append(append(ms, ms...), ms...)...) }, 1},
		"after finish": {func(a *again, ms []core.Message) {
			a.send(ms...)
			a.succeeded(n)
			a.send(ms...)
		}, 1},
		"old fence": {func(a *again, ms []core.Message) {
			_, next := a.lost(ms)
			a.send(ms...)
			a.send(next...)
			a.send(ms...)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for carrier, open := range map[string]func(*world) (core.Publisher, core.Consumer){
				"in process": func(w *world) (core.Publisher, core.Consumer) {
					box := newMailbox(w)
					return box, box
				},
				"SQS": func(w *world) (core.Publisher, core.Consumer) {
					c := w.sqs()
					return w.sender(c), w.receiver(c)
				},
			} {
				t.Run(carrier, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, dbtest.New(t))
					w.seedDue(n)
					claimed := newMailbox(w)
					stop := w.claimer(w.db, claimed, nil)
					w.until("all are claimed", func() bool { return claimed.Len(queue) == n })
					stop()
					a := &again{world: w, executed: &tally{}, newest: map[core.RunKey]int64{}}
					to, from := open(w)
					a.to, a.from = to, &acknowledged{Consumer: from}
					w.executor(w.db, a.from, a.executed, nil)
					c.play(a, claimed.published())
					end := w.succeeded(n)
					a.arrived()
					if diff := cmp.Diff(map[int]int{c.attempt: n}, attempts(end)); diff != "" {
						t.Errorf("runs by attempts: %s", diff)
					}
					if diff := cmp.Diff(once(end), a.executed.executions()); diff != "" {
						t.Errorf("executions: %s", diff)
					}
					if diff := cmp.Diff(end, w.runs()); diff != "" {
						t.Errorf("runs changed after their end: %s", diff)
					}
					for _, r := range end {
						if r.Fence != a.newest[r.key()]+1 {
							t.Errorf("run %s was started under fence %d, want that of the newest message, %d", r.key().ID(), r.Fence, a.newest[r.key()])
						}
					}
				})
			}
		})
	}
}

// lost lets a holder start the runs of messages and fall silent, and returns the
// messages by which they are queued again.
func (w *world) lost(ms []core.Message) (held []core.Started, next []core.Message) {
	w.Helper()
	ds := make([]core.Delivery, len(ms))
	for i, m := range ms {
		ds[i] = core.Delivery{Message: m, Token: uuid.New()}
	}
	held, err := w.db.Start(w.ctx, ds, never)
	w.must(err)
	w.sql("UPDATE runs SET wake_at = now() WHERE state = 'running'")
	marks := make([]core.ShardMark, core.Shards)
	for i := range marks {
		marks[i].Shard = int16(i)
	}
	swept, _, err := w.db.Sweep(w.ctx, core.SweepOptions{
		Marks: marks, DispatchLease: never, MaxDispatchLease: never, Backoff: core.Backoff{Initial: time.Second, Max: time.Second},
		Queues: []string{queue}, LostIn: core.AllShards(),
	})
	w.must(err)
	for _, s := range swept {
		next = append(next, s.Message())
	}
	if len(held) != len(ms) || len(next) != len(ms) {
		w.Fatalf("of %d runs %d were started and %d queued again", len(ms), len(held), len(next))
	}
	return held, next
}
