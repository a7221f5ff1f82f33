package claimer_test

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/policytest"
	"github.com/fencepost/fencepost/core/spec"
	"github.com/fencepost/fencepost/infra/clock"
)

// Runs take 3 s, which moves no slot.
func intervalDrift(s *stage, b *bug) {
	anchor := s.began.Add(time.Minute)
	id := s.schedule("every 60s", func(c *core.Schedule) { c.Anchor = anchor })
	stop := s.working(3*time.Second, nil)
	s.until(101*time.Minute + 30*time.Second)
	stop()
	s.wantSlots(id, each(anchor, time.Minute, 101))
	anchored := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	runs := s.runs(id)
	if want := b.times(s.T, "fire_100")[0]; !anchored.Add(runs[100].Key.Slot.Sub(anchor)).Equal(want) {
		s.Errorf("run 100 is of %s, want as long after the anchor as %s", runs[100].Key.Slot, want)
	}
}

// Each day the claimer ends and another begins.
func intervalRestart(s *stage, b *bug) {
	want := b.times(s.T, "fires")
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	id := s.schedule("every 168h", func(c *core.Schedule) { c.Anchor = s.began })
	for day := 1; day <= 15; day++ {
		stop := s.working(time.Second, seldom)
		s.until(time.Duration(day)*24*time.Hour - time.Minute)
		stop()
	}
	for i := range want {
		want[i] = s.began.Add(want[i].Sub(created))
	}
	s.wantSlots(id, want)
}

// Elapsed time: the wall clock may move.
func intervalDST(s *stage, b *bug) {
	c := core.Schedule{Spec: "every 168h", TimeZone: "Europe/Brussels", Anchor: time.Date(2019, 3, 26, 15, 0, 0, 0, time.UTC)}
	slots, err := spec.Load(&c)
	s.must(err)
	if want := b.times(s.T, "fires"); !slots.Next(c.Anchor).Equal(want[0]) {
		s.Errorf("the next slot is %s, want %s", slots.Next(c.Anchor), want[0])
	}
}

// A time far ahead comes once and not before, and no sleep is long.
func timerOverflow(s *stage, b *bug) {
	due := s.began.AddDate(0, 0, 30)
	id := s.schedule("at "+due.UTC().Format(time.RFC3339), nil)
	clk := &sleepy{Clock: clock.System{}}
	stop := s.working(time.Second, func(c *claimer.Config) { c.Clock, c.PollEvery = clk, time.Minute })
	s.until(due.Sub(s.began) - time.Second)
	if got, others := s.ran(id); len(got)+others != b.number(s.T, "fires_before_due") {
		s.Errorf("before its time there are %d runs", len(got)+others)
	}
	s.until(due.Sub(s.began) + 48*time.Hour)
	stop()
	if got, others := s.ran(id); len(got)+others != b.number(s.T, "fires") || !got[0].Equal(due) {
		s.Errorf("the runs are of %s", show(got))
	}
	if longest := time.Duration(clk.longest.Load()); longest == 0 || longest > time.Minute {
		s.Errorf("the longest sleep took %s", longest)
	}
}

// The clock of the process jumps two hours ahead and back; the store's is right.
func clockBack(s *stage, b *bug) {
	id := s.schedule("* * * * *", nil)
	clk := &jumping{}
	stop := s.working(time.Second, func(c *claimer.Config) { c.Clock = clk })
	for _, jump := range []struct{ at, by time.Duration }{{5 * time.Minute, 2 * time.Hour}, {6 * time.Minute, 0}, {8 * time.Minute, -2 * time.Hour}, {9 * time.Minute, 0}} {
		s.until(jump.at + 20*time.Second)
		clk.by.Store(int64(jump.by))
	}
	s.until(12*time.Minute + 30*time.Second)
	stop()
	s.wantSlots(id, each(s.began.Add(time.Minute), time.Minute, 12))
	for _, r := range s.runs(id) {
		if late := r.CreatedAt.Sub(r.Key.Slot); late > 2*time.Second {
			s.Errorf("the run of %s came %s late", r.Key.Slot, late)
		}
	}
	if b.number(s.T, "duplicates_of_same_nominal_time") != 0 {
		s.Error("the report wants duplicates")
	}
}

