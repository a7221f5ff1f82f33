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

// Days go as a whole once nothing in them is alive, as partitions do.
func TestDaysExpire(t *testing.T) {
	t.Parallel()
	ctx, tenant := t.Context(), uuid.New()
	clock := &still{now: time.Date(2027, 3, 9, 11, 0, 0, 0, time.UTC)}
	s := memory.New("local", clock)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.EnsurePartitions(ctx))
	var runs []core.Run
	for day := range 2 {
		c := core.Schedule{
			TenantID: tenant, ID: uuid.New(), Name: time.Duration(day).String(), Misfire: core.MisfireRunOnce, Overlap: core.OverlapSkip, MaxAttempts: 1,
			Job: core.Job{Queue: "test", Payload: []byte("{}")},
		}
		must(s.Create(ctx, c, core.Forever, clock.Now()))
		r, err := s.Trigger(ctx, tenant, &c, 1, clock.Now().Add(time.Microsecond))
		must(err)
		runs = append(runs, r)
		clock.advance(24 * time.Hour)
	}
	end := func(r core.Run) {
		t.Helper()
		started, err := s.Start(ctx, []core.Delivery{{Message: core.Message{Key: r.Key, Fence: r.Fence}}}, time.Minute)
		must(err)
		_, err = s.Finish(ctx, []core.Outcome{{Held: core.Held{Key: r.Key, Fence: started[0].Fence}, State: core.RunSucceeded}})
		must(err)
	}
	end(runs[0])
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
		n, err := s.DropExpired(ctx, tt.keep)
		must(err)
		var left []bool
		for _, r := range runs {
			_, _, err := s.Run(ctx, tenant, r.Key)
			left = append(left, !errors.Is(err, core.ErrNotFound))
		}
		if diff := cmp.Diff([]any{tt.want, tt.left}, []any{n, left}); diff != "" {
			t.Errorf("keeping %s: dropped days and runs that are left (-want +got):\n%s", tt.keep, diff)
		}
	}
	end(runs[1])
	if n, err := s.DropExpired(ctx, 11*time.Hour); n != 1 || err != nil {
		t.Errorf("%d days were dropped with error %v, want the one whose run ended", n, err)
	}
}
