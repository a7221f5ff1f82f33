package executor

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

const (
	// nudgeTimeout is as long as a timer waits that nobody nudges.
	nudgeTimeout = 2 * time.Second
	// maxNudges bounds what waits to be sent while the database is slow.
	maxNudges = 10_000
)

// nudger tells the timers that wait for runs that these have ended, beside the
// recorder, which it never holds up.
type nudger struct {
	store   core.RunStore
	log     *slog.Logger
	mu      sync.Mutex
	waiting map[uuid.UUID]bool
	wake    chan struct{}
}

func newNudger(c Config) *nudger {
	return &nudger{store: c.Store, log: c.Logger, waiting: map[uuid.UUID]bool{}, wake: make(chan struct{}, 1)}
}

// add has the timers of schedules nudged soon, by one statement. What is beyond
// the bound is dropped: those timers look by themselves.
func (n *nudger) add(schedules []uuid.UUID) {
	if len(schedules) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range schedules {
		if len(n.waiting) < maxNudges {
			n.waiting[id] = true
		}
	}
	select {
	case n.wake <- struct{}{}:
	default: // it is about to
	}
}

// take removes what waits, in an order in which two executors do not wait for each
// other in the database.
func (n *nudger) take() []uuid.UUID {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := make([]uuid.UUID, 0, len(n.waiting))
	for id := range n.waiting {
		ids = append(ids, id)
	}
	clear(n.waiting)
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// run sends until ctx is done, and then what is left. A nudge that fails is
// forgotten.
func (n *nudger) run(ctx context.Context) {
	for ended := false; !ended; {
		select {
		case <-n.wake:
		case <-ctx.Done():
			ended = true
		}
		if ids := n.take(); len(ids) > 0 {
			n.nudge(context.WithoutCancel(ctx), ids)
		}
	}
}

// nudge sends one statement under a limit of its own.
func (n *nudger) nudge(ctx context.Context, ids []uuid.UUID) {
	ctx, cancel := context.WithTimeoutCause(ctx, nudgeTimeout, errors.New("nudge took too long"))
	defer cancel()
	if err := n.store.Nudge(ctx, ids); err != nil {
		n.log.Warn("nudge timers that wait", "schedules", len(ids), "error", err)
	}
}
