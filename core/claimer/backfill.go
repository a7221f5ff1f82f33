package claimer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/backfill"
)

// How soon backfills are looked at again: while none is running, while none moves
// on, and after one did.
const (
	backfillIdle  = 5 * time.Second
	backfillWaits = time.Second
	backfillMoves = 200 * time.Millisecond
)

// backfiller moves the backfills of the held shards on. Two that look at one at the
// same time are told apart by its fence.
type backfiller struct {
	c      Config
	out    *dispatcher
	shards atomic.Pointer[[]int16] // held, as the last round knew them
}

// run looks until ctx is done. It survives an unreachable database.
func (b *backfiller) run(ctx context.Context) error {
	failed := 0
	for ctx.Err() == nil {
		gap, err := b.look(ctx)
		switch {
		case err == nil:
			failed = 0
		case ctx.Err() == nil:
			if failed++; failed == 1 {
				b.c.Logger.Error("backfills", "owner", b.c.Owner, "error", err)
			}
			gap = backfillIdle
		}
		_ = b.c.Clock.Sleep(ctx, gap) // an error is ctx's end
	}
	return nil
}

// look moves each backfill that can on by one step, and returns when to look again.
func (b *backfiller) look(ctx context.Context) (time.Duration, error) {
	shards := b.shards.Load()
	if shards == nil || len(*shards) == 0 {
		return backfillWaits, nil
	}
	lctx, cancel := context.WithTimeoutCause(ctx, b.c.Timeout, errors.New("reading backfills took too long"))
	due, err := b.c.Store.DueBackfills(lctx, *shards)
	cancel()
	if err != nil {
		return 0, fmt.Errorf("read due backfills: %w", err)
	}
	gap := backfillIdle
	for _, d := range due {
		moved, err := b.step(ctx, d)
		switch {
		case err != nil:
			return 0, fmt.Errorf("advance backfill %s: %w", d.ID, err)
		case moved:
			gap = backfillMoves
		default:
			gap = min(gap, backfillWaits)
		}
	}
	return gap, nil
}

// step moves one backfill on. Once begun it goes on when ctx ends, as a claim does:
// the runs that it makes are to be published.
func (b *backfiller) step(ctx context.Context, d core.DueBackfill) (bool, error) {
	step, ok := backfill.Step(d)
	if !ok || ctx.Err() != nil {
		return false, nil
	}
	step.Elsewhere = !b.out.serves(d.Queue)
	sctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), b.c.Timeout, errors.New("advancing a backfill took too long"))
	defer cancel()
	made, err := b.c.Store.AdvanceBackfill(sctx, step, b.c.DispatchLease)
	if err != nil {
		return false, err // the sweep publishes what was made all the same
	}
	for _, r := range made {
		b.out.add(r.Queue, r.Message())
	}
	return true, nil
}
