package policytest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/policytest"
)

// Each event has an answer for every two policies that the service accepts, and is
// told from a creation to an end.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	var want []string
	for _, m := range []core.Misfire{core.MisfireRunAll, core.MisfireRunOnce, core.MisfireSkip} {
		for _, o := range []core.Overlap{core.OverlapAllow, core.OverlapCancelPrevious, core.OverlapQueueOne, core.OverlapSkip} {
			if m != core.MisfireRunAll || o != core.OverlapCancelPrevious {
				want = append(want, string(m)+" "+string(o))
			}
		}
	}
	events := table(t)
	if len(events) < 20 {
		t.Errorf("the table has %d events", len(events))
	}
	for _, e := range events {
		var got []string
		for _, c := range e.Cells {
			got = append(got, string(c.Misfire)+" "+string(c.Overlap))
			if len(c.Rows) == 0 {
				t.Errorf("%s: %s with %s has no rows", e.Name, c.Misfire, c.Overlap)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: policies (-want +got):\n%s", e.Name, diff)
		}
		if n := len(e.Steps); n < 3 || e.Steps[0].Do != policytest.Create || e.Steps[n-1].Do != policytest.End || len(e.Slots) == 0 {
			t.Errorf("%s: steps %v and slots %v", e.Name, e.Steps, e.Slots)
		}
	}
}

func table(t *testing.T) []policytest.Event {
	t.Helper()
	events, err := policytest.Events()
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// What the table says must be seen to be broken: each fault is found, and a right
// history has none.
func TestFaults(t *testing.T) {
	t.Parallel()
	at := func(minute, second int) time.Time { return time.Date(2000, 3, 1, 10, minute, second, 0, time.UTC) }
	e := policytest.Event{Slots: []time.Time{at(0, 0), at(1, 0), at(2, 0), at(3, 0)}}
	history := func() []core.Run {
		return []core.Run{
			{Key: core.RunKey{Slot: at(0, 0)}, State: core.RunSucceeded, CreatedAt: at(0, 0), FinishedAt: at(0, 1)},
			{Key: core.RunKey{Slot: at(2, 0)}, State: core.RunSkipped, RangeFrom: at(1, 0), RangeCount: 2, CreatedAt: at(3, 0), FinishedAt: at(3, 0)},
			{Key: core.RunKey{Slot: at(3, 0)}, State: core.RunRunning, CreatedAt: at(3, 0)},
		}
	}
	for name, tt := range map[string]struct {
		change func(runs []core.Run) []core.Run
		want   int
	}{
		"right":                {func(r []core.Run) []core.Run { return r }, 0},
		"a slot without a row": {func(r []core.Run) []core.Run { return r[:2] }, 1},
		"a slot in two rows":   {func(r []core.Run) []core.Run { r[1].RangeFrom, r[1].RangeCount = at(0, 0), 3; return r }, 1},
		"a wrong count":        {func(r []core.Run) []core.Run { r[1].RangeCount = 5; return r }, 1},
		"a row of no slot": {func(r []core.Run) []core.Run {
			return append(r, core.Run{Key: core.RunKey{Slot: at(9, 0)}, State: core.RunSkipped, CreatedAt: at(9, 0)})
		}, 1},
		"an early row":            {func(r []core.Run) []core.Run { r[2].CreatedAt = at(2, 59); return r }, 1},
		"two runs at once":        {func(r []core.Run) []core.Run { r[0].FinishedAt = at(3, 1); return r }, 1},
		"a run that never ended":  {func(r []core.Run) []core.Run { r[0].FinishedAt = time.Time{}; return r }, 1},
		"two runs, the later one": {func(r []core.Run) []core.Run { r[2].FinishedAt = at(3, 5); return r }, 0},
	} {
		if got := e.Faults(policytest.Cell{Overlap: core.OverlapSkip}, tt.change(history())); len(got) != tt.want {
			t.Errorf("%s: faults %q, want %d", name, got, tt.want)
		}
	}
	beside := history()
	beside[0].FinishedAt = time.Time{}
	if got := e.Faults(policytest.Cell{Overlap: core.OverlapAllow}, beside); len(got) != 0 {
		t.Errorf("under allow: faults %q, want none", got)
	}
}
