package sqs

import (
	"context"
	"sync"
	"time"
)

// maxDeletions bounds what waits to be deleted while SQS is slow.
const maxDeletions = 10_000

// deletions are the handles of messages that are done, by queue. They wait a
// little for others: ten cost as much as one.
type deletions struct {
	some  chan struct{} // there is something
	whole chan struct{} // a queue has a whole batch

	mu      *sync.Mutex
	queues  map[string]*waiting
	n       int
	stopped bool
}

// waiting is what one queue has.
type waiting struct {
	handles []string
	since   time.Time // the first of them
}

func newDeletions() deletions {
	return deletions{some: make(chan struct{}, 1), whole: make(chan struct{}, 1), mu: &sync.Mutex{}, queues: map[string]*waiting{}}
}

// add takes a handle, unless there is no room or the loop has ended.
func (d *deletions) add(queue, handle string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped || d.n >= maxDeletions {
		return false
	}
	w := d.queues[queue]
	if w == nil {
		w = &waiting{since: now}
		d.queues[queue] = w
	}
	w.handles = append(w.handles, handle)
	d.n++
	tell(d.some)
	if len(w.handles) >= batchSize {
		tell(d.whole)
	}
	return true
}

// take removes whole batches, and all of a queue whose first handle has waited
// for linger. What is left will be taken another time.
func (d *deletions) take(now time.Time, linger time.Duration) map[string][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[string][]string{}
	for name, w := range d.queues {
		n := len(w.handles)
		if now.Sub(w.since) < linger {
			n -= n % batchSize
		}
		if n == 0 {
			continue
		}
		out[name] = w.handles[:n:n]
		w.handles, w.since = w.handles[n:], now
		d.n -= n
		if len(w.handles) == 0 {
			delete(d.queues, name)
		}
	}
	if d.n > 0 {
		tell(d.some)
	}
	return out
}

// stop removes everything and takes nothing from then on.
func (d *deletions) stop() map[string][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	out := map[string][]string{}
	for name, w := range d.queues {
		out[name] = w.handles
	}
	clear(d.queues)
	d.n = 0
	return out
}

// tell wakes whoever waits for c.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is about to wake
	}
}

// deleteOn deletes what is done, until the consumer closes.
func (c *Consumer) deleteOn(ctx context.Context) {
	d := &c.deletions
	for {
		select {
		case <-d.some:
		case <-c.closing:
			return
		}
		select {
		case <-d.whole:
		case <-c.c.c.Clock.After(c.c.c.Linger):
		case <-c.closing:
			return
		}
		if err := c.delete(ctx, d.take(c.c.c.Clock.Now(), c.c.c.Linger)); err != nil {
			c.c.c.Logger.Warn("messages that are done come again", "error", err)
		}
	}
}
