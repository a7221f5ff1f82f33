package schedules_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// own returns all that a schedule says of itself, as a client sends back what it
// was shown.
func own(s *core.Schedule) schedules.Fields {
	f := schedules.Fields{
		Name: &s.Name, Spec: &s.Spec, TimeZone: &s.TimeZone, DSTGap: &s.DSTGap, DSTOverlap: &s.DSTOverlap, CatchUpWithin: &s.CatchUpWithin,
		Job: &s.Job, Misfire: &s.Misfire, MisfireGrace: &s.MisfireGrace, Overlap: &s.Overlap, Window: &s.Window, Exact: &s.Exact,
		Timeout: &s.Timeout, MaxAttempts: &s.MaxAttempts, TotalTimeout: &s.Rules.TotalTimeout,
	}
	if !s.Anchor.IsZero() {
		f.Anchor = &s.Anchor
	}
	return f
}

// TestEditWithItsOwnContent: what has not changed is not judged again and makes
// no version, whatever the schedule is and although its time has passed.
func TestEditWithItsOwnContent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec  string
		after time.Duration
		pause bool
	}{
		"cron":                  {spec: "30 2 * * *"},
		"hashed":                {spec: "H H * * *"},
		"interval":              {spec: "every 15m"},
		"interval of a day":     {spec: "P3D"},
		"one time":              {spec: "at 2027-03-28T02:30"},
		"an instant":            {spec: "at 2027-03-28T02:30:00+05:00"},
		"one time, over":        {spec: "at 2027-03-28T02:30", after: 365 * 24 * time.Hour},
		"a delay, over":         {spec: "in 90s", after: 24 * time.Hour},
		"paused":                {spec: "@daily", pause: true},
		"one time, over, asked": {spec: "at 2026-12-01T13:00", after: 24 * time.Hour, pause: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			f := fields()
			f.Spec, f.TimeZone = ptr(c.spec), ptr("Europe/Berlin")
			s, err := w.service.Create(t.Context(), w.tenant, f)
			if err != nil {
				t.Fatal(err)
			}
			if c.pause {
				if s, err = w.service.Pause(t.Context(), w.tenant, s.Schedule.ID, schedules.PauseOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			w.clock.now = w.clock.now.Add(c.after)
			got, err := w.service.Edit(t.Context(), w.tenant, s.Schedule.ID, own(&s.Schedule))
			if err != nil || got.Schedule.Version != s.Schedule.Version {
				t.Errorf("version %d, want %d: %v", got.Schedule.Version, s.Schedule.Version, err)
			}
		})
	}
}

// TestEditOfAOneTimeSchedule: another zone or policy gives its wall time another
// instant, and one that lies in the past is refused.
func TestEditOfAOneTimeSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld()
	f := fields()
	f.Spec, f.TimeZone = ptr("at 2027-10-31T02:30"), ptr("Europe/Berlin")
	s, err := w.service.Create(t.Context(), w.tenant, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		f    schedules.Fields
		want string
	}{
		{schedules.Fields{TimeZone: ptr("Asia/Tokyo")}, "2027-10-30T17:30:00Z"},
		{schedules.Fields{TimeZone: ptr("Europe/Berlin")}, "2027-10-31T00:30:00Z"},
		{schedules.Fields{DSTOverlap: ptr(core.DSTOverlapBoth)}, "2027-10-31T00:30:00Z"},
		{schedules.Fields{Spec: ptr("at 2027-03-28T02:30")}, "2027-03-28T01:00:00Z"},
	} {
		got, err := w.service.Edit(t.Context(), w.tenant, s.Schedule.ID, step.f)
		if err != nil || got.Timer.FireAt.Format(time.RFC3339) != step.want || got.Schedule.Version != s.Schedule.Version+1 {
			t.Fatalf("%+v: fires at %s, version %d, want %s: %v", step.f, got.Timer.FireAt, got.Schedule.Version, step.want, err)
		}
		s = got
	}
	_, err = w.service.Edit(t.Context(), w.tenant, s.Schedule.ID, schedules.Fields{DSTGap: ptr(core.DSTGapSkip)})
	refusedField(t, err, "dst_gap")
	_, err = w.service.Edit(t.Context(), w.tenant, s.Schedule.ID, schedules.Fields{Spec: ptr("at 2026-01-01T00:00")})
	refusedField(t, err, "spec")
}
