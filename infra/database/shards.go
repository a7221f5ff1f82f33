package database

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/core"
)

// RenewShards implements core.LeaseStore.
func (d *DB) RenewShards(ctx context.Context, owner string, ttl time.Duration) ([]int16, int, error) {
	type row struct {
		Shard  int16
		Others int64
	}
	rows, err := query[row](ctx, d, "renew_shards", d.region, owner, ttl)
	if err != nil {
		return nil, 0, err
	}
	var held []int16
	owners := 1
	for _, r := range rows {
		if r.Shard < 0 {
			owners += int(r.Others)
			continue
		}
		held = append(held, r.Shard)
	}
	return held, owners, nil
}

// TakeShards implements core.LeaseStore.
func (d *DB) TakeShards(ctx context.Context, owner string, ttl time.Duration, n int) ([]int16, error) {
	type row struct{ Shard int16 }
	all := make([]int16, core.Shards)
	for i := range all {
		all[i] = int16(i)
	}
	rows, err := query[row](ctx, d, "take_shards", d.region, owner, ttl, all, n)
	if err != nil {
		return nil, err
	}
	return each(rows, func(r row) int16 { return r.Shard }), nil
}

// ReleaseShards implements core.LeaseStore.
func (d *DB) ReleaseShards(ctx context.Context, owner string, shards []int16) error {
	all := shards == nil
	if all {
		for i := range int16(core.Shards) {
			shards = append(shards, i)
		}
	}
	if err := d.exec(ctx, "release_shards", d.region, owner, shards); err != nil || !all {
		return err
	}
	return d.exec(ctx, "drop_claimer", d.region, owner)
}
