package spec_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, zone, norm, next string }{
		{"*/5 * * * *", "", "*/5 * * * *", "2026-11-30T12:05:00Z"},
		{"30 2 * * *", "Europe/Berlin", "30 2 * * *", "2026-12-01T01:30:00Z"},
		{"at 2027-01-05T09:00", "Europe/Berlin", "at 2027-01-05T08:00:00Z", "2027-01-05T08:00:00Z"},
		{"at 2027-01-05T09:00:07", "", "at 2027-01-05T09:00:07Z", "2027-01-05T09:00:07Z"},
		{"at 2027-01-05T09:00:00+05:30", "Europe/Berlin", "at 2027-01-05T03:30:00Z", "2027-01-05T03:30:00Z"},
		{"at 2027-03-28T02:30", "Europe/Berlin", "at 2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z"},       // in the gap: at its end
		{"at 2027-10-31T02:30", "Europe/Berlin", "at 2027-10-31T00:30:00Z", "2027-10-31T00:30:00Z"},       // twice: the first
		{"at 2027-10-03T02:15", "Australia/Lord_Howe", "at 2027-10-02T15:30:00Z", "2027-10-02T15:30:00Z"}, // half an hour's gap
		{"in 3d", "", "at 2026-12-03T12:00:01Z", "2026-12-03T12:00:01Z"},                                  // never early
		{"IN 90s", "", "at 2026-11-30T12:01:31Z", "2026-11-30T12:01:31Z"},
		{"@every 90s", "", "every 1m30s", ""},
	} {
		got, err := spec.Parse(c.text, c.zone, time.Time{}, now, id)
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
		back, err := spec.Load(got.Text, c.zone, got.Anchor, id)
		if err != nil || !back.Next(now).Equal(got.Next(now)) {
			t.Errorf("%s loads as %q: next %v, %v", c.text, back.Text, back.Next(now), err)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, zone, field string }{
		{"", "", "spec"}, {"every", "", "spec"}, {"every 0s", "", "spec"}, {"every 500ms", "", "spec"}, {"every 1.0005s", "", "spec"},
		{"at", "", "spec"}, {"at tomorrow", "", "spec"}, {"at 2020-01-05T09:00", "", "spec"}, {"at 2027-02-30T09:00", "", "spec"},
		{"at 9999-12-31T23:59", "", "spec"}, {"in", "", "spec"}, {"in -3d", "", "spec"}, {"in 0s", "", "spec"}, {"60 * * * *", "", "spec"},
		{"0 0 31 2 *", "", "spec"}, {strings.Repeat("*", 10_000), "", "spec"}, {"a\x00b", "", "spec"},
		{"* * * * *", "PST", "time_zone"}, {"* * * * *", "Local", "time_zone"}, {"* * * * *", "Mars/Olympus", "time_zone"},
	} {
		_, err := spec.Parse(c.text, c.zone, time.Time{}, now, id)
		var ce *core.Error
		if !errors.As(err, &ce) || ce.Code != core.CodeInvalid || ce.Field != c.field {
			t.Errorf("%.40q in %q: %v, want an invalid %s", c.text, c.zone, err, c.field)
		}
	}
	if _, err := spec.Parse("* * * * *", "", now, now, id); err == nil {
		t.Error("cron with an anchor was accepted")
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
		s, err := spec.Parse("every "+core.FormatDuration(every), "", anchor, now, id)
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
	s, err := spec.Parse("in 1h", "", time.Time{}, now, id)
	if err != nil || !s.OneTime {
		t.Fatal(s, err)
	}
	slot := s.Next(now)
	if !s.Next(slot).IsZero() || !s.Prev(slot).IsZero() || !s.Prev(slot.Add(1)).Equal(slot) {
		t.Error("a one-time spec has more than its slot")
	}
}
