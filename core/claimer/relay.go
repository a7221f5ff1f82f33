package claimer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
)

// Relay publishes runs that other processes claimed into the queue of this one.
// It serves executors that share nothing with the claimers but the database.
type Relay struct {
	c    Config
	room func(queue string) bool
}

// NewRelay returns a relay. Of c it uses Store, Clock, Publisher, Queues, Logger,
// PollEvery, StragglerEvery and the dispatch leases. Room says whether a
// queue has room for more; while it has none, its runs are left to others.
func NewRelay(c Config, room func(queue string) bool) (*Relay, error) {
	if c.Store == nil || c.Clock == nil || c.Publisher == nil || room == nil {
		return nil, errors.New("relay: store, clock, publisher and room are required")
	}
	return &Relay{c: c.withDefaults(), room: room}, nil
}

// Run relays until ctx is done and returns nil then. It survives an unreachable
// database.
func (r *Relay) Run(ctx context.Context) error {
	out := newDispatcher(r.c)
	out.room = r.room
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return out.run(gctx) })
	sweeps := newSweeper(r.c, out, newDeadLetters(r.c))
	sweeps.relays = true
	g.Go(func() error { return r.loop(gctx, sweeps) })
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

func (r *Relay) loop(ctx context.Context, s *sweeper) error {
	var lastWide time.Time
	failed := 0
	for ctx.Err() == nil {
		now := r.c.Clock.Now()
		wide := passed(lastWide, now, r.c.StragglerEvery)
		gap := r.c.PollEvery
		if queues := r.roomy(); len(queues) > 0 {
			sctx, cancel := context.WithTimeoutCause(ctx, r.c.Timeout, errors.New("relay round took too long"))
			err := s.sweep(sctx, nil, queues, wide)
			cancel()
			switch {
			case err != nil:
				failed++
				r.c.Observe.Tell(core.Event{Kind: core.EventFailed, What: "relay"})
				if failed == 1 {
					r.c.Logger.Error("relay round", "error", err)
				}
				gap = min(r.c.PollEvery<<min(failed, 4), 10*time.Second)
			case s.more:
				failed, gap = 0, 0
			default:
				failed = 0
			}
			if wide && err == nil {
				lastWide = now
			}
		}
		_ = r.c.Clock.Sleep(ctx, gap) // an error is ctx's end
	}
	return nil
}

// roomy returns the queues that have room.
func (r *Relay) roomy() []string {
	var out []string
	for _, q := range r.c.Queues {
		if r.room(q) {
			out = append(out, q)
		}
	}
	return out
}
