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
	"github.com/fencepost/fencepost/core/limit"
)

const (
	dispatchBuffer  = 20_000 // messages waiting to be published
	dispatchBatch   = 100    // messages in one publish
	dispatchWorkers = 4
	fullPause       = 100 * time.Millisecond
	drainTime       = 5 * time.Second
)

type outgoing struct {
	lane
	core.Message
}

// lane is where a message goes. What was admitted passes by the limit of its queue.
type lane struct {
	queue    string
	admitted bool
}

// dispatcher publishes messages in batches, concurrently and in bounded memory.
// What finds no room is dropped: its run row is the outbox, and the sweep
// publishes it again. A slow queue so slows publishing, never claiming.
type dispatcher struct {
	to      core.Publisher
	clock   core.Clock
	log     *slog.Logger
	timeout time.Duration
	observe core.Observe
	queues  []string // that to serves
	in      chan outgoing
	warn    sync.Once
	room    func(queue string) bool // nil: any queue has
	gate    *limit.Gate
	admit   *limit.Admitter
	// unserved are the queues of runs that were left to others.
	unserved sync.Map

	mu   sync.Mutex
	full map[string]time.Time // queues without room, and since when they are left alone
}

func newDispatcher(c Config) *dispatcher {
	d := &dispatcher{
		to: c.Publisher, clock: c.Clock, log: c.Logger, timeout: c.Timeout, observe: c.Observe, queues: c.Queues,
		in: make(chan outgoing, dispatchBuffer), full: map[string]time.Time{}, gate: limit.New(c.Store, c.Clock, c.Timeout),
	}
	d.admit = limit.NewAdmitter(limit.AdmitterConfig{
		Gate: d.gate, Clock: c.Clock, Logger: c.Logger, DispatchLease: c.DispatchLease, Looks: true, Send: d.send,
		Serves: func(queue string) bool {
			return d.serves(queue) && !d.isFull(queue) && (d.room == nil || d.room(queue))
		},
	})
	return d
}

// serves reports whether this process publishes to the queue.
func (d *dispatcher) serves(queue string) bool { return slices.Contains(d.queues, queue) }

// add takes a message for publishing; it never blocks. Runs of queues that
// other processes serve are theirs to find.
func (d *dispatcher) add(queue string, m core.Message) { d.put(outgoing{lane{queue: queue}, m}) }

func (d *dispatcher) put(m outgoing) {
	queue := m.queue
	if !d.serves(queue) {
		d.warnUnserved(queue)
		return
	}
	if d.isFull(queue) {
		return
	}
	select {
	case d.in <- m:
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
	g.Go(func() error { return d.admit.Run(ctx) })
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
func (d *dispatcher) collect(first outgoing) map[lane][]core.Message {
	out := map[lane][]core.Message{first.lane: {first.Message}}
	for range dispatchBatch - 1 {
		select {
		case m := <-d.in:
			out[m.lane] = append(out[m.lane], m.Message)
		default:
			return out
		}
	}
	return out
}

func (d *dispatcher) publish(ctx context.Context, batch map[lane][]core.Message) {
	for to, msgs := range batch {
		if to.admitted || !d.hold(ctx, to.queue, msgs) {
			d.send(ctx, to.queue, msgs)
		}
	}
}

// hold has the runs of a queue that has a limit wait until they are admitted, and
// reports whether it did. What cannot be held is published: start keeps the limit.
func (d *dispatcher) hold(ctx context.Context, queue string, msgs []core.Message) bool {
	limited, err := d.gate.Limited(ctx, queue)
	if err == nil && limited {
		err = d.gate.Hold(ctx, msgs)
	}
	if err != nil {
		d.log.Error("limits", "queue", queue, "error", err)
		return false
	}
	if limited {
		d.observe.Tell(core.Event{Kind: core.EventHeld, Queue: queue, N: len(msgs)})
		d.admit.Tell(queue)
	}
	return limited
}

func (d *dispatcher) send(ctx context.Context, queue string, msgs []core.Message) {
	pctx, cancel := context.WithTimeoutCause(ctx, d.timeout, errors.New("publish took too long"))
	defer cancel()
	n, err := d.to.Publish(pctx, queue, msgs)
	d.observe.Tell(core.Event{Kind: core.EventDispatched, Queue: queue, N: n})
	d.observe.Tell(core.Event{Kind: core.EventUndelivered, Queue: queue, N: len(msgs) - n})
	switch {
	case err == nil:
	case errors.Is(err, core.ErrQueueFull):
		d.log.Debug("queue is full; runs wait for the sweep", "queue", queue, "runs", len(msgs)-n)
		d.setFull(queue)
	default:
		d.log.Error("publish", "queue", queue, "runs", len(msgs)-n, "error", err)
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
