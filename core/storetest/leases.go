package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
)

func leaseTests() []test {
	return []test{
		{"shards are taken, renewed, given up and taken over", testLeases},
		{"a claimer that left gives all and is not counted", testLeave},
		{"claimers take each shard once", testLeasesApart},
	}
}

const shardTTL = 15 * time.Second

func (w *world) renew(owner string) ([]int16, int) {
	w.Helper()
	held, owners, err := w.Store.RenewShards(w.ctx, owner, shardTTL)
	w.must(err)
	slices.Sort(held)
	return held, owners
}

func (w *world) take(owner string, n int) []int16 {
	w.Helper()
	got, err := w.Store.TakeShards(w.ctx, owner, shardTTL, n)
	w.must(err)
	slices.Sort(got)
	return got
}

func (w *world) holds(owner string, owners int, shards ...int16) {
	w.Helper()
	held, n := w.renew(owner)
	w.same(fmt.Sprintf("shards of %s", owner), shards, held)
	w.same("claimers alive", owners, n)
}

func testLeases(w *world) {
	w.same("shards of one who did not register", 0, len(w.take("a", 3)))
	w.holds("a", 1)
	w.same("taken", []int16{0, 1, 2}, w.take("a", 3))
	w.same("taken of nothing", 0, len(w.take("a", 0)))
	w.holds("b", 2)
	w.same("taken by the second", []int16{3, 4}, w.take("b", 2))
	w.Advance(10 * time.Second)
	w.holds("a", 2, 0, 1, 2)
	w.must(w.Store.ReleaseShards(w.ctx, "a", []int16{1, 2, 3}))
	w.holds("a", 2, 0)
	w.same("given up and taken", []int16{1, 2}, w.take("b", 2))
	w.holds("b", 2, 1, 2, 3, 4)
	w.Advance(shardTTL)
	w.holds("a", 1, 0)
	w.same("shards whose lease has just its last moment", []int16{5}, w.take("a", 1))
	w.Advance(time.Microsecond)
	w.same("shards of the dead", []int16{1, 2, 3, 4}, w.take("a", 4))
	w.holds("b", 2)
	w.same("the rest", core.Shards-6, len(w.take("b", core.Shards)))
}

func testLeave(w *world) {
	w.holds("a", 1)
	w.holds("b", 2)
	w.holds("c", 3)
	w.take("a", core.Shards)
	w.must(w.Store.ReleaseShards(w.ctx, "a", []int16{}))
	w.same("shards free after none was given up", 0, len(w.take("b", core.Shards)))
	w.holds("b", 3)
	w.must(w.Store.ReleaseShards(w.ctx, "a", nil))
	w.holds("b", 2)
	w.same("shards of one who left", 0, len(w.take("a", 1)))
	w.same("shards that it takes over", core.Shards, len(w.take("b", core.Shards)))
	w.must(w.Store.ReleaseShards(w.ctx, "nobody", nil))
	w.Advance(shardTTL / 2)
	held, _ := w.renew("b")
	w.same("shards held", core.Shards, len(held))
}

func testLeasesApart(w *world) {
	owners := []string{"a", "b", "c", "d"}
	taken := make(chan []int16, len(owners))
	for _, owner := range owners {
		w.renew(owner)
	}
	for _, owner := range owners {
		go func() {
			got, err := w.Store.TakeShards(w.ctx, owner, shardTTL, core.Shards/2)
			if err != nil {
				w.Error(err)
			}
			taken <- got
		}()
	}
	seen := map[int16]int{}
	for range owners {
		for _, shard := range <-taken {
			seen[shard]++
		}
	}
	for shard, n := range seen {
		if n != 1 {
			w.Errorf("shard %d was taken %d times", shard, n)
		}
	}
}
