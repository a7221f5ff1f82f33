package claimer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
)

// missDelay is how long a timer that a claim did not get is left alone: another
// claimer has it locked, or the database's clock is behind the estimate.
const missDelay = 250 * time.Millisecond

// claimUntil claims timers as their times come, until the process clock shows
// next or a look for more is worth while.
func (c *Claimer) claimUntil(ctx context.Context, next time.Time) {
	for ctx.Err() == nil && !c.starved() {
		wait := c.left(next)
		if wait <= 0 {
			return
		}
		if at, ok := c.timers.first(); ok {
			until := c.clock.until(at)
			if until <= 0 {
				c.claimDue(ctx)
				continue
			}
			wait = min(wait, until)
		}
		// An error is ctx's end, which the loop sees.
		_ = c.c.Clock.Sleep(ctx, wait)
	}
}

// result is what became of one shard's batch.
type result struct {
	shard   int16
	batch   []*entry
	moves   []core.Move
	claimed []core.Claimed
	err     error
}

// claimDue claims what is due, each shard by a statement of its own, several
// at once. When ctx ends no claim begins, but those under way go on: cut off,
// they would leave runs that nobody publishes for the length of a dispatch lease.
func (c *Claimer) claimDue(ctx context.Context) {
	due := c.timers.due(c.clock.now(), c.c.Batch)
	results := make([]result, 0, len(due))
	for shard, batch := range due {
		results = append(results, result{shard: shard, batch: batch})
		c.c.Observe.Tell(core.Event{Kind: core.EventDue, N: len(batch)})
	}
	whole := context.WithoutCancel(ctx)
	var g errgroup.Group
	g.SetLimit(c.c.Parallel)
	for i := range results {
		g.Go(func() error {
			r := &results[i]
			if r.err = context.Cause(ctx); r.err == nil {
				r.moves = c.plan(r.batch)
				r.claimed, r.err = c.claim(whole, r.shard, r.moves)
			}
			return nil
		})
	}
	_ = g.Wait() // each error is in its result
	var failed []error
	for i := range results {
		if err := c.settle(ctx, &results[i]); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 && ctx.Err() == nil {
		// In an outage they all fail, for the same reason.
		c.c.Logger.Error("claim", "shards", len(failed), "error", failed[0])
	}
}

func (c *Claimer) plan(batch []*entry) []core.Move {
	now := c.clock.now()
	moves := make([]core.Move, len(batch))
	for i, e := range batch {
		moves[i] = plan.Move(&e.Schedule, &e.Timer, e.slots, now)
		for j := range moves[i].Rows {
			moves[i].Rows[j].Elsewhere = !c.out.serves(moves[i].Rows[j].Queue)
		}
	}
	return moves
}

// claim carries out moves of one shard and publishes the runs. A batch with a
// value that the database refuses is halved until the one move is found, which
// is parked. After an unknown outcome the runs are looked up by key.
func (c *Claimer) claim(ctx context.Context, shard int16, moves []core.Move) ([]core.Claimed, error) {
	cctx, cancel := context.WithTimeoutCause(ctx, c.c.Timeout, errors.New("claim took too long"))
	defer cancel()
	if err := c.cancelPrevious(cctx, shard, moves); err != nil {
		return nil, err
	}
	began := c.c.Clock.Now()
	claimed, err := c.c.Store.Claim(cctx, shard, moves, c.c.DispatchLease)
	c.c.Observe.Tell(core.Event{Kind: core.EventClaim, Took: c.c.Clock.Now().Sub(began)})
	switch {
	case err == nil:
		c.publish(claimed)
		return claimed, nil
	case errors.Is(err, core.ErrBadRow) && len(moves) == 1:
		c.park(ctx, shard, moves[0], err)
		return nil, nil
	case errors.Is(err, core.ErrBadRow):
		half := len(moves) / 2
		first, err1 := c.claim(ctx, shard, moves[:half])
		second, err2 := c.claim(ctx, shard, moves[half:])
		return append(first, second...), errors.Join(err1, err2)
	case errors.Is(err, core.ErrUnknownOutcome):
		return c.resolve(ctx, moves, err)
	default:
		return nil, err
	}
}

// cancelPrevious ends the runs that moves under cancel_previous would meet. What
// is running ends later, and the timer waits for it.
func (c *Claimer) cancelPrevious(ctx context.Context, shard int16, moves []core.Move) error {
	var meeting []core.Move
	for _, m := range moves {
		if m.CancelLive {
			meeting = append(meeting, m)
		}
	}
	if len(meeting) == 0 {
		return nil
	}
	if _, err := c.c.Store.CancelPrevious(ctx, shard, meeting); err != nil {
		return fmt.Errorf("cancel previous runs: %w", err)
	}
	return nil
}

// resolve finds out what a claim of unknown outcome did. Publishing a run that
// somebody published already is harmless.
func (c *Claimer) resolve(ctx context.Context, moves []core.Move, cause error) ([]core.Claimed, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.c.Timeout, errors.New("look-up of a claim took too long"))
	defer cancel()
	claimed, err := c.c.Store.ReadClaimed(ctx, moves)
	if err != nil {
		c.unknown.add(moves)
		return nil, errors.Join(cause, err)
	}
	c.publish(claimed)
	return claimed, nil
}

