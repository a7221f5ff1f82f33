package plan_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/calendar"
	"github.com/fencepost/fencepost/core/plan"
)

func ranges(fromTo ...string) *core.CalendarContent {
	c := &core.CalendarContent{}
	for i := 0; i < len(fromTo); i += 2 {
		c.Ranges = append(c.Ranges, core.ClosedRange{From: "2026-12-01T" + fromTo[i], To: "2026-12-01T" + fromTo[i+1]})
	}
	return c
}

var closed = map[string]policyCase{
	"closed": {
		now: "09:00:30", closed: ranges("08:30", "09:30"), rows: []string{"09:00:00 schedule skipped blackout"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"open again at the slot": {
		now: "09:00:30", closed: ranges("08:30", "09:00"), rows: []string{"09:00:00 schedule"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"missed: the closed ones are one row": {
		now: "12:30:00", closed: ranges("09:30", "11:30"),
		rows: []string{"09:00:00 schedule skipped misfire", "11:00:00 schedule skipped blackout from 10:00:00", "12:00:00 catch_up"},
		next: "13:00:00", onBusy: core.BusySkip,
	},
	"newest missed slot closed: an older one catches up": {
		now: "12:30:00", closed: ranges("11:30", "13:30"),
		rows: []string{"10:00:00 schedule skipped misfire from 09:00:00", "11:00:00 catch_up", "12:00:00 schedule skipped blackout"},
		next: "13:00:00", onBusy: core.BusySkip,
	},
	"run_all leaves out what is closed": {
		now: "12:00:10", closed: ranges("09:30", "10:30"), change: policies("run_all", "allow"),
		rows: []string{"09:00:00 catch_up", "10:00:00 schedule skipped blackout", "11:00:00 catch_up", "12:00:00 schedule"},
		next: "13:00:00", onBusy: core.BusyAllow,
	},
	"run_all counts its cap among the open ones": {
		now: "14:30:00", closed: ranges("12:30", "13:30"),
		change: func(s *core.Schedule) { s.Misfire, s.Overlap, s.Rules.MisfireCap = "run_all", "allow", 2 },
		rows:   []string{"11:00:00 schedule skipped misfire from 09:00:00", "12:00:00 catch_up", "13:00:00 schedule skipped blackout", "14:00:00 catch_up"},
		next:   "15:00:00", onBusy: core.BusyAllow,
	},
	"skip, newest closed": {
		now: "09:00:10", closed: ranges("08:30", "09:30"), change: policies("skip", "skip"),
		rows: []string{"09:00:00 schedule skipped blackout"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"what somebody moves runs": {
		now: "09:20:10", closed: ranges("08:30", "09:30"), change: exception(core.Exception{Slot: clock("09:00:00"), MoveTo: clock("09:20:00")}),
		rows: []string{"09:00:00 schedule"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"what somebody gives a payload runs, and no other": {
		now: "10:20:10", closed: ranges("08:30", "10:30"), change: exception(core.Exception{Slot: clock("09:00:00"), Payload: []byte("1")}),
		rows: []string{"09:00:00 catch_up", "10:00:00 schedule skipped blackout"}, next: "11:00:00", onBusy: core.BusySkip,
	},
	"waiting, and closed meanwhile": {
		now: "10:30:00", parked: true, closed: ranges("08:30", "09:30"), change: policies("run_once", "queue_one"),
		rows: []string{"09:00:00 schedule skipped blackout"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"a pause goes before a calendar": {
		now: "10:00:10", closed: ranges("08:30", "10:30"),
		change: func(s *core.Schedule) { s.Paused, s.Rules.PausedUntil = true, clock("09:30:00") },
		rows:   []string{"09:00:00 schedule skipped paused", "10:00:00 schedule skipped blackout"}, next: "11:00:00", onBusy: core.BusySkip,
	},
}

// nights closes each night.
func nights(t *testing.T) []core.Closing {
	t.Helper()
	k, err := calendar.New("nights", core.CalendarContent{Weekly: []core.ClosedWeekly{{
		Days: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, From: "18:00", To: "08:00",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return []core.Closing{k}
}

// TestAYearOfNights: a minute schedule that is closed each night is caught up with,
// after a year down, in bounded moves that leave no slot without a row.
func TestAYearOfNights(t *testing.T) {
	t.Parallel()
	s, slots := schedule("* * * * *")
	slots = slots.Under(nights(t))
	now := clock("12:00:30").AddDate(1, 0, 0)
	timer := core.Timer{FireAt: clock("08:01:00"), Done: clock("08:00:00"), Fence: 1}
	ran, next, moves := 0, slots.Next(timer.Done), 0
	for ; timer.FireAt.Before(now); moves++ {
		if moves > 20 {
			t.Fatalf("%d moves came to %s only", moves, timer.Done)
		}
		m := plan.Move(s, &timer, slots, now)
		if len(m.Rows) == 0 || len(m.Rows) > 100 {
			t.Fatalf("a move has %d rows", len(m.Rows))
		}
		for _, r := range m.Rows {
			first := r.Slot
			if !r.RangeFrom.IsZero() {
				first = r.RangeFrom
			}
			if !first.Equal(next) {
				t.Fatalf("a row begins at %s, want %s", first, next)
			}
			next = slots.Next(r.Slot)
			if !r.Skipped {
				ran++
			}
		}
		timer.FireAt, timer.Done = m.NextAt, m.Done
	}
	if ran != 1 || !timer.Done.Equal(now.Truncate(time.Minute)) {
		t.Errorf("%d runs up to %s in %d moves", ran, timer.Done, moves)
	}
}

// TestNextStart passes over what is known to be skipped.
func TestNextStart(t *testing.T) {
	t.Parallel()
	s, slots := schedule("0 * * * *")
	cur := &core.Scheduled{Schedule: *s, Timer: core.Timer{FireAt: clock("18:00:00"), Done: clock("17:00:00")}}
	tomorrow := clock("08:00:00").AddDate(0, 0, 1)
	for name, c := range map[string]struct {
		change func(*core.Rules)
		open   bool
		want   time.Time
	}{
		"open":    {func(*core.Rules) {}, true, clock("18:00:00")},
		"closed":  {func(*core.Rules) {}, false, tomorrow},
		"skipped": {func(r *core.Rules) { r.Exceptions = []core.Exception{{Slot: tomorrow, Skip: true}} }, false, tomorrow.Add(time.Hour)},
		"moved in the night": {func(r *core.Rules) {
			r.Exceptions = []core.Exception{{Slot: clock("20:00:00"), MoveTo: clock("20:30:00")}}
		}, false, clock("20:30:00")},
		"ends before morning": {func(r *core.Rules) { r.EndsAt = tomorrow }, false, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *cur
			c.change(&own.Schedule.Rules)
			bounded := load(t, &own.Schedule)
			if !c.open {
				bounded = bounded.Under(nights(t))
			}
			if got := plan.NextStart(&own, bounded); !got.Equal(c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	always, err := calendar.New("always", core.CalendarContent{Ranges: []core.ClosedRange{{From: "2026-01-01", To: "9999-01-01"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := plan.NextStart(cur, slots.Under([]core.Closing{always})); !got.IsZero() {
		t.Errorf("got %s of a schedule that is closed for ever", got)
	}
}
