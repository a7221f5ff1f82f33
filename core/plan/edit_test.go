package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
)

// TestEditThatPausesOrResumes: an edit of the content may pause or resume as
// well, and then settles what each of the two would.
func TestEditThatPausesOrResumes(t *testing.T) {
	t.Parallel()
	type planned struct {
		NextAt, Done string
		Rows         []string
		Moves        bool
	}
	// Settled up to 10:00, every hour; it is 12:30.
	for name, c := range map[string]struct {
		from, to bool // paused
		spec     string
		want     planned
	}{
		"pause":                   {false, true, "0 * * * *", planned{"never", "10:00:00", nil, true}},
		"resume":                  {true, false, "0 * * * *", planned{"13:00:00", "12:30:00", []string{"12:00:00 schedule skipped paused from 11:00:00"}, true}},
		"pause with another spec": {false, true, "30 13 * * *", planned{"never", "12:30:00", []string{"11:00:00 schedule skipped misfire", "12:00:00 catch_up"}, true}},
		"resume with another":     {true, false, "30 13 * * *", planned{"13:30:00", "12:30:00", []string{"12:00:00 schedule skipped paused from 11:00:00"}, true}},
		"paused with another":     {true, true, "30 13 * * *", planned{"never", "12:30:00", []string{"12:00:00 schedule skipped paused from 11:00:00"}, true}},
		"active with another":     {false, false, "30 13 * * *", planned{"13:30:00", "12:30:00", []string{"11:00:00 schedule skipped misfire", "12:00:00 catch_up"}, true}},
		"neither":                 {true, true, "0 * * * *", planned{"never", "10:00:00", nil, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, oldSlots := schedule("0 * * * *")
			next, newSlots := schedule(c.spec)
			old.Paused, next.Paused = c.from, c.to
			cur := &core.Scheduled{Schedule: *old, Now: clock("12:30:00"), Timer: core.Timer{Done: clock("10:00:00"), FireAt: clock("11:00:00")}}
			e := plan.Edit(cur, plan.Change{
				Old: *old, New: *next, OldSlots: oldSlots, NewSlots: newSlots, SlotsChanged: old.Spec != next.Spec,
			})
			got := planned{NextAt: e.NextAt.Format(time.TimeOnly), Done: e.Done.Format(time.TimeOnly), Rows: short(e.Settle), Moves: e.MoveTimer}
			if e.NextAt.Equal(core.Forever) {
				got.NextAt = "never"
			}
			if diff := cmp.Diff(c.want, got); diff != "" || e.Schedule.Paused != c.to {
				t.Errorf("paused %t: %s", e.Schedule.Paused, diff)
			}
		})
	}
}