// resolveAll looks up the claims whose outcome could not be learned so far.
func (c *Claimer) resolveAll(ctx context.Context) error {
	for moves := c.unknown.some(); len(moves) > 0; moves = c.unknown.some() {
		claimed, err := c.c.Store.ReadClaimed(ctx, moves)
		if err != nil {
			return fmt.Errorf("look up claims: %w", err)
		}
		c.publish(claimed)
		c.unknown.drop(len(moves))
	}
	return nil
}

func (c *Claimer) publish(claimed []core.Claimed) {
	for _, r := range claimed {
		c.c.Observe.Tell(core.Event{Kind: core.EventClaimed, Queue: r.Queue, State: r.State, N: 1})
		if r.State == core.RunQueued {
			c.out.add(r.Queue, r.Message())
		}
	}
}

// settle follows up on a batch: timers that moved are held for their next time,
// the others are read again. After an error, which it returns, all are tried
// again in a second.
func (c *Claimer) settle(ctx context.Context, r *result) error {
	if r.err != nil {
		for _, e := range r.batch {
			e.at = c.clock.now().Add(time.Second)
			c.timers.put(e)
		}
		return r.err
	}
	moved := make(map[uuid.UUID]bool, len(r.claimed))
	for _, k := range r.claimed {
		moved[k.Key.ScheduleID] = true
	}
	now := c.clock.now()
	var missed, late []core.TimerRef
	for i, e := range r.batch {
		m := &r.moves[i]
		ref := core.TimerRef{Shard: r.shard, FireAt: m.FireAt, ScheduleID: m.ScheduleID, Fence: m.Fence}
		switch {
		case !moved[m.ScheduleID]:
			missed = append(missed, ref)
		case !m.NextAt.After(now), e.Timer.RunsLeft != nil:
			late = append(late, ref) // the database chose its fire_at, or counted
		case m.NextAt.Before(now.Add(c.c.Ahead)):
			e.Timer.FireAt, e.Timer.Done, e.Timer.Parked = m.NextAt, m.Done, false
			e.Timer.Fence++
			e.at = m.NextAt
			c.timers.put(e)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.c.Timeout, errors.New("reading timers took too long"))
	defer cancel()
	return errors.Join(c.read(ctx, missed, missDelay), c.read(ctx, late, 0))
}

func (c *Claimer) park(ctx context.Context, shard int16, m core.Move, cause error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.c.Timeout, errors.New("parking took too long"))
	defer cancel()
	c.c.Logger.Error("timer parked for an hour", "schedule_id", m.ScheduleID, "shard", shard, "error", cause)
	if err := c.c.Store.Park(ctx, shard, m, cause.Error()); err != nil {
		c.c.Logger.Error("park timer", "schedule_id", m.ScheduleID, "shard", shard, "error", err)
	}
}
