package cron_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/cron"
)

// refusal is a spec and how it is refused, but for the wording.
type refusal struct {
	spec   string
	want   cron.ParseError
	remedy string // what the hint must hold
}

func checkRefusals(t *testing.T, refusals []refusal) {
	t.Helper()
	for _, c := range refusals {
		e, err := cron.Parse(c.spec, cron.Options{})
		var got *cron.ParseError
		if !errors.As(err, &got) {
			t.Errorf("Parse(%.60q) = %v, %v; want a refusal", c.spec, e, err)
			continue
		}
		if !strings.Contains(got.Hint, c.remedy) {
			t.Errorf("Parse(%.60q): hint %q does not hold %q", c.spec, got.Hint, c.remedy)
		}
		for _, part := range []string{got.Field, got.Reason, got.Hint} {
			if part == "" || !strings.Contains(err.Error(), part) {
				t.Errorf("Parse(%.60q): %q lacks %q", c.spec, err, part)
			}
		}
		c.want.Reason, c.want.Hint = got.Reason, got.Hint
		if diff := cmp.Diff(c.want, *got); diff != "" {
			t.Errorf("Parse(%.60q) (-want +got)\n%s", c.spec, diff)
		}
	}
}

func TestRefusedShapes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1,", 5000)
	checkRefusals(t, []refusal{
		{"0 9 * *", cron.ParseError{Field: "expression", Token: "0 9 * *", Position: 1}, "30 2 * * *"},
		{"0 0 9 * * ? 2026", cron.ParseError{Field: "expression", Token: "0 0 9 * * ? 2026", Position: 1}, "years"},
		{"", cron.ParseError{Field: "expression", Position: 1}, "30 2 * * *"},
		{" \t ", cron.ParseError{Field: "expression", Token: " \t ", Position: 1}, "30 2 * * *"},
		{"0 0 * * 🕑", cron.ParseError{Field: "day of week", Token: "🕑", Position: 9}, "digits"},
		{"0 \x00 * * *", cron.ParseError{Field: "hour", Token: "\x00", Position: 3}, "digits"},
		{"0 0 * *\n*", cron.ParseError{Field: "expression", Token: "\n", Position: 8}, "blanks"},
		{"0 0 12 9 *\u00a0", cron.ParseError{Field: "day of week", Token: "\u00a0", Position: 11}, "blanks"},
		{"\uff10 0 * * *", cron.ParseError{Field: "minute", Token: "\uff10", Position: 1}, "digits"},
		{long, cron.ParseError{Field: "expression", Token: long[:40], Position: 1}, "256"},
	})
}

