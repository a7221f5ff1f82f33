package cron_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/core/cron"
)

// change is a spec and its slots around a clock change.
type change struct {
	spec, zone, from string
	gap              cron.GapPolicy
	overlap          cron.OverlapPolicy
	want             []string
}

func checkChanges(t *testing.T, changes map[string]change) {
	t.Helper()
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := mustParse(t, c.spec, cron.Options{Location: zone(t, c.zone), Gap: c.gap, Overlap: c.overlap})
			if diff := cmp.Diff(c.want, slots(e, instant(t, c.from), len(c.want))); diff != "" {
				t.Errorf("%q in %s (-want +got)\n%s", c.spec, c.zone, diff)
			}
		})
	}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	checkChanges(t, map[string]change{
		"a gap runs once right after": {
			spec: "15,45 2 * * *", zone: "America/New_York", from: "2026-03-08T00:00:00Z",
			want: []string{"2026-03-08T07:00:00Z", "2026-03-09T06:15:00Z"},
		},
		"a gap is skipped on request": {
			spec: "15,45 2 * * *", zone: "America/New_York", from: "2026-03-08T00:00:00Z", gap: cron.GapSkip,
			want: []string{"2026-03-09T06:15:00Z", "2026-03-09T06:45:00Z"},
		},
		"a wildcard runs after a gap on request": {
			spec: "59 * * * *", zone: "America/New_York", from: "2026-03-08T06:30:00Z", gap: cron.GapRunAfter,
			want: []string{"2026-03-08T06:59:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:59:00Z"},
		},
		"seconds after a gap run at its end": {
			spec: "30 30 2 * * *", zone: "America/New_York", from: "2026-03-08T00:00:00Z",
			want: []string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:30Z"},
		},
		"a gap that ends within a minute": {
			spec: "0 0 * * *", zone: "Africa/Monrovia", from: "1972-01-06T12:00:00Z",
			want: []string{"1972-01-07T00:45:00Z", "1972-01-08T00:00:00Z"},
		},
		"a gap that ends within a minute, with seconds": {
			spec: "0 0 0 * * *", zone: "Africa/Monrovia", from: "1972-01-06T12:00:00Z",
			want: []string{"1972-01-07T00:44:30Z", "1972-01-08T00:00:00Z"},
		},
		"three hours forward are a gap": {
			spec: "0 1 * * *", zone: "America/Danmarkshavn", from: "1996-01-01T00:00:00Z",
			want: []string{"1996-01-01T03:00:00Z", "1996-01-02T01:00:00Z"},
		},
	})
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	checkChanges(t, map[string]change{
		"a repeated hour runs twice on request": {
			spec: "30 1 * * *", zone: "America/New_York", from: "2026-11-01T00:00:00Z", overlap: cron.OverlapBoth,
			want: []string{"2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"},
		},
		"a wildcard runs once on request": {
			spec: "*/30 * * * *", zone: "America/New_York", from: "2026-11-01T05:00:00Z", overlap: cron.OverlapFirst,
			want: []string{"2026-11-01T05:30:00Z", "2026-11-01T07:00:00Z"},
		},
		"three hours back are an overlap to the last second": {
			spec: "59 59 22,0,1 * * *", zone: "Antarctica/Casey", from: "2018-03-10T14:00:00Z",
			want: []string{"2018-03-10T14:59:59Z", "2018-03-11T14:59:59Z", "2018-03-11T16:59:59Z"},
		},
		"an overlap still counts when asked in its last second": {
			spec: "59 59 3 * * *", zone: "Antarctica/Casey", from: "2018-03-10T19:59:58Z",
			want: []string{"2018-03-11T19:59:59Z"},
		},
	})
}

func TestCorrections(t *testing.T) {
	t.Parallel()
	checkChanges(t, map[string]change{
		"seven hours back are a correction": {
			spec: "0 20 * * *", zone: "Antarctica/Vostok", from: "1994-01-31T12:00:00Z",
			want: []string{"1994-01-31T13:00:00Z", "1994-01-31T20:00:00Z", "1994-02-01T20:00:00Z"},
		},
		"a missing day is not made up for": {
			spec: "0 12 * * *", zone: "Pacific/Apia", from: "2011-12-29T00:00:00Z",
			want: []string{"2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z"},
		},
		"a missing date waits for its next year": {
			spec: "0 12 30 12 *", zone: "Pacific/Apia", from: "2011-01-01T00:00:00Z",
			want: []string{"2012-12-29T22:00:00Z"},
		},
	})
}

