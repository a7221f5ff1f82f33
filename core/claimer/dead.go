package claimer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/core"
)

const (
	// deadBuffer is how many dead runs wait to be told of; the sweep brings others
	// again.
	deadBuffer = 1000
	// tellDead is how long telling may take before the sweep brings a run again.
	tellDead = 30 * time.Second
)

// deadLetters publishes what the sweep found dead to the queue that wants to know,
// at least once: a run is settled only after its message was taken.
type deadLetters struct {
	queue   string // empty: nobody wants to know
	to      core.Publisher
	store   core.SweepStore
	log     *slog.Logger
	timeout time.Duration
	in      chan core.Message
}

func newDeadLetters(c Config) *deadLetters {
	return &deadLetters{
		queue: c.DeadLetters, to: c.Publisher, store: c.Store, log: c.Logger, timeout: c.Timeout, in: make(chan core.Message, deadBuffer),
	}
}

// lease is how long a dead run may take to be told of, zero if nobody is told.
func (d *deadLetters) lease() time.Duration {
	if d.queue == "" {
		return 0
	}
	return tellDead
}

// add takes a dead run; it never blocks. What finds no room comes again.
func (d *deadLetters) add(m core.Message) {
	if d.queue == "" {
		return
	}
	select {
	case d.in <- m:
	default:
	}
}

// run tells until ctx is done. What is left then comes again.
func (d *deadLetters) run(ctx context.Context) error {
	for {
		select {
		case m := <-d.in:
			d.tell(ctx, d.collect(m))
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *deadLetters) collect(first core.Message) []core.Message {
	batch := []core.Message{first}
	for len(batch) < dispatchBatch {
		select {
		case m := <-d.in:
			batch = append(batch, m)
		default:
			return batch
		}
	}
	return batch
}

func (d *deadLetters) tell(ctx context.Context, batch []core.Message) {
	pctx, cancel := context.WithTimeoutCause(ctx, d.timeout, errors.New("publishing dead letters took too long"))
	n, err := d.to.Publish(pctx, d.queue, batch)
	cancel()
	if err != nil {
		d.log.Error("publish dead letters", "queue", d.queue, "runs", len(batch)-n, "error", err)
	}
	if n == 0 {
		return
	}
	told := make([]core.Held, n)
	for i, m := range batch[:n] {
		told[i] = core.Held{Key: m.Key, Fence: m.Fence}
	}
	sctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), d.timeout, errors.New("settling dead letters took too long"))
	defer cancel()
	if err := d.store.Settle(sctx, told); err != nil {
		d.log.Warn("settle dead letters; they are published again", "runs", n, "error", err)
	}
}
