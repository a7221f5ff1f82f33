package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
)

// RenewShards implements core.LeaseStore. A lease that ended and that nobody
// took is the owner's again.
func (s *Store) RenewShards(ctx context.Context, owner string, ttl time.Duration) ([]int16, int, error) {
	now, err := s.begin(ctx, "renew shards")
	if err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	s.claimers[owner] = after(now, ttl)
	var held []int16
	for _, shard := range slices.Sorted(maps.Keys(s.leases)) {
		if s.leases[shard].owner == owner {
			s.leases[shard] = shardLease{owner, after(now, ttl)}
			held = append(held, shard)
		}
	}
	owners := 1
	for other, until := range s.claimers {
		if other != owner && until.After(now) {
			owners++
		}
	}
	return held, owners, nil
}

// TakeShards implements core.LeaseStore. An owner that never registered gets
// nothing.
func (s *Store) TakeShards(ctx context.Context, owner string, ttl time.Duration, n int) ([]int16, error) {
	now, err := s.begin(ctx, "take shards")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []int16{}
	if _, ok := s.claimers[owner]; !ok {
		return out, nil
	}
	for shard := range int16(core.Shards) {
		l, ok := s.leases[shard]
		if len(out) < n && (!ok || l.until.Before(now)) {
			s.leases[shard] = shardLease{owner, after(now, ttl)}
			out = append(out, shard)
		}
	}
	return out, nil
}

// ReleaseShards implements core.LeaseStore.
func (s *Store) ReleaseShards(ctx context.Context, owner string, shards []int16) error {
	now, err := s.begin(ctx, "release shards")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	for shard, l := range s.leases {
		if l.owner == owner && (shards == nil || slices.Contains(shards, shard)) {
			s.leases[shard] = shardLease{until: now.Add(-time.Second)}
		}
	}
	if shards == nil {
		maps.DeleteFunc(s.claimers, func(other string, until time.Time) bool {
			return other == owner || until.Before(now.Add(-24*time.Hour))
		})
	}
	return nil
}
