package limit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/limit"
	"github.com/fencepost/fencepost/infra/clock"
)

// store answers looks from its fields and counts them.
type store struct {
	core.LimitStore
	names []string
	view  core.PermitView
	err   error
	asked int
	held  []core.Message
}

func (s *store) LimitedQueues(context.Context) ([]string, error) { s.asked++; return s.names, s.err }

func (s *store) Permits(context.Context, []core.Delivery) (core.PermitView, error) {
	return s.view, s.err
}

func (s *store) Hold(_ context.Context, msgs []core.Message) error {
	s.held = append(s.held, msgs...)
	return s.err
}

func deliveries(n int) []core.Delivery {
	out := make([]core.Delivery, n)
	for i := range out {
		out[i].Key = core.RunKey{Region: "local", ScheduleID: uuid.UUID{byte(i + 1)}, Slot: time.Unix(0, 0)}
	}
	return out
}

// TestPermit: each delivery gets a permit of each of its limits, no permit goes twice,
// and one that is under no limit needs none.
func TestPermit(t *testing.T) {
	t.Parallel()
	a, b := uuid.UUID{1}, uuid.UUID{2}
	ds := deliveries(5)
	s := &store{names: []string{"q"}, view: core.PermitView{Under: map[core.RunKey][]core.Permit{}}}
	for i, tenant := range []uuid.UUID{a, a, b, b} { // the last one is free
		s.view.Under[ds[i].Key] = []core.Permit{{Queue: "q"}, {Queue: "q", TenantID: tenant}}
	}
	for n := 1; n <= 3; n++ {
		s.view.Free = append(s.view.Free, core.Permit{Queue: "q", N: n}, core.Permit{Queue: "q", TenantID: b, N: n})
	}
	s.view.Free = append(s.view.Free, core.Permit{Queue: "q", TenantID: a, N: 7})
	g := limit.New(s, clock.System{}, time.Second)
	try, wait, err := g.Permit(t.Context(), "q", ds)
	if err != nil || fmt.Sprint(len(try), len(wait), wait[0].Key == ds[1].Key) != "4 1 true" {
		t.Fatalf("try %+v, wait %+v, %v", try, wait, err)
	}
	seen := map[core.Permit]bool{}
	for _, d := range try {
		if len(d.Permits) != len(s.view.Under[d.Key]) {
			t.Errorf("%+v has %+v", d.Key, d.Permits)
		}
		for _, p := range d.Permits {
			if seen[p] {
				t.Errorf("%+v went twice", p)
			}
			seen[p] = true
		}
	}
	started := []core.Started{{Execution: core.Execution{Key: try[0].Key}}}
	if err := g.Refused(t.Context(), wait, try, started); err != nil || len(s.held) != 3 {
		t.Errorf("held %+v, %v", s.held, err) // the one that waited and two that lost a race
	}
}

// TestGateRemembers: limits are asked for every two seconds at most, what cannot be
// learned stays, and who waited is looked after for an hour once the limit is gone.
func TestGateRemembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{names: []string{"q"}}
		g := limit.New(s, clock.System{}, time.Second)
		limited := func() string {
			is, err := g.Limited(t.Context(), "q")
			known, _ := g.Known(t.Context())
			return fmt.Sprint(is, " ", err != nil, " ", known, " ", s.asked)
		}
		expect := func(want string) {
			t.Helper()
			if got := limited(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		expect("true false [q] 1")
		s.names = nil
		time.Sleep(time.Second)
		expect("true false [q] 1")
		s.err = errors.New("gone")
		time.Sleep(time.Second)
		expect("true true [q] 3")
		s.err = nil
		expect("false false [q] 4")
		time.Sleep(time.Hour)
		expect("false false [] 5")
	})
}
