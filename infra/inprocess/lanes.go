package inprocess

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// lanes is one queue: the messages of each tenant in the order in which they came, and
// the tenants in turn, so that a backlog of one holds up no other.
type lanes struct {
	capacity int

	mu      sync.Mutex
	n       int
	waiting map[uuid.UUID][]core.Message // none is empty
	turn    []uuid.UUID                  // each tenant that waits, once
	came    chan struct{}                // closed and replaced when something comes
}

func newLanes(capacity int) *lanes {
	return &lanes{capacity: capacity, waiting: map[uuid.UUID][]core.Message{}, came: make(chan struct{})}
}

// put takes what fits, from the front, and returns how many that were.
func (l *lanes) put(msgs []core.Message) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(msgs), l.capacity-l.n)
	if n == 0 {
		return 0
	}
	for _, m := range msgs[:n] {
		if len(l.waiting[m.Tenant]) == 0 {
			l.turn = append(l.turn, m.Tenant)
		}
		l.waiting[m.Tenant] = append(l.waiting[m.Tenant], m)
	}
	l.n += n
	close(l.came)
	l.came = make(chan struct{})
	return n
}

// take returns up to most messages, one of each tenant in turn, and what tells that
// more have come.
func (l *lanes) take(most int) ([]core.Message, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []core.Message
	for len(out) < most && len(l.turn) > 0 {
		tenant := l.turn[0]
		l.turn = l.turn[1:]
		msgs := l.waiting[tenant]
		out = append(out, msgs[0])
		if len(msgs) == 1 {
			delete(l.waiting, tenant)
			continue
		}
		l.waiting[tenant] = msgs[1:]
		l.turn = append(l.turn, tenant)
	}
	l.n -= len(out)
	return out, l.came
}

// wait takes at least one message, unless ctx is done.
func (l *lanes) wait(ctx context.Context, most int) ([]core.Message, error) {
	for {
		msgs, came := l.take(most)
		if len(msgs) > 0 {
			return msgs, nil
		}
		select {
		case <-came:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (l *lanes) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}