func TestRefusedValues(t *testing.T) {
	t.Parallel()
	checkRefusals(t, []refusal{
		{"0 0 * * 8", cron.ParseError{Field: "day of week", Token: "8", Position: 9}, "0 to 7"},
		{"60 0 * * *", cron.ParseError{Field: "minute", Token: "60", Position: 1}, "0 to 59"},
		{"60 0 0 * * *", cron.ParseError{Field: "second", Token: "60", Position: 1}, "0 to 59"},
		{"0 24 * * *", cron.ParseError{Field: "hour", Token: "24", Position: 3}, "0 to 23"},
		{"0 0 0 * *", cron.ParseError{Field: "day of month", Token: "0", Position: 5}, "1 to 31"},
		{"0 0 1 1,13 *", cron.ParseError{Field: "month", Token: "13", Position: 9}, "1 to 12"},
		{"0 99999999999999999999 * * *", cron.ParseError{Field: "hour", Token: "99999999999999999999", Position: 3}, "0 to 23"},
		{"*/0 * * * *", cron.ParseError{Field: "minute", Token: "*/0", Position: 1}, "*/15"},
		{"0 */ * * *", cron.ParseError{Field: "hour", Token: "*/", Position: 3}, "*/15"},
		{"0 0-6/2/2 * * *", cron.ParseError{Field: "hour", Token: "0-6/2/2", Position: 3}, "*/15"},
		{"5-1 * * * *", cron.ParseError{Field: "minute", Token: "5-1", Position: 1}, "5-59,0-1"},
		{"0 0 * *  fri-mon", cron.ParseError{Field: "day of week", Token: "fri-mon", Position: 10}, "5-6,0-1"},
		{"0 0 * dec-jan *", cron.ParseError{Field: "month", Token: "dec-jan", Position: 7}, "split it: 12,1"},
		{"0 0 31 2 *", cron.ParseError{Field: "day of month", Token: "31", Position: 5}, "a day that"},
		{"0 0 */30 2 5#2", cron.ParseError{Field: "day of month", Token: "*/30", Position: 5}, "a day that"},
		{"0 0 * * MONDAY", cron.ParseError{Field: "day of week", Token: "MONDAY", Position: 9}, "MON"},
		{"0 0 * january *", cron.ParseError{Field: "month", Token: "january", Position: 7}, "JAN"},
		{"0 0 * * UNM", cron.ParseError{Field: "day of week", Token: "UNM", Position: 9}, "SUN"},
		{"*-5 * * * *", cron.ParseError{Field: "minute", Token: "*", Position: 1}, "0 to 59"},
		{"1--5 * * * *", cron.ParseError{Field: "minute", Token: "-5", Position: 3}, "0 to 59"},
		{"-5 * * * *", cron.ParseError{Field: "minute", Token: "-5", Position: 1}, "0 to 59"},
		{", * * * *", cron.ParseError{Field: "minute", Token: ",", Position: 1}, "0 to 59"},
	})
}

func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	checkRefusals(t, []refusal{
		{"0 0 * * L", cron.ParseError{Field: "day of week", Token: "L", Position: 9}, "day of month"},
		{"0 0 * * 8L", cron.ParseError{Field: "day of week", Token: "8", Position: 9}, "0 to 7"},
		{"0 0 * * 5#6", cron.ParseError{Field: "day of week", Token: "5#6", Position: 9}, "5#5"},
		{"0 0 * * #2", cron.ParseError{Field: "day of week", Token: "#2", Position: 9}, "0 to 7"},
		{"0 0 L-31 * *", cron.ParseError{Field: "day of month", Token: "L-31", Position: 5}, "L-30"},
		{"0 0 32W * *", cron.ParseError{Field: "day of month", Token: "32W", Position: 5}, "LW"},
		{"0 0 L/2 * *", cron.ParseError{Field: "day of month", Token: "L/2", Position: 5}, "L-3"},
		{"0 L * * *", cron.ParseError{Field: "hour", Token: "L", Position: 3}, "0 to 23"},
		{"H(5) * * * *", cron.ParseError{Field: "minute", Token: "H(5)", Position: 1}, "H(0-59)"},
		{"H(0,5) * * * *", cron.ParseError{Field: "minute", Token: "H(0", Position: 1}, "H(0-29)"},
		{"H(9-5) * * * *", cron.ParseError{Field: "minute", Token: "9-5", Position: 3}, "split"},
		{"H/0 * * * *", cron.ParseError{Field: "minute", Token: "H/0", Position: 1}, "*/15"},
	})
}

