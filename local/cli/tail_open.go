package cli

import (
	"context"
	"slices"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api/client"
)

// keepOpen remembers the runs that are alive and no longer in view: a newer one
// took their place. Beyond a bound the oldest are forgotten.
func (f *follower) keepOpen(runs []followed) {
	inView := make(map[string]bool, len(runs))
	for _, r := range runs {
		inView[r.ID] = true
	}
	var open []followed
	known := map[string]bool{}
	for _, r := range f.open {
		known[r.ID] = true
		if !inView[r.ID] {
			open = append(open, r)
		}
	}
	for id, r := range f.seen {
		if !inView[id] && !known[id] && !core.RunState(r.State).Final() {
			open = append(open, r)
		}
	}
	f.open = open[max(0, len(open)-tailOpen):]
}

// lookAtOpen returns what became of some of the runs that are out of view.
func (f *follower) lookAtOpen(ctx context.Context) ([]followed, error) {
	n := min(len(f.open), tailOpenLooks)
	var all, alive []followed
	for _, r := range f.open[:n] {
		run, err := f.client.Run(ctx, r.ID)
		if client.IsCode(err, core.ErrNotFound.Kind) {
			continue // its day is gone
		}
		if err != nil {
			return nil, err
		}
		now := newFollowed(r.Schedule, run.Run)
		all = append(all, now)
		if !core.RunState(now.State).Final() {
			alive = append(alive, now)
		}
	}
	rest := f.open[n:]
	f.open = append(slices.Clone(rest), alive...)
	return append(all, rest...), nil
}
