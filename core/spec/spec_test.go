package spec_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

var (
	now = time.Date(2026, 11, 30, 12, 0, 0, 500, time.UTC)
	id  = uuid.MustParse("018f0000-0000-7000-8000-000000000001")
)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

func parse(text, zone string) (spec.Spec, error) {
	return spec.Parse(&core.Schedule{ID: id, Spec: text, TimeZone: zone}, now)
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, zone, norm, next string }{
		{"*/5 * * * *", "", "*/5 * * * *", "2026-11-30T12:05:00Z"},
		{"30 2 * * *", "Europe/Berlin", "30 2 * * *", "2026-12-01T01:30:00Z"},
		{"TZ=Europe/Berlin 30 2 * * *", "Europe/Berlin", "30 2 * * *", "2026-12-01T01:30:00Z"},
		{"@Daily\n", "", "@daily", "2026-12-01T00:00:00Z"},
		{"at 2027-01-05T09:00", "Europe/Berlin", "at 2027-01-05T09:00:00", "2027-01-05T08:00:00Z"},
		{"TZ=Europe/Berlin at 2027-01-05T09:00", "Europe/Berlin", "at 2027-01-05T09:00:00", "2027-01-05T08:00:00Z"},
		{"at 2027-01-05T09:00:07", "", "at 2027-01-05T09:00:07", "2027-01-05T09:00:07Z"},
		{"at 2027-01-05T09:00:00+05:30", "Europe/Berlin", "at 2027-01-05T03:30:00Z", "2027-01-05T03:30:00Z"},
		{"at 2027-03-28T02:30", "Europe/Berlin", "at 2027-03-28T02:30:00", "2027-03-28T01:00:00Z"},       // in the gap: at its end
		{"at 2027-10-31T02:30", "Europe/Berlin", "at 2027-10-31T02:30:00", "2027-10-31T00:30:00Z"},       // twice: the first
		{"at 2027-10-03T02:15", "Australia/Lord_Howe", "at 2027-10-03T02:15:00", "2027-10-02T15:30:00Z"}, // half an hour's gap
		{"in 3d", "", "at 2026-12-03T12:00:01Z", "2026-12-03T12:00:01Z"},                                 // never early
		{"IN 90s", "", "at 2026-11-30T12:01:31Z", "2026-11-30T12:01:31Z"},
		{"@every 90s", "", "every 1m30s", ""},
		{"every\t5m", "", "every 5m", ""},
		{"P3D", "", "every 3d", ""},
		{"PT90M", "", "every 1h30m", ""},
		{" every \t 1 \t day ", "", "every 1d", ""},
		{"at\t2027-01-05T09:00", "", "at 2027-01-05T09:00:00", "2027-01-05T09:00:00Z"},
	} {
		got, err := parse(c.text, c.zone)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got.Text != c.norm {
			t.Errorf("%s is written %q, want %q", c.text, got.Text, c.norm)
		}
		if c.next != "" && !got.Next(now).Equal(at(c.next)) {
			t.Errorf("%s comes next at %s, want %s", c.text, got.Next(now), c.next)
		}
		back, err := spec.Load(&core.Schedule{ID: id, Spec: got.Text, TimeZone: c.zone, Anchor: got.Anchor})
		if err != nil || !back.Next(now).Equal(got.Next(now)) {
			t.Errorf("%s loads as %q: next %v, %v", c.text, back.Text, back.Next(now), err)
		}
	}
}

// TestZoneInFront: a zone in front of the spec counts where the schedule has none.
func TestZoneInFront(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"TZ=Europe/Berlin 0 9 * * *":           "Europe/Berlin",
		"CRON_TZ=Europe/Berlin every 5m":       "Europe/Berlin",
		"TZ=Europe/Berlin at 2027-01-05T09:00": "Europe/Berlin",
		"0 9 * * *":                            "",
	} {
		if got, err := parse(text, ""); err != nil || got.Zone != want {
			t.Errorf("%s: zone %q, %v", text, got.Zone, err)
		}
	}
}