func TestHorizon(t *testing.T) {
	t.Parallel()
	t.Run("the rarest date is forty years off", func(t *testing.T) {
		t.Parallel()
		e := mustParse(t, "0 0 29 2 */7", cron.Options{})
		from := time.Date(2088, 2, 29, 0, 0, 0, 0, time.UTC)
		want := time.Date(2128, 2, 29, 0, 0, 0, 0, time.UTC)
		if got := e.Next(from); !got.Equal(want) {
			t.Errorf("Next = %s, want %s", got, want)
		}
		if got := e.Prev(want); !got.Equal(from) {
			t.Errorf("Prev = %s, want %s", got, from)
		}
	})
	t.Run("a date that only ever falls into a skipped gap has no next", func(t *testing.T) {
		t.Parallel()
		e := mustParse(t, "30 2 * 3 0#2", cron.Options{Location: zone(t, "America/New_York"), Gap: cron.GapSkip})
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if got := e.Next(at); !got.IsZero() {
			t.Errorf("Next = %s, want none", got)
		}
		if got, want := e.Prev(at), time.Date(2006, 3, 12, 7, 30, 0, 0, time.UTC); !got.Equal(want) {
			t.Errorf("Prev = %s, want %s", got, want)
		}
	})
	t.Run("there is nothing outside the years that RFC 3339 can write", func(t *testing.T) {
		t.Parallel()
		for _, spec := range []string{"* * * * *", "@every 1h"} {
			e := mustParse(t, spec, cron.Options{})
			last := time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC)
			for _, at := range []time.Time{last, last.AddDate(1, 0, 0), time.Unix(1<<62, 0), time.Unix(-1<<62, 0)} {
				if got := e.Next(at); !got.IsZero() {
					t.Errorf("%s: Next(%s) = %s, want none", spec, at, got)
				}
			}
			first := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
			for _, at := range []time.Time{first, first.AddDate(-1, 0, 0), time.Unix(1<<62, 0), time.Unix(-1<<62, 0)} {
				if got := e.Prev(at); !got.IsZero() {
					t.Errorf("%s: Prev(%s) = %s, want none", spec, at, got)
				}
			}
		}
	})
}

// TestCalendar compares days with the time package through a whole cycle of the
// calendar.
func TestCalendar(t *testing.T) {
	t.Parallel()
	for spec, matches := range map[string]func(time.Time) bool{
		"0 0 * * *":     func(time.Time) bool { return true },
		"0 0 29 2 *":    func(day time.Time) bool { return day.Month() == time.February && day.Day() == 29 },
		"0 0 L * *":     func(day time.Time) bool { return day.AddDate(0, 0, 1).Day() == 1 },
		"0 0 1-7 * */7": func(day time.Time) bool { return day.Day() <= 7 && day.Weekday() == time.Sunday },
	} {
		e := mustParse(t, spec, cron.Options{})
		next := e.Next(time.Date(1849, 12, 31, 0, 0, 0, 0, time.UTC))
		for day := time.Date(1850, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2260; day = day.AddDate(0, 0, 1) {
			if !matches(day) {
				continue
			}
			if !next.Equal(day) {
				t.Fatalf("%q: %s, want %s", spec, next, day)
			}
			if back := e.Prev(day.Add(1)); !back.Equal(day) {
				t.Fatalf("%q: %s back, want %s", spec, back, day)
			}
			next = e.Next(next)
		}
	}
}

func TestEvery(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 8, 6, 59, 30, 500, time.UTC)
	for spec, want := range map[string]time.Duration{
		"@every 90s":    90 * time.Second,
		"@every 1h30m":  90 * time.Minute,
		"@EVERY  1.9s":  time.Second,
		"@every 1ms":    time.Second,
		"@every 10000h": 10000 * time.Hour,
	} {
		e := mustParse(t, spec, cron.Options{Location: zone(t, "America/New_York")})
		next := e.Next(from)
		if got := next.Sub(from.Truncate(time.Second)); got != want {
			t.Errorf("%q: %s after the second, want %s", spec, got, want)
		}
		if got := e.Prev(next.Add(1)); !got.Equal(next) {
			t.Errorf("%q: Prev = %s, want %s", spec, got, next)
		}
		if !e.Belongs(next) || e.Belongs(from) {
			t.Errorf("%q: slots are whole seconds", spec)
		}
	}
}

