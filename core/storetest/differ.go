package storetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// twins are two stores to which the same is done: what they answer and what they then
// hold is to be equal. The operations are chosen by a seed, few schedules are many
// times the object, and old plans, messages and outcomes come again.
type twins struct {
	*testing.T
	ctx  context.Context
	a, b Harness // a is the reference
	rng  *rand.Rand

	tenants []uuid.UUID
	ids     []uuid.UUID
	owner   map[uuid.UUID]uuid.UUID
	moves   []core.Move
	ds      []core.Delivery
	held    []core.Held
	fills   []uuid.UUID
	history []string
	worked  map[string]int
}

// deed is an operation. It reports whether it had an effect that its kind exists for.
type deed struct {
	name string
	do   func(w *twins) bool
}

// Differ does the same to the reference a and to b, chosen by seed, until every kind of
// operation has had its effect at least once and at least steps were done. Both start
// empty, in regions of the same name, at the same time, and with jitter of one half.
func Differ(t *testing.T, seed uint64, steps int, a, b Harness) {
	w := &twins{
		T: t, ctx: t.Context(), a: a, b: b, rng: rand.New(rand.NewPCG(seed, 0)), owner: map[uuid.UUID]uuid.UUID{}, worked: map[string]int{},
	}
	w.tenants = []uuid.UUID{w.id(), w.id()}
	all := slices.Concat(scheduleDeeds(), claimDeeds(), runDeeds(), otherDeeds())
	// What most happens, happens more often: claims, starts, heartbeats, ends, sweeps.
	often := slices.Concat(all, claimDeeds()[1:2], claimDeeds()[1:2], runDeeds()[:4], runDeeds()[:4], runDeeds()[:4])
	for n := 0; n < steps || len(w.worked) < len(all); n++ {
		d := often[w.rng.IntN(len(often))]
		if n > 20*steps {
			t.Fatalf("seed %d: after %d steps only %d of %d kinds of operations had an effect: %v", seed, n, len(w.worked), len(all), w.worked)
		}
		w.history = append(w.history, d.name)
		if d.do(w) {
			w.worked[d.name]++
		}
		if w.compare(); t.Failed() {
			t.Fatalf("seed %d, step %d; the last of them: %v", seed, n, w.history[max(0, len(w.history)-12):])
		}
	}
	t.Logf("seed %d: %d operations, each with effect: %v", seed, len(w.history), w.worked)
}

// id returns a new id that the seed makes.
func (w *twins) id() uuid.UUID {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(w.rng.Uint32())
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// one returns any element; ok is false if there is none.
func one[T any](w *twins, in []T) (v T, ok bool) {
	if len(in) == 0 {
		return v, false
	}
	// Mostly one of the newest, which are likely to fit.
	from := 0
	if w.rng.IntN(4) > 0 {
		from = max(0, len(in)-6)
	}
	return in[from+w.rng.IntN(len(in)-from)], true
}

// likely is true n times out of ten.
func (w *twins) likely(n int) bool { return w.rng.IntN(10) < n }

// kind says what an error means to a caller.
func kind(err error) string {
	var ce *core.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, core.ErrBadRow):
		return "bad row"
	case errors.As(err, &ce):
		return cmp.Or(ce.Kind, string(ce.Code))
	}
	return err.Error()
}

// both does the same to both stores and compares the answers. It returns the
// reference's.
func both[T any](w *twins, what string, do func(s Store) (T, error)) (T, error) {
	w.Helper()
	want, errA := do(w.a.Store)
	got, errB := do(w.b.Store)
	if kind(errA) != kind(errB) {
		w.Errorf("%s: the reference answers %q, the other %q", what, kind(errA), kind(errB))
	}
	w.same(what, want, got)
	return want, errA
}

