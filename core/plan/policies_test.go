package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/calendar"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// policyCase is a due timer of an hourly schedule, settled up to 08:00 unless it
// says otherwise, and what its claim is to write.
type policyCase struct {
	now     string
	change  func(*core.Schedule)
	closed  *core.CalendarContent
	parked  bool
	left    int64
	rows    []string
	next    string
	onBusy  core.OnBusy
	cancels bool
}

func rules(f func(*core.Rules)) func(*core.Schedule) {
	return func(s *core.Schedule) { f(&s.Rules) }
}

func policies(misfire core.Misfire, overlap core.Overlap) func(*core.Schedule) {
	return func(s *core.Schedule) { s.Misfire, s.Overlap = misfire, overlap }
}

var misfires = map[string]policyCase{
	"run_once, on time":        {now: "09:00:30", rows: []string{"09:00:00 schedule"}, next: "10:00:00", onBusy: core.BusySkip},
	"run_once, one missed":     {now: "09:30:00", rows: []string{"09:00:00 catch_up"}, next: "10:00:00", onBusy: core.BusySkip},
	"run_once, many missed":    {now: "12:30:00", rows: []string{"11:00:00 schedule skipped misfire from 09:00:00", "12:00:00 catch_up"}, next: "13:00:00", onBusy: core.BusySkip},
	"run_once, newest on time": {now: "11:00:10", rows: []string{"10:00:00 schedule skipped misfire from 09:00:00", "11:00:00 schedule"}, next: "12:00:00", onBusy: core.BusySkip},
	"skip, on time": {
		now: "09:00:30", change: policies("skip", "skip"), rows: []string{"09:00:00 schedule"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"skip, one missed": {
		now: "09:02:00", change: policies("skip", "skip"), rows: []string{"09:00:00 schedule skipped misfire"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"skip, ten missed": {
		now: "18:30:00", change: policies("skip", "skip"), rows: []string{"18:00:00 schedule skipped misfire from 09:00:00"}, next: "19:00:00", onBusy: core.BusySkip,
	},
	"skip, newest on time": {
		now: "11:00:10", change: policies("skip", "skip"),
		rows: []string{"10:00:00 schedule skipped misfire from 09:00:00", "11:00:00 schedule"}, next: "12:00:00", onBusy: core.BusySkip,
	},
	"run_all, on time": {
		now: "09:00:30", change: policies("run_all", "skip"), rows: []string{"09:00:00 schedule"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"run_all, many missed: the oldest first, and it waits": {
		now: "12:30:00", change: policies("run_all", "skip"), rows: []string{"09:00:00 catch_up"}, next: "10:00:00", onBusy: core.BusyWait,
	},
	"run_all beside each other": {
		now: "12:00:10", change: policies("run_all", "allow"),
		rows: []string{"09:00:00 catch_up", "10:00:00 catch_up", "11:00:00 catch_up", "12:00:00 schedule"}, next: "13:00:00", onBusy: core.BusyAllow,
	},
	"run_all beyond its cap": {
		now: "14:30:00", change: func(s *core.Schedule) { s.Misfire, s.Overlap, s.Rules.MisfireCap = "run_all", "allow", 2 },
		rows: []string{"12:00:00 schedule skipped misfire from 09:00:00", "13:00:00 catch_up", "14:00:00 catch_up"}, next: "15:00:00", onBusy: core.BusyAllow,
	},
	"run_all beyond its cap, one at a time: first what is dropped": {
		now: "14:30:00", change: func(s *core.Schedule) { s.Misfire, s.Rules.MisfireCap = "run_all", 2 },
		rows: []string{"12:00:00 schedule skipped misfire from 09:00:00"}, next: "13:00:00", onBusy: core.BusySkip,
	},
	"late within the time that it is useful": {
		now: "12:30:00", change: func(s *core.Schedule) { s.CatchUpWithin = 45 * time.Minute },
		rows: []string{"11:00:00 schedule skipped late from 09:00:00", "12:00:00 catch_up"}, next: "13:00:00", onBusy: core.BusySkip,
	},
	"too late to be useful": {
		now: "12:30:00", change: func(s *core.Schedule) { s.CatchUpWithin = 20 * time.Minute },
		rows: []string{"12:00:00 schedule skipped late from 09:00:00"}, next: "13:00:00", onBusy: core.BusySkip,
	},
	"run_all up to the time that it is useful": {
		now: "12:30:00", change: func(s *core.Schedule) { s.Misfire, s.Overlap, s.CatchUpWithin = "run_all", "allow", 2*time.Hour },
		rows: []string{"10:00:00 schedule skipped late from 09:00:00", "11:00:00 catch_up", "12:00:00 catch_up"}, next: "13:00:00", onBusy: core.BusyAllow,
	},
}

var overlaps = map[string]policyCase{
	"queue_one, on time": {
		now: "09:00:30", change: policies("run_once", "queue_one"), rows: []string{"09:00:00 schedule"}, next: "10:00:00", onBusy: core.BusyWait,
	},
	"queue_one, missed: what is skipped comes first": {
		now: "12:30:00", change: policies("run_once", "queue_one"),
		rows: []string{"11:00:00 schedule skipped misfire from 09:00:00"}, next: "12:00:00", onBusy: core.BusySkip,
	},
	"queue_one, waited: no misfire, later ones are overlap": {
		now: "12:30:00", parked: true, change: policies("skip", "queue_one"),
		rows: []string{"09:00:00 schedule", "12:00:00 schedule skipped overlap from 10:00:00"}, next: "13:00:00", onBusy: core.BusyWait,
	},
	"queue_one, waited too long": {
		now: "10:30:00", parked: true, change: func(s *core.Schedule) { s.Overlap, s.CatchUpWithin = "queue_one", time.Hour },
		rows: []string{"09:00:00 schedule skipped late"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"cancel_previous, on time": {
		now: "09:00:30", change: policies("run_once", "cancel_previous"), rows: []string{"09:00:00 schedule"}, next: "10:00:00",
		onBusy: core.BusyWait, cancels: true,
	},
	"cancel_previous, waited: the newest wins": {
		now: "11:30:00", parked: true, change: policies("run_once", "cancel_previous"),
		rows: []string{"10:00:00 schedule skipped overlap from 09:00:00"}, next: "11:00:00", onBusy: core.BusySkip,
	},
	"skip after an edit while the slot waited": {
		now: "10:30:00", parked: true, rows: []string{"09:00:00 schedule", "10:00:00 schedule skipped overlap"}, next: "11:00:00", onBusy: core.BusyWait,
	},
}

func exception(e core.Exception) func(*core.Schedule) {
	return rules(func(r *core.Rules) { r.Exceptions = []core.Exception{e} })
}

var limits = map[string]policyCase{
	"last run":          {now: "09:00:30", left: 1, rows: []string{"09:00:00 schedule"}, next: "10:00:00", onBusy: core.BusySkip},
	"no more runs":      {now: "09:00:30", left: -1, next: "never", onBusy: core.BusySkip},
	"run_all, two left": {now: "12:30:00", left: 2, change: policies("run_all", "allow"), rows: []string{"10:00:00 schedule skipped misfire from 09:00:00", "11:00:00 catch_up", "12:00:00 catch_up"}, next: "13:00:00", onBusy: core.BusyAllow},
	"ends after the slot": {
		now: "09:00:30", change: rules(func(r *core.Rules) { r.EndsAt = clock("10:00:00") }), rows: []string{"09:00:00 schedule"}, next: "never", onBusy: core.BusySkip,
	},
	"starts later": {
		now: "10:00:30", change: rules(func(r *core.Rules) { r.StartsAt = clock("10:00:00") }), rows: []string{"10:00:00 schedule"}, next: "11:00:00", onBusy: core.BusySkip,
	},
	"slot skipped": {
		now: "09:00:30", change: exception(core.Exception{Slot: clock("09:00:00"), Skip: true}),
		rows: []string{"09:00:00 schedule skipped exception"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"slot skipped amid missed ones": {
		now: "12:30:00", change: exception(core.Exception{Slot: clock("11:00:00"), Skip: true}),
		rows: []string{"10:00:00 schedule skipped misfire from 09:00:00", "11:00:00 schedule skipped exception", "12:00:00 catch_up"},
		next: "13:00:00", onBusy: core.BusySkip,
	},
	"newest missed slot skipped: an older one catches up": {
		now: "12:30:00", change: exception(core.Exception{Slot: clock("12:00:00"), Skip: true}),
		rows: []string{"10:00:00 schedule skipped misfire from 09:00:00", "11:00:00 catch_up", "12:00:00 schedule skipped exception"},
		next: "13:00:00", onBusy: core.BusySkip,
	},
	"slot moved back, its time": {
		now: "09:20:10", change: exception(core.Exception{Slot: clock("09:00:00"), MoveTo: clock("09:20:00")}),
		rows: []string{"09:00:00 schedule"}, next: "10:00:00", onBusy: core.BusySkip,
	},
	"slot moved forward": {
		now: "09:40:10", change: exception(core.Exception{Slot: clock("10:00:00"), MoveTo: clock("09:40:00")}),
		rows: []string{"09:00:00 schedule skipped misfire", "10:00:00 schedule"}, next: "11:00:00", onBusy: core.BusySkip,
	},
	"pause that ended": {
		now:    "12:00:10",
		change: func(s *core.Schedule) { s.Paused, s.Rules.PausedUntil = true, clock("11:30:00") },
		rows:   []string{"11:00:00 schedule skipped paused from 09:00:00", "12:00:00 schedule"}, next: "13:00:00", onBusy: core.BusySkip,
	},
}

// TestPolicies: every policy, and what it writes for slots that are on time,
// late, missed, waiting, excepted or limited.
func TestPolicies(t *testing.T) {
	t.Parallel()
	for _, table := range []map[string]policyCase{misfires, overlaps, limits, closed} {
		for name, c := range table {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c.run(t)
			})
		}
	}
}

func (c policyCase) run(t *testing.T) {
	s, _ := schedule("0 * * * *")
	if c.change != nil {
		c.change(s)
	}
	slots := load(t, s)
	if c.closed != nil {
		closing, err := calendar.New("k", *c.closed)
		if err != nil {
			t.Fatal(err)
		}
		slots = slots.Under([]core.Closing{closing})
	}
	timer := core.Timer{FireAt: s.Effective(slots.Next(clock("08:00:00"))), Done: clock("08:00:00"), Fence: 7, Parked: c.parked}
	switch {
	case c.left > 0:
		timer.RunsLeft = &c.left
	case c.left < 0:
		timer.RunsLeft = new(int64)
	}
	m := plan.Move(s, &timer, slots, clock(c.now))
	if diff := cmp.Diff(c.rows, short(m.Rows)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	next := m.NextAt.Format(time.TimeOnly)
	if m.NextAt.Equal(core.Forever) {
		next = "never"
	}
	if next != c.next || m.OnBusy != c.onBusy || m.CancelLive != c.cancels {
		t.Errorf("next %s, busy %s, cancels %t; want %s, %s, %t", next, m.OnBusy, m.CancelLive, c.next, c.onBusy, c.cancels)
	}
	if len(m.Rows) > 0 && !m.ValidUntil.After(clock(c.now)) {
		t.Errorf("the plan is void from the start: until %s", m.ValidUntil)
	}
	if len(m.Rows) > 0 && m.ValidFrom.After(clock(c.now)) {
		t.Errorf("the plan is early: from %s", m.ValidFrom)
	}
}

func load(t *testing.T, s *core.Schedule) spec.Spec {
	t.Helper()
	slots, err := spec.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return slots
}