// TestHash pins the times of H: they must not move with a release.
func TestHash(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		spec string
		salt uint64
		want []string
	}{} {
		e := mustParse(t, c.spec, cron.Options{Salt: c.salt})
		if diff := cmp.Diff(c.want, slots(e, from, len(c.want))); diff != "" {
			t.Errorf("%q with salt %#x (-want +got)\n%s", c.spec, c.salt, diff)
		}
	}
}

// TestHashRange holds each token against what it promises, for any salt.
func TestHashRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec     string
		part     func(time.Time) int
		low, top int
	}{
		{"H * * * * *", time.Time.Second, 0, 59},
		{"H * * * *", time.Time.Minute, 0, 59},
		{"H(10-19) * * * *", time.Time.Minute, 10, 19},
		{"0 H * * *", time.Time.Hour, 0, 23},
		{"0 0 H * *", time.Time.Day, 1, 28},
		{"0 0 1 H *", func(at time.Time) int { return int(at.Month()) }, 1, 12},
		{"0 0 1 H(mar-may) *", func(at time.Time) int { return int(at.Month()) }, 3, 5},
		{"0 0 * * H", func(at time.Time) int { return int(at.Weekday()) }, 0, 6},
		{"0 0 * * H(mon-fri)", func(at time.Time) int { return int(at.Weekday()) }, 1, 5},
	} {
		seen := make(map[int]bool)
		for salt := range uint64(2000) {
			e := mustParse(t, c.spec, cron.Options{Salt: salt * 0x9e3779b97f4a7c15})
			first := e.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			seen[c.part(first)] = true
			if v := c.part(first); v < c.low || v > c.top {
				t.Fatalf("%q: %d is outside %d-%d", c.spec, v, c.low, c.top)
			}
		}
		if want := c.top - c.low + 1; len(seen) != want {
			t.Errorf("%q: %d different values, want all %d", c.spec, len(seen), want)
		}
	}
}

func TestHashStep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		salt := rapid.Uint64().Draw(t, "salt")
		e, err := cron.Parse("H/15 H(8-17)/99 * * *", cron.Options{Salt: salt})
		if err != nil {
			t.Fatal(err)
		}
		first := e.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		if h, m := first.Hour(), first.Minute(); h < 8 || h > 17 || m > 14 {
			t.Fatalf("first slot is %s", first)
		}
		for range 3 {
			next := e.Next(first)
			if next.Sub(first) != 15*time.Minute {
				t.Fatalf("%s follows %s", next, first)
			}
			first = next
		}
		if next := e.Next(first); next.Sub(first) != 23*time.Hour+15*time.Minute {
			t.Fatalf("%s follows %s", next, first)
		}
	})
}

func TestString(t *testing.T) {
	t.Parallel()
	e := mustParse(t, " \tCRON_TZ=UTC 0\t0  1 jan * ", cron.Options{})
	if got, want := e.String(), "CRON_TZ=UTC 0 0 1 jan *"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	type answer struct{ Gap, Overlap, Why string }
	const (
		fixed    = "fixed: neither the minute nor the hour field begins with a star, so it follows the wall clock"
		wildcard = "wildcard: the minute or the hour field begins with a star, so it follows real time"
	)
	for _, c := range []struct {
		spec string
		o    cron.Options
		want answer
	}{
		{"0 2 * * *", cron.Options{}, answer{"run_after", "first", fixed}},
		{"0 1-3 * * *", cron.Options{}, answer{"run_after", "first", fixed}},
		{"H H/2 * * *", cron.Options{}, answer{"run_after", "first", fixed}},
		{"* 30 2 * * *", cron.Options{}, answer{"run_after", "first", fixed}},
		{"@daily", cron.Options{}, answer{"run_after", "first", fixed}},
		{"@hourly", cron.Options{}, answer{"skip", "both", wildcard}},
		{"0 */2 * * *", cron.Options{}, answer{"skip", "both", wildcard}},
		{"? 2 * * *", cron.Options{}, answer{"skip", "both", wildcard}},
		{"0 2 * * *", cron.Options{Gap: cron.GapSkip}, answer{"skip", "first", fixed}},
		{"0 2 * * *", cron.Options{Gap: cron.GapSkip, Overlap: cron.OverlapBoth}, answer{"skip", "both", "set for this schedule"}},
		{"@every 1h", cron.Options{}, answer{"skip", "both", "elapsed time: clock changes do not touch it"}},
	} {
		gap, overlap, why := mustParse(t, c.spec, c.o).Policies()
		if diff := cmp.Diff(c.want, answer{gap.String(), overlap.String(), why}); diff != "" {
			t.Errorf("%q (-want +got)\n%s", c.spec, diff)
		}
	}
}
