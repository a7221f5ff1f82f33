package plan_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// counted counts the steps that planning takes.
type counted struct {
	spec.Slots
	steps *int
}

func (c counted) Next(t time.Time) time.Time { *c.steps++; return c.Slots.Next(t) }
func (c counted) Prev(t time.Time) time.Time { *c.steps++; return c.Slots.Prev(t) }

// TestAYearDown: after a year without a claimer every policy makes a bounded number
// of rows in a bounded number of moves, each planned in a bounded number of steps,
// and no slot is without a row. -v prints the numbers.
func TestAYearDown(t *testing.T) {
	t.Parallel()
	const stepsOfAMove = core.MaxRangeCount + 2*core.DefaultMisfireCap + 100
	type bound struct{ runs, rows, moves int }
	for _, text := range []string{"* * * * *", "* * * * * *"} {
		for name, c := range map[string]struct {
			misfire core.Misfire
			overlap core.Overlap
			cap     int
			want    bound
		}{
			"run_once":       {core.MisfireRunOnce, core.OverlapSkip, 0, bound{1, 2, 1}},
			"skip":           {core.MisfireSkip, core.OverlapSkip, 0, bound{0, 1, 1}},
			"run_all":        {core.MisfireRunAll, core.OverlapSkip, 0, bound{1000, 1001, 1001}},
			"run_all beside": {core.MisfireRunAll, core.OverlapAllow, 0, bound{1000, 1001, 11}},
			"run_all of 3":   {core.MisfireRunAll, core.OverlapQueueOne, 3, bound{3, 4, 4}},
		} {
			t.Run(text+" "+name, func(t *testing.T) {
				t.Parallel()
				s, inner := schedule(text)
				s.Misfire, s.Overlap, s.Rules.MisfireCap, s.MisfireGrace = c.misfire, c.overlap, c.cap, time.Microsecond
				var got bound
				worst, steps := 0, 0
				slots := counted{inner, &steps}
				now := clock("12:00:30").Add(500*time.Millisecond).AddDate(1, 0, 0)
				timer := core.Timer{FireAt: inner.Next(clock("08:00:00")), Done: clock("08:00:00"), Fence: 1}
				next := timer.FireAt
				for ; timer.FireAt.Before(now); got.moves++ {
					if got.moves > 2000 {
						t.Fatalf("%d moves came to %s only", got.moves, timer.Done)
					}
					steps = 0
					m := plan.Move(s, &timer, slots, now)
					worst = max(worst, steps)
					for _, r := range m.Rows {
						first := r.Slot
						if !r.RangeFrom.IsZero() {
							first = r.RangeFrom
						}
						if !first.Equal(next) {
							t.Fatalf("a row begins at %s, want %s", first, next)
						}
						next = inner.Next(r.Slot)
						got.rows++
						if !r.Skipped {
							got.runs++
						}
					}
					timer.FireAt, timer.Done = m.NextAt, m.Done
				}
				if got != c.want || worst > stepsOfAMove {
					t.Errorf("runs, rows, moves: %v, want %v; %d steps in a move, at most %d", got, c.want, worst, stepsOfAMove)
				}
				t.Logf("%d runs, %d rows, %d moves, at most %d steps each", got.runs, got.rows, got.moves, worst)
			})
		}
	}
}
