// Package worker hands runs to workers outside of Fencepost, in any language, and
// takes their outcomes back. It exists so that a worker needs nothing but HTTP: the
// desk stands where an executor would, and the fence goes to the worker and back.
//
// A desk holds messages of the queues that it serves, each tenant's apart. They are
// hints, as those of any queue: what is lost with the process is published again by
// the sweep.
package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/limit"
)

// Store is what a desk needs of the database.
type Store interface {
	core.RunStore
	core.LimitStore
	// Get, Run, Reserve and NoteLease are those of core.ScheduleStore.
	Get(ctx context.Context, tenant, id uuid.UUID) (core.Scheduled, error)
	Run(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, []core.Attempt, error)
	Reserve(ctx context.Context, tenant uuid.UUID, r core.Request) (core.Reservation, error)
	NoteLease(ctx context.Context, tenant uuid.UUID, key [32]byte, msgs []core.Message) ([]core.Message, error)
}

// Config is what a desk stands on. All but Capacity and Observe is required.
type Config struct {
	Store Store
	Clock core.Clock
	// Queues are those whose runs workers lease.
	Queues []string
	// Capacity is how many messages of a queue are held at most. Defaults to 10,000.
	Capacity int
	// Observe is told what workers do; nil is told nothing.
	Observe core.Observe
}

// Desk is safe for concurrent use. Make it with New; Close ends all waiting.
type Desk struct {
	store    Store
	clock    core.Clock
	queues   []string
	capacity int
	gate     *limit.Gate
	observe  core.Observe

	mu      sync.Mutex
	lanes   map[laneKey]*lane
	held    map[string]int // messages of a queue
	waiting map[string]int // who waits for a queue
	closed  chan struct{}
	close   func()
}

// laneKey names the messages of a tenant in a queue.
type laneKey struct {
	queue  string
	tenant uuid.UUID
}

// lane is one tenant's messages of a queue, in the order in which they came.
type lane struct {
	msgs []core.Message
	came chan struct{} // closed and replaced when something comes
}

// New returns a desk. It fails if something is missing.
func New(c Config) (*Desk, error) {
	if c.Store == nil || c.Clock == nil {
		return nil, errors.New("worker: store and clock are required")
	}
	if c.Capacity == 0 {
		c.Capacity = 10_000
	}
	d := &Desk{
		store: c.Store, clock: c.Clock, queues: slices.Sorted(slices.Values(c.Queues)), capacity: c.Capacity,
		gate: limit.New(c.Store, c.Clock, limitTimeout), observe: c.Observe,
		lanes: map[laneKey]*lane{}, held: map[string]int{}, waiting: map[string]int{}, closed: make(chan struct{}),
	}
	d.close = sync.OnceFunc(func() { close(d.closed) })
	return d, nil
}

// Close ends all waiting, now and later. It may be called again.
func (d *Desk) Close() { d.close() }

// Queues returns the queues that the desk serves, sorted.
func (d *Desk) Queues() []string { return d.queues }

// Wanted reports whether somebody waits for runs of a queue, or there is little of it.
func (d *Desk) Wanted(queue string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting[queue] > 0 && d.held[queue] < d.capacity/10
}

// Publish implements core.Publisher: it takes what fits, from the front. Of several
// messages of a run the newest counts.
func (d *Desk) Publish(_ context.Context, queue string, msgs []core.Message) (int, error) {
	if !slices.Contains(d.queues, queue) {
		return 0, ErrUnknownQueue
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, m := range msgs {
		l := d.lane(laneKey{queue, m.Tenant})
		i := slices.IndexFunc(l.msgs, func(old core.Message) bool { return old.Key == m.Key })
		switch {
		case i >= 0:
			l.msgs[i].Fence = max(l.msgs[i].Fence, m.Fence)
			continue
		case d.held[queue] >= d.capacity:
			return n, core.ErrQueueFull
		}
		l.msgs = append(l.msgs, m)
		d.held[queue]++
		close(l.came)
		l.came = make(chan struct{})
	}
	return len(msgs), nil
}

// lane returns a lane, which it makes if need be. The caller holds the lock.
func (d *Desk) lane(k laneKey) *lane {
	l := d.lanes[k]
	if l == nil {
		l = &lane{came: make(chan struct{})}
		d.lanes[k] = l
	}
	return l
}

// take returns up to most messages, waiting for the first until the time is up.
func (d *Desk) take(ctx context.Context, k laneKey, most int, until <-chan time.Time) []core.Message {
	d.wait(k.queue, 1)
	defer d.wait(k.queue, -1)
	for {
		msgs, came := d.pop(k, most)
		if len(msgs) > 0 {
			return msgs
		}
		select {
		case <-came:
		case <-until:
			return nil
		case <-ctx.Done():
			return nil
		case <-d.closed:
			return nil
		}
	}
}

func (d *Desk) wait(queue string, by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[queue] += by
}

// pop takes what is there. The channel closes when more comes.
func (d *Desk) pop(k laneKey, most int) ([]core.Message, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lane(k)
	n := min(most, len(l.msgs))
	msgs := slices.Clone(l.msgs[:n])
	l.msgs = l.msgs[n:]
	d.held[k.queue] -= n
	return msgs, l.came
}
