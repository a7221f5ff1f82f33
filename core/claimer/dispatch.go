package claimer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
)

const (
	dispatchBuffer  = 20_000 // messages waiting to be published
	dispatchBatch   = 100    // messages in one publish
	dispatchWorkers = 4
	fullPause       = 100 * time.Millisecond
	drainTime       = 5 * time.Second
)

type outgoing struct {
	queue string
	core.Message
}

// dispatcher publishes messages in batches, concurrently and in bounded memory.
// What finds no room is dropped: its run row is the outbox, and the sweep
// publishes it again. A slow queue so slows publishing, never claiming.
type dispatcher struct {
	to      core.Publisher
	clock   core.Clock
	log     *slog.Logger
	timeout time.Duration
	queues  []string // that to serves
	in      chan outgoing
	warn    sync.Once
	// unserved are the queues of runs that were left to others.
	unserved sync.Map

	mu   sync.Mutex
	full map[string]time.Time // queues without room, and since when they are left alone
}

func newDispatcher(c Config) *dispatcher {
	return &dispatcher{
		to: c.Publisher, clock: c.Clock, log: c.Logger, timeout: c.Timeout, queues: c.Queues,
		in: make(chan outgoing, dispatchBuffer), full: map[string]time.Time{},
	}
}

// serves reports whether this process publishes to the queue.
func (d *dispatcher) serves(queue string) bool { return slices.Contains(d.queues, queue) }

// add takes a message for publishing; it never blocks. Runs of queues that
// other processes serve are theirs to find.
func (d *dispatcher) add(queue string, m core.Message) {
	if !d.serves(queue) {
		d.warnUnserved(queue)
		return
	}
	if d.isFull(queue) {
		return
	}
	select {
	case d.in <- outgoing{queue, m}:
	default:
		d.warn.Do(func() { d.log.Warn("dispatch buffer is full; runs wait for the sweep") })
	}
}

// run publishes until ctx is done, and then what is left, for a bounded time.
func (d *dispatcher) run(ctx context.Context) error {
	drain, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var g errgroup.Group
	for range dispatchWorkers {
		g.Go(func() error {
			d.work(ctx, drain)
			return nil
		})
	}
	return g.Wait()
}

func (d *dispatcher) work(ctx, drain context.Context) {
	for {
		select {
		case m := <-d.in:
			d.publish(drain, d.collect(m))
		case <-ctx.Done():
			limit, cancel := context.WithTimeoutCause(drain, drainTime, errors.New("drain took too long"))
			defer cancel()
			for limit.Err() == nil {
				select {
				case m := <-d.in:
					d.publish(limit, d.collect(m))
				default:
					return
				}
			}
			return
		}
	}
}

// collect gathers what is waiting beside first, by queue.
func (d *dispatcher) collect(first outgoing) map[string][]core.Message {
	out := map[string][]core.Message{first.queue: {first.Message}}
	for range dispatchBatch - 1 {
		select {
		case m := <-d.in:
			out[m.queue] = append(out[m.queue], m.Message)
		default:
			return out
		}
	}
	return out
}

func (d *dispatcher) publish(ctx context.Context, batch map[string][]core.Message) {
	for queue, msgs := range batch {
		pctx, cancel := context.WithTimeoutCause(ctx, d.timeout, errors.New("publish took too long"))
		n, err := d.to.Publish(pctx, queue, msgs)
		cancel()
		switch {
		case err == nil:
		case errors.Is(err, core.ErrQueueFull):
			d.log.Debug("queue is full; runs wait for the sweep", "queue", queue, "runs", len(msgs)-n)
			d.setFull(queue)
		default:
			d.log.Error("publish", "queue", queue, "runs", len(msgs)-n, "error", err)
		}
	}
}

// warnUnserved says once of each queue that its runs wait for another process.
func (d *dispatcher) warnUnserved(queue string) {
	if _, said := d.unserved.LoadOrStore(queue, true); !said && d.to != nil {
		d.log.Warn("runs wait in a queue that this process does not serve", "queue", queue)
	}
}

// isFull reports whether the queue had no room a moment ago. Its messages are
// left to the sweep then, so that no other queue's wait behind them.
func (d *dispatcher) isFull(queue string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, ok := d.full[queue]
	return ok && !passed(since, d.clock.Now(), fullPause)
}

func (d *dispatcher) setFull(queue string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full[queue] = d.clock.Now()
}