// TestOneTimeAtClockChanges: the two policies resolve a wall time that there is
// not, or twice.
func TestOneTimeAtClockChanges(t *testing.T) {
	t.Parallel()
	const gap, twice = "at 2027-03-28T02:30", "at 2027-10-31T02:30"
	for _, c := range []struct {
		text    string
		gap     core.DSTGap
		overlap core.DSTOverlap
		want    string
		reason  string
	}{
		{gap, "", "", "at 2027-03-28T02:30:00", "2027-03-28T02:30 does not exist: clocks skip it, and this is the first instant after the gap"},
		{gap, "run_after", "both", "at 2027-03-28T02:30:00", "2027-03-28T02:30 does not exist: clocks skip it, and this is the first instant after the gap"},
		{gap, "skip", "", `spec: time, column 4, "2027-03-28T02:30": does not exist in Europe/Berlin: clocks skip it, and so does dst_gap; choose another time, or set dst_gap to run_after`, ""},
		{twice, "", "", "at 2027-10-31T02:30:00", "2027-10-31T02:30 comes twice: this is the first time"},
		{twice, "skip", "first", "at 2027-10-31T02:30:00", "2027-10-31T02:30 comes twice: this is the first time"},
		{twice, "", "both", "at 2027-10-31T02:30:00", "2027-10-31T02:30 comes twice: this is the first time"},
	} {
		s := &core.Schedule{ID: id, Spec: c.text, TimeZone: "Europe/Berlin", DSTGap: c.gap, DSTOverlap: c.overlap}
		got, err := spec.Parse(s, now)
		text, reason := got.Text, ""
		if err != nil {
			text = err.Error()
		} else {
			reason = got.Explain(got.Next(now))
		}
		if diff := cmp.Diff([]string{c.want, c.reason}, []string{text, reason}); diff != "" {
			t.Errorf("%s with %q and %q:\n%s", c.text, c.gap, c.overlap, diff)
		}
		if err != nil {
			continue
		}
		s.Spec, s.Anchor = got.Text, got.Anchor
		again, err := spec.Parse(s, now)
		if err != nil || again.Text != got.Text {
			t.Errorf("%s is not taken back: %q, %v", got.Text, again.Text, err)
		}
	}
	both, err := spec.Load(&core.Schedule{Spec: "at 2027-10-31T00:30:00Z and 2027-10-31T01:30:00Z"})
	if err != nil {
		t.Fatal(err)
	}
	first, second := at("2027-10-31T00:30:00Z"), at("2027-10-31T01:30:00Z")
	if !both.Next(now).Equal(first) || !both.Next(first).Equal(second) || !both.Next(second).IsZero() ||
		!both.Prev(second.Add(1)).Equal(second) || !both.Prev(second).Equal(first) || !both.Prev(first).IsZero() {
		t.Error("the two instants are not the slots")
	}
}

// TestStoredWallTime: a stored one-time spec still knows its wall time, so that
// what a clock change did can be said, and another zone or policy, or new zone
// data, finds another instant.
func TestStoredWallTime(t *testing.T) {
	t.Parallel()
	const gap, twice = "at 2027-03-28T02:30:00", "at 2027-10-31T02:30:00"
	for _, c := range []struct {
		text, zone string
		gap        core.DSTGap
		overlap    core.DSTOverlap
		want       []string
	}{
		{gap, "Europe/Berlin", "", "", []string{"2027-03-28T01:00:00Z 2027-03-28T02:30 does not exist: clocks skip it, and this is the first instant after the gap"}},
		{gap, "Europe/Berlin", "skip", "", nil},
		{gap, "Asia/Tokyo", "skip", "both", []string{"2027-03-27T17:30:00Z "}},
		{twice, "Europe/Berlin", "", "", []string{"2027-10-31T00:30:00Z 2027-10-31T02:30 comes twice: this is the first time"}},
		{twice, "Europe/Berlin", "", "both", []string{
			"2027-10-31T00:30:00Z 2027-10-31T02:30 comes twice: this is the first time",
			"2027-10-31T01:30:00Z 2027-10-31T02:30 comes twice: this is the second time",
		}},
	} {
		s := &core.Schedule{ID: id, Spec: c.text, TimeZone: c.zone, DSTGap: c.gap, DSTOverlap: c.overlap, Anchor: at("2027-10-31T00:30:00Z")}
		got, err := spec.Load(s)
		if err != nil {
			t.Fatal(err)
		}
		var slots []string
		for slot := got.Next(now); !slot.IsZero(); slot = got.Next(slot) {
			slots = append(slots, slot.Format(time.RFC3339)+" "+got.Explain(slot))
		}
		if diff := cmp.Diff(c.want, slots); diff != "" {
			t.Errorf("%s in %s with %q and %q:\n%s", c.text, c.zone, c.gap, c.overlap, diff)
		}
		if fires := spec.CheckFires(s, got, now) == nil; fires != (len(c.want) > 0) {
			t.Errorf("%s in %s with %q: fires is %t", c.text, c.zone, c.gap, fires)
		}
	}
}

