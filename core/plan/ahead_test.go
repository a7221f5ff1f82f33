package plan_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// TestPlanByAClockAhead: a plan that a clock ahead made takes a slot for the newest that
// has not come. It is void until that has, even where it only records those before:
// the newest of them is on time, and would be missed. (Found by a simulated history.)
func TestPlanByAClockAhead(t *testing.T) {
	t.Parallel()
	start := time.Date(2027, 6, 9, 12, 0, 0, 0, time.UTC)
	for _, overlap := range []core.Overlap{core.OverlapSkip, core.OverlapAllow, core.OverlapQueueOne, core.OverlapCancelPrevious} {
		for _, misfire := range []core.Misfire{core.MisfireRunOnce, core.MisfireSkip, core.MisfireRunAll} {
			s := core.Schedule{
				ID: uuid.Max, Spec: "*/20 * * * * *", Overlap: overlap, Misfire: misfire, MisfireGrace: 10 * time.Second, MaxAttempts: 1,
				Rules: core.Rules{MisfireCap: 1},
			}
			slots, err := spec.Load(&s)
			if err != nil {
				t.Fatal(err)
			}
			first, ahead := start.Add(20*time.Second), start.Add(65*time.Second) // 20, 40 and 60 took for come
			timer := core.Timer{ScheduleID: s.ID, FireAt: first, Fence: 1, Done: start}
			if m := plan.Move(&s, &timer, slots, ahead); m.ValidFrom.Before(start.Add(time.Minute)) {
				t.Errorf("%s, %s: valid from %s, with %d rows up to %s", overlap, misfire, m.ValidFrom.Sub(start), len(m.Rows), m.Done.Sub(start))
			}
		}
	}
}
