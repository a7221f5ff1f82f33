// Package inprocess is the queue between claimer and executor when both live in
// one process, and exists so that one machine needs no broker. What is in it
// dies with the process; the sweep publishes those runs again. Tenants take turns.
package inprocess

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

const defaultCapacity = 10_000

// maxCapacity bounds the memory of a queue to about 100 MB.
const maxCapacity = 1_000_000

// ErrUnknownQueue answers a queue that Config does not name. A job for it waits
// in the database until a process that serves it publishes it.
var ErrUnknownQueue = &core.Error{Code: core.CodeNotFound, Kind: "unknown_queue", Field: "queue", Message: "no such queue in this process"}

// Config says which queues there are.
type Config struct {
	// Queues are the names that Publish and Receive know; at least one.
	Queues []string
	// Capacity is how many messages each queue holds, at most a million.
	// Defaults to 10,000.
	Capacity int
}

// Queue is core.Publisher and core.Consumer for several named queues. Make it
// with New. It is safe for concurrent use and needs no closing.
type Queue struct {
	queues map[string]*lanes
}

var (
	_ core.Publisher = (*Queue)(nil)
	_ core.Consumer  = (*Queue)(nil)
)

// New returns empty queues. It refuses a Config
// without queues, with one named twice, or with a capacity out of bounds.
func New(cfg Config) (*Queue, error) {
	if cfg.Capacity == 0 {
		cfg.Capacity = defaultCapacity
	}
	if cfg.Capacity < 0 || cfg.Capacity > maxCapacity {
		return nil, core.Invalid("capacity", "must be between 1 and %d messages", maxCapacity)
	}
	q := &Queue{queues: make(map[string]*lanes, len(cfg.Queues))}
	for _, name := range cfg.Queues {
		if _, twice := q.queues[name]; twice || name == "" {
			return nil, core.Invalid("queues", "must have different names that are not empty")
		}
		q.queues[name] = newLanes(cfg.Capacity)
	}
	if len(q.queues) == 0 {
		return nil, core.Invalid("queues", "must name at least one")
	}
	return q, nil
}

// Publish takes what fits, from the front, without waiting, and returns how
// many that were; core.ErrQueueFull tells of the rest.
func (q *Queue) Publish(ctx context.Context, queue string, msgs []core.Message) (int, error) {
	l, ok := q.queues[queue]
	if !ok {
		return 0, ErrUnknownQueue
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("publish: %w", context.Cause(ctx))
	}
	if n := l.put(msgs); n < len(msgs) {
		return n, core.ErrQueueFull
	}
	return len(msgs), nil
}

// Receive waits for a message until ctx is done and returns it with those
// behind it, at most max. Once returned they are gone from the queue.
func (q *Queue) Receive(ctx context.Context, queue string, max int) ([]core.Delivery, error) {
	l, ok := q.queues[queue]
	if !ok {
		return nil, ErrUnknownQueue
	}
	if max < 1 {
		return nil, core.Invalid("max", "must be at least 1")
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	msgs, err := l.wait(ctx, max)
	if err != nil {
		return nil, err
	}
	ds := make([]core.Delivery, len(msgs))
	for i, m := range msgs {
		ds[i] = deliver(m)
	}
	return ds, nil
}

func deliver(m core.Message) core.Delivery {
	return core.Delivery{Message: m, Token: uuid.New()}
}

// Done does nothing: a message left the queue when it was received, and one
// whose run did not end is published again by the sweep.
func (q *Queue) Done(context.Context, []core.Delivery) error { return nil }

// Len returns how many messages wait in the named queue, zero for a queue that
// is unknown. Others may change it at any moment.
func (q *Queue) Len(queue string) int {
	if l, ok := q.queues[queue]; ok {
		return l.len()
	}
	return 0
}
