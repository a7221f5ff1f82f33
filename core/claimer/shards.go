package claimer

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
)

// shardSet is the shards that this claimer works on: given ones, or its share
// of all, kept by leases. It is not safe for concurrent use.
type shardSet struct {
	c       Config
	held    map[int16]bool
	renewed time.Time
	fixed   bool
}

func newShardSet(c Config) *shardSet {
	return &shardSet{c: c, held: map[int16]bool{}, fixed: c.Shards != nil}
}

func (s *shardSet) has(shard int16) bool { return s.held[shard] }

// list returns the held shards in order.
func (s *shardSet) list() []int16 {
	out := make([]int16, 0, len(s.held))
	for shard := range s.held {
		out = append(out, shard)
	}
	slices.Sort(out)
	return out
}

// keep renews the leases each third of their length and moves towards a fair
// share: every claimer holds no more than its part, and takes what is free up
// to it. It reports whether the set changed.
func (s *shardSet) keep(ctx context.Context, now time.Time) (bool, error) {
	if s.fixed {
		return s.become(s.c.Shards), nil
	}
	if !s.renewed.IsZero() && !passed(s.renewed, now, s.c.ShardLease/3) {
		return false, nil
	}
	held, owners, err := s.c.Store.RenewShards(ctx, s.c.Owner, s.c.ShardLease)
	if err != nil {
		return false, err
	}
	fair := (core.Shards + owners - 1) / owners
	switch {
	case len(held) > fair:
		extra := held[fair:]
		if err := s.c.Store.ReleaseShards(ctx, s.c.Owner, extra); err != nil {
			return false, err
		}
		held = held[:fair]
	case len(held) < fair:
		more, err := s.c.Store.TakeShards(ctx, s.c.Owner, s.c.ShardLease, fair-len(held))
		if err != nil {
			return false, err
		}
		held = append(held, more...)
	}
	s.renewed = now
	return s.become(held), nil
}

// become makes shards the held ones and reports whether that changed anything.
func (s *shardSet) become(shards []int16) bool {
	next := make(map[int16]bool, len(shards))
	changed := len(shards) != len(s.held)
	for _, shard := range shards {
		next[shard] = true
		changed = changed || !s.held[shard]
	}
	s.held = next
	return changed
}

// release gives all leases back, so that the other claimers need not wait for
// their end.
func (s *shardSet) release(ctx context.Context) {
	if s.fixed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := s.c.Store.ReleaseShards(ctx, s.c.Owner, nil); err != nil {
		s.c.Logger.Warn("give shards back", "owner", s.c.Owner, "error", err)
	}
}