// outage lets a schedule miss what comes in a time without a claimer.
func (s *stage) outage(text string, from, to time.Duration, change func(*core.Schedule)) uuid.UUID {
	s.Helper()
	id := s.schedule(text, change)
	stop := s.working(time.Second, nil)
	s.until(from)
	stop()
	s.until(to)
	return id
}

// 720 missed minutes, the default cap; each policy goes on afterwards.
func missedLimit(s *stage, b *bug) {
	const from, to = 20*time.Hour + 30*time.Second, 32*time.Hour + 30*time.Second
	s.until(19*time.Hour + 59*time.Minute + 30*time.Second)
	policies := map[core.Misfire]uuid.UUID{}
	for _, m := range []core.Misfire{core.MisfireRunOnce, core.MisfireSkip, core.MisfireRunAll} {
		policies[m] = s.schedule("*/1 * * * *", func(c *core.Schedule) {
			c.Misfire, c.Overlap, c.MisfireGrace = m, core.OverlapAllow, 10*time.Second
		})
	}
	stop := s.working(time.Second, nil)
	s.until(from)
	stop()
	s.until(to)
	stop = s.working(time.Second, nil)
	s.until(to + 5*time.Minute)
	stop()
	for m, want := range map[core.Misfire]int{core.MisfireRunOnce: b.number(s.T, "catch_up_runs"), core.MisfireSkip: 0, core.MisfireRunAll: 720} {
		caught, after := 0, 0
		for _, r := range s.runs(policies[m]) {
			switch {
			case r.State != core.RunSucceeded:
			case r.Cause == core.CauseCatchUp:
				caught++
			case r.CreatedAt.After(s.began.Add(to)):
				after++
			}
		}
		if caught != want || after != 5 {
			s.Errorf("%s: %d catch-ups, want %d, and %d runs after them, want 5", m, caught, want, after)
		}
	}
}

// A day without a claimer, under each policy: one at a time, in order.
func catchUpStorm(s *stage, b *bug) {
	const to = 24*time.Hour + 5*time.Minute
	policies := map[core.Misfire]uuid.UUID{}
	for _, m := range []core.Misfire{core.MisfireRunOnce, core.MisfireSkip, core.MisfireRunAll} {
		policies[m] = s.schedule("*/10 * * * *", func(c *core.Schedule) { c.Misfire = m })
	}
	s.until(to)
	stop := s.working(time.Second, nil)
	s.until(to + 4*time.Minute)
	for m, id := range policies {
		got, _ := s.ran(id)
		if want := b.number(s.T, string(m)); len(got) != want {
			s.Errorf("%s: %d runs, want %d", m, len(got), want)
		}
		var last core.Run
		for _, r := range s.runs(id) {
			if r.State == core.RunSucceeded && !last.FinishedAt.IsZero() && r.CreatedAt.Before(last.FinishedAt) {
				s.Errorf("%s: the run of %s did not wait for that of %s", m, r.Key.Slot, last.Key.Slot)
			}
			last = r
		}
	}
	stop()
}

// The new spec has no past.
func editFires(s *stage, b *bug) {
	id := s.schedule("0 1 * * *", nil)
	stop := s.working(time.Second, seldom)
	s.until(15 * time.Hour)
	cur := s.get(id)
	edit, err := policytest.Step{Do: policytest.Edit, Arg: "0 2 * * *"}.Edit(&cur)
	s.must(err)
	s.must(s.db.Apply(s.Context(), s.tenant, edit))
	s.until(16 * time.Hour)
	before, _ := s.ran(id)
	s.until(27 * time.Hour)
	stop()
	day := time.Date(2016, 11, 14, 0, 0, 0, 0, time.UTC)
	want := []time.Time{s.began.Add(time.Hour), s.began.Add(b.times(s.T, "next")[0].Sub(day))}
	s.wantSlots(id, want)
	if len(before) != 1+b.number(s.T, "runs_at_15") {
		s.Errorf("after the edit there were %d runs", len(before))
	}
}