// TestOneTimeInThePast: fires late if that was allowed.
func TestOneTimeInThePast(t *testing.T) {
	t.Parallel()
	for within, ok := range map[time.Duration]bool{0: false, 59 * time.Minute: false, 61 * time.Minute: true} {
		got, err := spec.Parse(&core.Schedule{ID: id, Spec: "at 2026-11-30T11:00:00Z", CatchUpWithin: within}, now)
		if (err == nil) != ok {
			t.Errorf("an hour ago, within %s: %v", within, err)
		}
		if ok && !got.Next(now.Add(-2*time.Hour)).Equal(at("2026-11-30T11:00:00Z")) {
			t.Errorf("its slot is %s", got.Next(now.Add(-2*time.Hour)))
		}
	}
}

// TestNeverFires: what only ever falls into a skipped gap is refused.
func TestNeverFires(t *testing.T) {
	t.Parallel()
	s := &core.Schedule{ID: id, Spec: "30 2 * 3 0L", TimeZone: "Europe/Berlin"} // the day clocks go forward
	if _, err := spec.Parse(s, at("2027-05-01T00:00:00Z")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, now, field string }{
		{"30 2 ? 3 0L", "2027-05-01T00:00:00Z", "dst_gap"},
		{"0 12 1 1 *", "9998-05-01T00:00:00Z", "spec"}, // not the policy's fault
		{"every 400d", "9998-12-31T00:00:00Z", "spec"},
	} {
		s.Spec, s.DSTGap = c.text, core.DSTGapSkip
		_, err := spec.Parse(s, at(c.now))
		var ce *core.Error
		if !errors.As(err, &ce) || ce.Field != c.field {
			t.Errorf("%s at %s never fires: %v, want a fault of %s", c.text, c.now, err, c.field)
		}
	}
}

func TestDST(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		gap     core.DSTGap
		overlap core.DSTOverlap
		want    spec.DST
	}{
		{"30 2 * * *", "", "", spec.DST{Gap: "run_after", Overlap: "first", Reason: "fixed: neither the minute nor the hour field begins with a star, so it follows the wall clock"}},
		{"*/5 * * * *", "", "", spec.DST{Gap: "skip", Overlap: "both", Reason: "wildcard: the minute or the hour field begins with a star, so it follows real time"}},
		{"30 2 * * *", "skip", "both", spec.DST{Gap: "skip", Overlap: "both", Reason: "set for this schedule"}},
		{"every 5m", "run_after", "first", spec.DST{Gap: "skip", Overlap: "both", Reason: "elapsed time: clock changes do not touch it"}},
		{"at 2027-01-05T09:00", "", "", spec.DST{Gap: "run_after", Overlap: "first", Reason: "one wall time: in a gap it runs right after it, in a repeated hour the first time"}},
		{"at 2027-01-05T09:00:00Z", "skip", "both", spec.DST{Gap: "run_after", Overlap: "first", Reason: "an instant: clock changes do not touch it, and neither policy applies"}},
		{"in 3d", "skip", "both", spec.DST{Gap: "run_after", Overlap: "first", Reason: "an instant: clock changes do not touch it, and neither policy applies"}},
		{"at 2027-01-05T09:00", "skip", "", spec.DST{Gap: "skip", Overlap: "first", Reason: "set for this schedule"}},
	} {
		got, err := spec.Parse(&core.Schedule{ID: id, Spec: c.text, DSTGap: c.gap, DSTOverlap: c.overlap}, now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got.DST); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}

