package modeltest

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
)

// judge looks at the rows of a state.
func (w *world) judge() {
	page, err := w.db.Runs(w.ctx, w.tenant, w.id, core.RunQuery{Limit: 100})
	w.must(err)
	alive := 0
	seen := map[time.Time]bool{}
	for _, r := range page.Items {
		if !r.State.Final() {
			alive++
		}
		if seen[r.Key.Slot] {
			w.fail("C4", "slot %s has two rows", r.Key.Slot.Sub(began))
		}
		seen[r.Key.Slot] = true
		if r.Attempt > maxAttempts {
			w.fail("C7", "slot %s has %d attempts", r.Key.Slot.Sub(began), r.Attempt)
		}
	}
	if alive > 1 && w.scope.Overlap != core.OverlapAllow {
		w.fail("C10", "%d runs are alive", alive)
	}
}

// hash tells states apart.
func (w *world) hash() uint64 {
	h := fnv.New64a()
	var b strings.Builder
	cur, err := w.db.Get(w.ctx, w.tenant, w.id)
	w.must(err)
	page, err := w.db.Runs(w.ctx, w.tenant, w.id, core.RunQuery{Limit: 100})
	w.must(err)
	t := &cur.Timer
	fmt.Fprint(&b, w.now.Unix(), t.FireAt.Unix(), t.Fence, t.Done.Unix(), t.LastRun.UnixMicro(), t.Parked, cur.Schedule.Paused)
	for _, r := range page.Items {
		fmt.Fprint(&b, "|", r.Key.Slot.UnixMicro(), r.State, r.Attempt, r.Fence, r.WakeAt.Unix(), r.Reason)
	}
	// Nodes of a kind are alike: which is which makes no other state.
	var nodes []string
	for _, c := range w.claimers {
		text := fmt.Sprint("c", c.unsent)
		if c.move != nil {
			text += fmt.Sprint(c.move.FireAt.Unix(), c.move.Fence, c.move.ValidUntil.Unix(), len(c.move.Rows))
		}
		nodes = append(nodes, text)
	}
	for _, e := range w.executors {
		text := fmt.Sprint("e", e.crashed, e.frozen)
		if e.run != nil {
			text += fmt.Sprint(e.run.Key.Slot.UnixMicro(), e.run.Fence, e.trust.Unix())
		}
		nodes = append(nodes, text)
	}
	slices.Sort(nodes)
	fmt.Fprint(&b, nodes)
	fmt.Fprint(&b, "|q", w.queue, "|", w.client.done, w.client.cur != nil, w.crashes, w.freezes, w.doubles)
	if w.client.cur != nil {
		fmt.Fprint(&b, w.client.cur.Timer.Fence, w.client.cur.Now.Unix())
	}
	_, _ = h.Write([]byte(b.String())) // a hash takes everything
	return h.Sum64()
}
