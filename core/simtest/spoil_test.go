package simtest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/check"
	"github.com/fencepost/fencepost/core/simtest"
)

// Each of these stands before the store and breaks one promise of it.

// forgetful settles all slots up to now at each look, as one does who plans from now.
type forgetful struct{ simtest.Store }

func (f forgetful) Preload(ctx context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.Scheduled, time.Time, error) {
	found, now, err := f.Store.Preload(ctx, marks, ahead)
	for i := range found {
		found[i].Timer.Done = found[i].Timer.Done.Add(time.Minute)
	}
	return found, now, err
}

// generous gives a run to each delivery of its message.
type generous struct {
	simtest.Store
	given map[core.RunKey]core.Started
}

func (g generous) Start(ctx context.Context, ds []core.Delivery, lease time.Duration) ([]core.Started, error) {
	got, err := g.Store.Start(ctx, ds, lease)
	for _, s := range got {
		g.given[s.Key] = s
	}
	if s, ok := g.given[ds[0].Key]; ok && err == nil && len(got) == 0 {
		return []core.Started{s}, nil
	}
	return got, err
}

// trusting takes outcomes under any fence.
type trusting struct {
	simtest.Store
	tenants map[uuid.UUID]uuid.UUID // of schedules
}

func (s trusting) Create(ctx context.Context, c core.Schedule, next, done time.Time) error {
	s.tenants[c.ID] = c.TenantID
	return s.Store.Create(ctx, c, next, done)
}

func (s trusting) Finish(ctx context.Context, os []core.Outcome) ([]core.Finished, error) {
	for i := range os {
		if r, _, err := s.Store.Run(ctx, s.tenants[os[i].Key.ScheduleID], os[i].Key); err == nil {
			os[i].Fence = r.Fence
		}
	}
	return s.Store.Finish(ctx, os)
}

// restless lets timers go on through a pause.
type restless struct{ simtest.Store }

func (s restless) Apply(ctx context.Context, tenant uuid.UUID, e core.Edit) error {
	if e.Schedule.Paused {
		e.MoveTimer = false
		e.Schedule.Paused = false
	}
	return s.Store.Apply(ctx, tenant, e)
}

// crowded lets every slot run beside what is alive.
type crowded struct{ simtest.Store }

func (s crowded) Claim(ctx context.Context, shard int16, moves []core.Move, lease time.Duration) ([]core.Claimed, error) {
	for i := range moves {
		moves[i].OnBusy = core.BusyAllow
	}
	return s.Store.Claim(ctx, shard, moves, lease)
}

// skipper counts the newest missed slot among those that are skipped.
type skipper struct{ simtest.Store }

func (s skipper) Claim(ctx context.Context, shard int16, moves []core.Move, lease time.Duration) ([]core.Claimed, error) {
	for i, m := range moves {
		if len(m.Rows) == 2 && m.Rows[0].Reason == core.ReasonMisfire {
			rows := slices.Clone(m.Rows)
			rows[1].Skipped, rows[1].Reason = true, core.ReasonMisfire
			moves[i].Rows, moves[i].LastRun = rows, time.Time{}
		}
	}
	return s.Store.Claim(ctx, shard, moves, lease)
}

// blurred begins a page where the one before ended, and one row further.
type blurred struct{ simtest.Store }

func (s blurred) Runs(ctx context.Context, tenant, id uuid.UUID, q core.RunQuery) (core.RunPage, error) {
	if q.Limit < 10 && !q.Before.IsZero() {
		q.Before = q.Before.Add(-time.Minute)
	}
	return s.Store.Runs(ctx, tenant, id, q)
}

// deaf forgets what the sweep found.
type deaf struct{ simtest.Store }

func (s deaf) Sweep(ctx context.Context, o core.SweepOptions) ([]core.Swept, time.Time, error) {
	now, err := s.Store.Now(ctx)
	return nil, now, err
}

// late claims only what is due for ten seconds.
type late struct{ simtest.Store }

func (s late) Claim(ctx context.Context, shard int16, moves []core.Move, lease time.Duration) ([]core.Claimed, error) {
	now, err := s.Store.Now(ctx)
	if err != nil || now.Before(moves[0].FireAt.Add(10*time.Second)) {
		return nil, err
	}
	return s.Store.Claim(ctx, shard, moves, lease)
}

// TestSpoiledStores: a store that breaks a promise breaks the rule that names it, within
// some histories; -v prints which.
func TestSpoiledStores(t *testing.T) {
	t.Parallel()
	spoilers := map[string]struct {
		rule  string
		spoil func(simtest.Store) simtest.Store
	}{
		"plan from now":                 {"C1", func(s simtest.Store) simtest.Store { return forgetful{s} }},
		"a run for each delivery":       {"C5", func(s simtest.Store) simtest.Store { return generous{s, map[core.RunKey]core.Started{}} }},
		"outcomes under any fence":      {"C6", func(s simtest.Store) simtest.Store { return trusting{s, map[uuid.UUID]uuid.UUID{}} }},
		"pause ignored":                 {"C8", func(s simtest.Store) simtest.Store { return restless{s} }},
		"overlap ignored":               {"C10", func(s simtest.Store) simtest.Store { return crowded{s} }},
		"misfire off by one":            {"C2", func(s simtest.Store) simtest.Store { return skipper{s} }},
		"pages off by a row":            {"C11", func(s simtest.Store) simtest.Store { return blurred{s} }},
		"no sweep":                      {"C9", func(s simtest.Store) simtest.Store { return deaf{s} }},
		"claims ten seconds after time": {"C12", func(s simtest.Store) simtest.Store { return late{s} }},
	}
	const histories = 500
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(spoilers)) {
		s := spoilers[name]
		seed, rules := uint64(1), ""
		for ; seed <= histories && !strings.Contains(rules+" ", s.rule+" "); seed++ {
			h, err := simtest.Play(t.Context(), seed, s.spoil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := check.Check(h, simtest.Bounds)
			if err != nil {
				t.Fatal(err)
			}
			rules = strings.Join(r.Failed(), " ")
		}
		if !strings.Contains(rules+" ", s.rule+" ") {
			t.Errorf("%s: %s is not broken in %d histories", name, s.rule, histories)
		}
		fmt.Fprintf(&table, "%-30s seed %-3d breaks %s\n", name, seed-1, rules)
	}
	t.Log("\n" + table.String())
}