func TestDayHints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"every 1 day": `"0 9 * * *"`, "every 24h": `"0 9 * * *"`, "every P1W": `"0 9 * * MON"`, "every 3d": `"0 9 */3 * *"`, "every 90m": "", "every 36h": "",
	} {
		got, err := parse(text, "")
		if err != nil || !strings.Contains(got.Hint, want) || (want == "") != (got.Hint == "") {
			t.Errorf("%s: %q, %v", text, got.Hint, err)
		}
	}
}

// TestBugH30: who wrote * 0 * * * and meant once a day is told of the 60 runs.
func TestBugH30(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"* 0 * * *":    `every minute of the hour, 60 runs in each; "0 0 * * *" runs once in each`,
		"* 9-17 * * 1": `every minute of the hour, 60 runs in each; "0 9-17 * * 1" runs once in each`,
		"* 5 0 * * *":  `every second of the minute, 60 runs in each; "0 5 0 * * *" runs once in each`,
		"0 * 3 * * *":  `every minute of the hour, 60 runs in each; "0 0 3 * * *" runs once in each`,
		"* * * * *":    "",
		"* */2 * * *":  "",
		"*/5 0 * * *":  "",
		"0 0 * * *":    "",
		"* * * * * *":  "",
		"@daily":       "",
		"0 0 1 1 * ":   "",
	} {
		got, err := parse(text, "")
		if diff := cmp.Diff(want, got.Hint); diff != "" || err != nil {
			t.Errorf("%s: %v%s", text, err, diff)
		}
	}
	slots, err := parse("* 0 * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	day, fires := time.Date(2021, 8, 4, 0, 0, 0, 0, time.UTC), []time.Time{}
	for at := slots.Next(day.Add(-time.Second)); at.Before(day.AddDate(0, 0, 1)); at = slots.Next(at) {
		fires = append(fires, at)
	}
	if len(fires) != 60 || !fires[0].Equal(day) || !fires[59].Equal(day.Add(59*time.Minute)) {
		t.Errorf("%d slots of that day: %v", len(fires), fires)
	}
}

// TestIntervals: an interval never drifts and has no memory.
func TestIntervals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		every := time.Duration(rapid.Int64Range(1, 40*24*3600).Draw(t, "every")) * time.Second
		anchor := time.Time{}
		if rapid.Bool().Draw(t, "anchored") {
			anchor = time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "anchor"), 0).UTC()
		}
		s, err := spec.Parse(&core.Schedule{ID: id, Spec: "every " + core.FormatDuration(every), Anchor: anchor}, now)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "from"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		next := s.Next(from)
		if !next.After(from) || next.Sub(from) > every {
			t.Fatalf("the slot after %s is %s", from, next)
		}
		if !anchor.IsZero() && next.Sub(anchor)%every != 0 {
			t.Fatalf("%s is no multiple of %s after the anchor %s", next, every, anchor)
		}
		if got := s.Next(next); got.Sub(next) != every {
			t.Fatalf("from %s to %s", next, got)
		}
		if got := s.Prev(next.Add(1)); !got.Equal(next) {
			t.Fatalf("Prev(Next+1ns) is %s, want %s", got, next)
		}
		if got := s.Prev(next); next.Sub(got) != every {
			t.Fatalf("Prev(%s) is %s", next, got)
		}
	})
}

func TestOneTime(t *testing.T) {
	t.Parallel()
	s, err := parse("in 1h", "")
	if err != nil || !s.OneTime {
		t.Fatal(s, err)
	}
	slot := s.Next(now)
	if !s.Next(slot).IsZero() || !s.Prev(slot).IsZero() || !s.Prev(slot.Add(1)).Equal(slot) {
		t.Error("a one-time spec has more than its slot")
	}
}