// With a grace of 5 s nothing that is older runs.
func misfireSkip(s *stage, b *bug) {
	const hour = 16 * time.Hour
	s.until(hour + 43*time.Minute + 40*time.Second)
	id := s.outage("0/15 * * * * *", hour+43*time.Minute+50*time.Second, hour+44*time.Minute+42*time.Second, func(c *core.Schedule) {
		c.Misfire, c.MisfireGrace = core.MisfireSkip, 5*time.Second
	})
	stop := s.working(time.Second, nil)
	s.until(hour + 45*time.Minute + 5*time.Second)
	stop()
	got, others := s.ran(id)
	clockOf := func(t time.Time) string { return t.Format(time.TimeOnly) }
	if len(got) != 3 || clockOf(got[0]) != "16:43:45" || `"`+clockOf(got[1])+`"` != string(b.Expected["first_run"]) || others != 1 {
		s.Errorf("runs of %s and %d other rows", show(got), others)
	}
}

// Paused time is no outage.
func pauseResume(s *stage, b *bug) {
	id := s.schedule("every 5s", func(c *core.Schedule) { c.Anchor = s.began })
	stop := s.working(time.Second, nil)
	s.until(11 * time.Second)
	s.change(id, policytest.Pause)
	s.until(21 * time.Second)
	s.change(id, policytest.Resume)
	s.until(27 * time.Second)
	stop()
	got, others := s.ran(id)
	if want := []time.Time{s.began.Add(5 * time.Second), s.began.Add(10 * time.Second), s.began.Add(25 * time.Second)}; !slices.EqualFunc(want, got, time.Time.Equal) || others != 1 {
		s.Errorf("runs of %s and %d other rows; paused: %d", show(got), others, b.number(s.T, "runs_for_paused_time"))
	}
}

// change pauses or resumes.
func (s *stage) change(id uuid.UUID, what policytest.Deed) {
	s.Helper()
	cur := s.get(id)
	edit, err := policytest.Step{Do: what}.Edit(&cur)
	s.must(err)
	s.must(s.db.Apply(s.Context(), s.tenant, edit))
}

// The claimer has the timer in memory when the pause is answered.
func pausedFires(s *stage, b *bug) {
	id := s.schedule("every 2m", func(c *core.Schedule) { c.Anchor = s.began })
	f := &faults{Store: s.db}
	stop := s.working(time.Second, func(c *claimer.Config) { c.Store = f })
	s.until(119*time.Second + 999*time.Millisecond)
	if f.count("preload") == 0 {
		s.Error("the timer was not loaded ahead")
	}
	s.change(id, policytest.Pause)
	s.until(time.Hour)
	stop()
	if got := s.runs(id); len(got) != b.number(s.T, "runs_after_pause") {
		s.Errorf("after the pause there are %d runs", len(got))
	}
}

// Each slot is a little late when a slow poller sees it.
func skipNeverFires(s *stage, _ *bug) {
	id := s.schedule("0 3 * * *", func(c *core.Schedule) { c.Misfire, c.MisfireGrace = core.MisfireSkip, 30*time.Second })
	stop := s.working(time.Second, func(c *claimer.Config) { c.PollEvery, c.Ahead = 10*time.Second, time.Millisecond })
	s.until(7 * 24 * time.Hour)
	stop()
	s.wantSlots(id, each(s.began.Add(3*time.Hour), 24*time.Hour, 7))
	for _, r := range s.runs(id) {
		if late := r.CreatedAt.Sub(r.Key.Slot); late > 10*time.Second {
			s.Errorf("the run of %s came %s late", r.Key.Slot, late)
		}
	}
}

