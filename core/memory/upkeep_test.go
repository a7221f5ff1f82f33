package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/memory"
)

// aging is a store whose time a test moves.
type aging struct {
	*testing.T
	*memory.Store
	clock  *still
	tenant uuid.UUID
}

func (a *aging) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// queued makes a manual run a microsecond from now.
func (a *aging) queued() core.Run {
	a.Helper()
	c := core.Schedule{
		TenantID: a.tenant, ID: uuid.New(), Misfire: core.MisfireRunOnce, Overlap: core.OverlapSkip, MaxAttempts: 1,
		Job: core.Job{Queue: "test", Payload: []byte("{}")},
	}
	c.Name = c.ID.String()
	a.must(a.Create(a.Context(), c, core.Forever, a.clock.Now()))
	r, err := a.Trigger(a.Context(), a.tenant, core.Manual{ScheduleID: c.ID, Fence: 1, Slot: a.clock.Now().Add(time.Microsecond)})
	a.must(err)
	return r
}

func (a *aging) end(r core.Run) {
	a.Helper()
	started, err := a.Start(a.Context(), []core.Delivery{{Message: core.Message{Key: r.Key, Fence: r.Fence}}}, time.Minute)
	a.must(err)
	_, err = a.Finish(a.Context(), []core.Outcome{{Held: core.Held{Key: r.Key, Fence: started[0].Fence}, State: core.RunSucceeded}})
	a.must(err)
}

// Days go as a whole once nothing in them is alive, as partitions do.
func TestDaysExpire(t *testing.T) {
	t.Parallel()
	clock := &still{now: time.Date(2027, 3, 9, 11, 0, 0, 0, time.UTC)}
	a := &aging{T: t, Store: memory.New("local", clock), clock: clock, tenant: uuid.New()}
	a.must(a.EnsurePartitions(t.Context()))
	var runs []core.Run
	for range 2 {
		runs = append(runs, a.queued())
		clock.advance(24 * time.Hour)
	}
	a.end(runs[0])
	// Now it is the 11th, 11:00. The days of the 8th, the 9th and the 10th have
	// partitions, and more; the run of the 10th is alive.
	for _, tt := range []struct {
		keep time.Duration
		want int
		left []bool
	}{
		{36 * time.Hour, 1, []bool{true, true}}, // the 8th, which is empty
		{35 * time.Hour, 1, []bool{false, true}},
		{11 * time.Hour, 0, []bool{false, true}},
	} {
		n, err := a.DropExpired(t.Context(), tt.keep)
		a.must(err)
		var left []bool
		for _, r := range runs {
			_, _, err := a.Store.Run(t.Context(), a.tenant, r.Key)
			left = append(left, !errors.Is(err, core.ErrNotFound))
		}
		if diff := cmp.Diff([]any{tt.want, tt.left}, []any{n, left}); diff != "" {
			t.Errorf("keeping %s: dropped days and runs that are left (-want +got):\n%s", tt.keep, diff)
		}
	}
	a.end(runs[1])
	if n, err := a.DropExpired(t.Context(), 11*time.Hour); n != 1 || err != nil {
		t.Errorf("%d days were dropped with error %v, want the one whose run ended", n, err)
	}
}