func TestRefusedMacrosAndZones(t *testing.T) {
	t.Parallel()
	checkRefusals(t, []refusal{
		{"@fortnightly", cron.ParseError{Field: "expression", Token: "@fortnightly", Position: 1}, "@weekly"},
		{"@reboot", cron.ParseError{Field: "expression", Token: "@reboot", Position: 1}, "@daily"},
		{"@daily 5", cron.ParseError{Field: "expression", Token: "5", Position: 8}, "alone"},
		{"@every", cron.ParseError{Field: "expression", Token: "@every", Position: 1}, "90s"},
		{"@every 5", cron.ParseError{Field: "expression", Token: "5", Position: 8}, "90s"},
		{"@every -5s", cron.ParseError{Field: "expression", Token: "-5s", Position: 8}, "90s"},
		{"CRON_TZ=Mars/Olympus 0 9 * * *", cron.ParseError{Field: "zone", Token: "Mars/Olympus", Position: 9}, "Europe/Berlin"},
		{"TZ=Local 0 9 * * *", cron.ParseError{Field: "zone", Token: "Local", Position: 4}, "host"},
		{" TZ=Asia/Tokyo 0 9 * * *", cron.ParseError{Field: "zone", Token: "Asia/Tokyo", Position: 5}, "Asia/Tokyo"},
		{"TZ=UTC", cron.ParseError{Field: "expression", Token: "TZ=UTC", Position: 1}, "30 2 * * *"},
	})
}

// TestSpellings holds specs that must mean the same.
func TestSpellings(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ spec, same string }{
		{"0 0 * * 7", "0 0 * * 0"},
		{"0 0 * * sat-sun", "0 0 * * 0,6"},
		{"0 0 * * Sun-Sun", "0 0 * * 0"},
		{"0 0 * * sun-Tue", "0 0 * * 0-2"},
		{"0 0 * * 0-7", "0 0 * * 0-6"},
		{"0 0 * * 5-7/2", "0 0 * * 0,5"},
		{"0 0 * * 2/2", "0 0 * * 2,4,6"},
		{"0 0 * * 1/2", "0 0 * * 1,3,5"},
		{"0 0 * * 7/2", "0 0 * * 0"},
		{"0 0 * * friL", "0 0 * * 5l"},
		{"0 0 * * 7#1", "0 0 * * SUN#1"},
		{"0 0 31,L * *", "0 0 L * *"},
		{"0 0 1 */3 *", "0 0 1 jan,APR,7/3 *"},
		{"5/99 * * * *", "5 * * * *"},
		{"0-59/99999999999999999999 * * * *", "0 * * * *"},
		{"05,+5,,5 * * * *", "5 * * * *"},
		{"0 5 * * * *", "5 * * * *"},
		{"@weekly", "0 0 * * 0"},
		{"@Yearly", "0 0 1 1 *"},
		{"@midnight", "@daily"},
		{"CRON_TZ=UTC @hourly", "0 * * * *"},
		{"TZ= 0 9 * * *", "0 9 * * *"},
		{"0 0 ? * ?", "0 0 * * *"},
	} {
		got := slots(mustParse(t, c.spec, cron.Options{}), from, 20)
		want := slots(mustParse(t, c.same, cron.Options{}), from, 20)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q against %q (-want +got)\n%s", c.spec, c.same, diff)
		}
	}
}

func TestZonePrefix(t *testing.T) {
	t.Parallel()
	newYork := cron.Options{Location: zone(t, "America/New_York")}
	e := mustParse(t, "TZ=US/Eastern 0 9 * * *", newYork)
	want := []string{"2026-01-01T14:00:00Z"}
	if diff := cmp.Diff(want, slots(e, instant(t, "2026-01-01T00:00:00Z"), 1)); diff != "" {
		t.Errorf("a legacy name of the same zone (-want +got)\n%s", diff)
	}
	for _, c := range []struct {
		spec, zone, rest string
		found            bool
	}{
		{"CRON_TZ=Asia/Tokyo 0 9 * * *", "Asia/Tokyo", "0 9 * * *", true},
		{" TZ=\t @daily", "", "@daily", true},
		{"TZ=UTC", "UTC", "", true},
		{"0 9 * * *", "", "0 9 * * *", false},
		{"", "", "", false},
	} {
		zone, rest, found := cron.SplitZone(c.spec)
		if zone != c.zone || rest != c.rest || found != c.found {
			t.Errorf("SplitZone(%q) = %q, %q, %t", c.spec, zone, rest, found)
		}
	}
}