// Two claimers believe that all shards are theirs.
func doubleFire(s *stage, b *bug) {
	s.until(24*time.Hour - 30*time.Second)
	var ids []uuid.UUID
	for range 59 {
		ids = append(ids, s.schedule("@midnight", nil))
	}
	first, second := s.working(time.Second, nil), s.working(time.Second, nil)
	s.until(24*time.Hour + 30*time.Second)
	first()
	second()
	for _, id := range ids {
		if n := len(s.runs(id)); n != b.number(s.T, "runs_per_schedule_and_nominal_time") {
			s.Errorf("a schedule has %d runs", n)
		}
		s.wantSlots(id, []time.Time{s.began.Add(24 * time.Hour)})
	}
}

// A claimer dies, another comes ten seconds later.
func missedAfterFailover(s *stage, _ *bug) {
	s.until(5*time.Minute + 30*time.Second)
	anchor := s.began.Add(6*time.Minute + 56*time.Second)
	id := s.schedule("every 2m", func(c *core.Schedule) { c.Anchor = anchor })
	stop := s.working(time.Second, nil)
	s.until(8*time.Minute + 20*time.Second)
	stop()
	s.until(8*time.Minute + 30*time.Second)
	stop = s.working(time.Second, nil)
	s.until(11 * time.Minute)
	stop()
	s.wantSlots(id, each(anchor, 2*time.Minute, 3))
	if r := s.runs(id)[1]; r.CreatedAt.Sub(r.Key.Slot) > time.Second {
		s.Errorf("the run after the failover came %s late", r.CreatedAt.Sub(r.Key.Slot))
	}
}

// 600 hourly schedules are spread over a minute, each always by as much.
func topOfHour(s *stage, _ *bug) {
	var ids []uuid.UUID
	for i := range 600 {
		ids = append(ids, s.schedule("0 * * * *", func(c *core.Schedule) {
			c.ID, c.Window = uuid.NewSHA1(uuid.NameSpaceOID, []byte{byte(i), byte(i >> 8)}), time.Minute
		}))
	}
	stop := s.working(time.Second, seldom)
	s.until(2*time.Hour + 2*time.Minute)
	stop()
	busiest := map[time.Duration]int{}
	for _, id := range ids {
		s.wantSlots(id, each(s.began.Add(time.Hour), time.Hour, 2))
		var offsets []time.Duration
		for _, r := range s.runs(id) {
			offset := r.CreatedAt.Sub(r.Key.Slot)
			if offset < 0 || offset > 61*time.Second {
				s.Errorf("a run starts %s after its slot", offset)
			}
			offsets = append(offsets, offset.Truncate(time.Second))
		}
		if offsets[0] != offsets[1] {
			s.Errorf("one schedule starts %s after its slots", offsets)
		}
		busiest[offsets[0]]++
	}
	for second, n := range busiest {
		if n > 30 {
			s.Errorf("%d start %s after the hour", n, second)
		}
	}
}

// jumping is a clock that somebody sets.
type jumping struct {
	clock.System
	by atomic.Int64
}

func (j *jumping) Now() time.Time { return time.Now().Round(0).Add(time.Duration(j.by.Load())) }

// A run of six hours from now is in no queue before it is due, so that no queue's
// visibility timeout can bring it twice.
func longDelay(s *stage, b *bug) {
	due := s.began.Add(6 * time.Hour)
	s.schedule("at "+due.UTC().Format(time.RFC3339), nil)
	out := &inbox{s: s}
	stop := s.claim(func(c *claimer.Config) { c.Publisher = out })
	s.until(6*time.Hour - time.Second)
	if got := out.arrivals(); len(got) > 0 {
		s.Errorf("in the queue before its time: %+v", got)
	}
	s.until(6*time.Hour + time.Minute)
	stop()
	if got := out.arrivals(); len(got) != b.number(s.T, "executions") || got[0].At != 6*time.Hour {
		s.Errorf("in the queue: %+v", got)
	}
}
