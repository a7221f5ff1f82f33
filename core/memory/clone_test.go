package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/core/storetest"
)

// TestCloneConformance: a clone is a store like any other.
func TestCloneConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Harness {
		clock := &still{now: time.Date(2027, 3, 9, 11, 29, 31, 123_456_000, time.UTC)}
		s := memory.New("local", clock).Clone(clock)
		return storetest.Harness{Store: s, Region: "local", Advance: clock.advance, Alert: s.Alert}
	})
}

// TestCloneStandsApart does the same to two stores, to one of them after a clone of it: what
// clones share with their origin would show.
func TestCloneStandsApart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		clock := &still{now: time.Date(2027, 3, 9, 11, 29, 31, 123_456_000, time.UTC)}
		other := &still{now: clock.now}
		a, b := memory.New("local", clock), memory.New("local", other)
		storetest.Differ(t, seed, 300,
			storetest.Harness{Store: a, Region: "local", Advance: clock.advance, Alert: a.Alert},
			storetest.Harness{Store: shadowed{b, other}, Region: "local", Advance: other.advance, Alert: b.Alert})
	}
}

// shadowed does what changes rows to a clone first, which is thrown away.
type shadowed struct {
	*memory.Store
	clock *still
}

func (s shadowed) Claim(ctx context.Context, shard int16, moves []core.Move, lease time.Duration) ([]core.Claimed, error) {
	_, _ = s.Store.Clone(s.clock).Claim(ctx, shard, moves, lease)
	return s.Store.Claim(ctx, shard, moves, lease)
}

func (s shadowed) Start(ctx context.Context, ds []core.Delivery, lease time.Duration) ([]core.Started, error) {
	_, _ = s.Store.Clone(s.clock).Start(ctx, ds, lease)
	return s.Store.Start(ctx, ds, lease)
}

func (s shadowed) Finish(ctx context.Context, os []core.Outcome) ([]core.Finished, error) {
	_, _ = s.Store.Clone(s.clock).Finish(ctx, os)
	return s.Store.Finish(ctx, os)
}

func (s shadowed) Sweep(ctx context.Context, o core.SweepOptions) ([]core.Swept, time.Time, error) {
	_, _, _ = s.Store.Clone(s.clock).Sweep(ctx, o)
	return s.Store.Sweep(ctx, o)
}

func (s shadowed) Apply(ctx context.Context, tenant uuid.UUID, e core.Edit) error {
	_ = s.Store.Clone(s.clock).Apply(ctx, tenant, e)
	return s.Store.Apply(ctx, tenant, e)
}

func (s shadowed) AdvanceBackfill(ctx context.Context, b core.BackfillStep, lease time.Duration) ([]core.Claimed, error) {
	_, _ = s.Store.Clone(s.clock).AdvanceBackfill(ctx, b, lease)
	return s.Store.AdvanceBackfill(ctx, b, lease)
}