// same compares, whatever the order of what has none.
func (w *twins) same(what string, want, got any) {
	w.Helper()
	x, err := json.Marshal(want)
	if y, err2 := json.Marshal(got); err == nil && err2 == nil && bytes.Equal(x, y) {
		return // most of the time, and fast
	}
	byKey := func(a, b core.RunKey) int {
		return cmp.Or(bytes.Compare(a.ScheduleID[:], b.ScheduleID[:]), a.Slot.Compare(b.Slot))
	}
	options := []gocmp.Option{
		cmpopts.EquateEmpty(),
		cmpopts.SortSlices(func(a, b core.Claimed) bool { return byKey(a.Key, b.Key) < 0 }),
		cmpopts.SortSlices(func(a, b core.Started) bool { return byKey(a.Key, b.Key) < 0 }),
		cmpopts.SortSlices(func(a, b core.Swept) bool { return byKey(a.Key, b.Key) < 0 }),
		cmpopts.SortSlices(func(a, b core.Beat) bool { return byKey(a.Key, b.Key) < 0 }),
		cmpopts.SortSlices(func(a, b core.Finished) bool { return byKey(a.Key, b.Key) < 0 }),
		cmpopts.SortSlices(func(a, b core.TimerRef) bool { return bytes.Compare(a.ScheduleID[:], b.ScheduleID[:]) < 0 }),
		cmpopts.SortSlices(func(a, b core.Scheduled) bool { return bytes.Compare(a.Schedule.ID[:], b.Schedule.ID[:]) < 0 }),
		cmpopts.SortSlices(func(a, b core.DueBackfill) bool { return bytes.Compare(a.ID[:], b.ID[:]) < 0 }),
		cmpopts.SortSlices(func(a, b core.Permit) bool {
			return cmp.Or(cmp.Compare(a.Queue, b.Queue), bytes.Compare(a.TenantID[:], b.TenantID[:]), a.N-b.N) < 0
		}),
		cmpopts.SortSlices(func(a, b int16) bool { return a < b }),
		gocmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	}
	if diff := gocmp.Diff(want, got, options...); diff != "" {
		w.Errorf("%s (-reference +other):\n%s", what, diff)
	}
}

// compare compares what both hold: schedules with their timers, and all their runs.
func (w *twins) compare() {
	w.Helper()
	for _, id := range w.ids {
		tenant := w.owner[id]
		_, _ = both(w, "schedule", func(s Store) (core.Scheduled, error) { return s.Get(w.ctx, tenant, id) })
		_, _ = both(w, "runs", func(s Store) ([]core.Run, error) {
			page, err := s.Runs(w.ctx, tenant, id, core.RunQuery{Limit: 1000})
			return page.Items, err
		})
	}
}

func (w *twins) now() time.Time {
	w.Helper()
	now, err := both(w, "now", func(s Store) (time.Time, error) { return s.Now(w.ctx) })
	if err != nil {
		w.Fatal(err)
	}
	return now
}

func (w *twins) advance(d time.Duration) {
	w.a.Advance(d)
	w.b.Advance(d)
}

// schedule returns one that exists, with its slots.
func (w *twins) schedule() (core.Scheduled, spec.Spec, bool) {
	w.Helper()
	id, ok := one(w, w.ids)
	if !ok {
		return core.Scheduled{}, spec.Spec{}, false
	}
	cur, err := w.a.Store.Get(w.ctx, w.owner[id], id)
	if err != nil {
		return cur, spec.Spec{}, false // deleted
	}
	slots, err := spec.Load(&cur.Schedule)
	if err != nil {
		w.Fatal(fmt.Errorf("load a stored spec: %w", err))
	}
	return cur, slots, true
}

// run returns any run of the reference.
func (w *twins) run(states ...core.RunState) (core.Run, bool) {
	w.Helper()
	var all []core.Run
	for _, id := range w.ids {
		page, err := w.a.Store.Runs(w.ctx, w.owner[id], id, core.RunQuery{Limit: 1000})
		if err == nil {
			all = append(all, page.Items...)
		}
	}
	if len(states) > 0 && w.likely(8) {
		all = slices.DeleteFunc(all, func(r core.Run) bool { return !slices.Contains(states, r.State) })
	}
	if len(all) == 0 {
		return core.Run{}, false
	}
	return all[w.rng.IntN(len(all))], true
}
