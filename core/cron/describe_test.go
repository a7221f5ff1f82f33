package cron_test

import (
	"testing"

	"github.com/fencepost/fencepost/core/cron"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"30 2 * * *":             "at 02:30 every day",
		"15 30 2 * * *":          "at 02:30:15 every day",
		"*/15 9 * * *":           "at 09:00, 09:15, 09:30 and 09:45 every day",
		"59 23 * * *":            "at 23:59 every day",
		"59 59 23 * * *":         "at 23:59:59 every day",
		"* * * * *":              "every minute",
		"* * * * * *":            "every second",
		"*/30 * * * *":           "every 30 minutes",
		"*/10 * * * * *":         "every 10 seconds",
		"0 * * * *":              "at minute 0 of every hour",
		"*/25 * * * *":           "at minutes 0, 25 and 50 of every hour",
		"1-31 * * * *":           "at minutes 1 to 31 of every hour",
		"0 9-17 * * 1-5":         "at minute 0 of hours 9 to 17 on Monday to Friday",
		"0 */2 * * *":            "at minute 0 of every 2nd hour",
		"* 9-17 * * *":           "every minute of hours 9 to 17",
		"0,20,40 */5 * * * *":    "every 20 seconds of every 5th minute",
		"5 * 3 * * *":            "at second 5 of every minute of hour 3",
		"* 5 * * * *":            "every second of minute 5 of every hour",
		"@yearly":                "at 00:00 on the 1st of the month in January",
		"@weekly":                "at 00:00 on Sunday",
		"0 0 13 * 5":             "at 00:00 on the 13th of the month, and on Friday",
		"0 0 1,2,3,11,22,23 * *": "at 00:00 on the 1st to 3rd, 11th, 22nd and 23rd of the month",
		"0 0 */2 * 1,3":          "at 00:00 on every 2nd day from the 1st of the month if it is Monday or Wednesday",
		"0 0 */2,L * *":          "at 00:00 on every 2nd day from the 1st and the last day of the month",
		"0 0 15W,LW * 5#2":       "at 00:00 on the working day nearest to the 15th and the last working day of the month, and on the 2nd Friday",
		"0 0 * * 5L":             "at 00:00 on the last Friday",
		"0 0 L-3 2,6 *":          "at 00:00 on the 3rd day before the last of the month in February and June",
		"0 0 1-31 * 1":           "at 00:00 every day",
		"@every 90s":             "every 1m30s of elapsed time",
	} {
		e, err := cron.Parse(spec, cron.Options{})
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if got := e.Describe(); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// TestExplain: a clock change is told of at the slots it touched, and nowhere
// else.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec, zone, slot string
		options          cron.Options
		want             string
	}{
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", cron.Options{}, "clocks went from 02:00 to 03:00: runs now for 02:30, which did not exist"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-30T00:30:00Z", cron.Options{}, ""},
		{"30 2 * * *", "Europe/Berlin", "2026-03-30T00:30:00Z", cron.Options{Gap: cron.GapSkip}, "clocks went from 02:00 to 03:00: 02:30 did not exist and was skipped"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-31T00:30:00Z", cron.Options{Gap: cron.GapSkip}, ""},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", cron.Options{}, "02:30 comes twice: it runs the first time only"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", cron.Options{Overlap: cron.OverlapBoth}, "02:30 comes twice: this is the first time"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", cron.Options{Overlap: cron.OverlapBoth}, "02:30 comes twice: this is the second time"},
		{"30 4 * * *", "Europe/Berlin", "2026-10-25T03:30:00Z", cron.Options{}, ""},
		{"0 0 * * *", "America/Santiago", "2026-09-06T04:00:00Z", cron.Options{}, "clocks went from 00:00 to 01:00: runs now for 00:00, which did not exist"},
		{"*/30 * * * *", "Australia/Lord_Howe", "2026-10-03T15:30:00Z", cron.Options{}, "clocks went from 02:00 to 02:30: 02:00 did not exist and was skipped"},
		{"*/30 * * * *", "Australia/Lord_Howe", "2026-10-03T16:00:00Z", cron.Options{}, ""},
		{"*/30 * * * *", "Australia/Lord_Howe", "2026-04-04T14:30:00Z", cron.Options{}, "01:30 comes twice: this is the first time"},
		{"*/30 * * * *", "Australia/Lord_Howe", "2026-04-04T15:00:00Z", cron.Options{}, "01:30 comes twice: this is the second time"},
		{"0 0 * * *", "Pacific/Apia", "2011-12-30T10:00:00Z", cron.Options{}, ""}, // a correction of the calendar
		{"@every 1h", "Europe/Berlin", "2026-03-29T01:00:00Z", cron.Options{}, ""},
	} {
		c.options.Location = zone(t, c.zone)
		e, err := cron.Parse(c.spec, c.options)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Explain(instant(t, c.slot)); got != c.want {
			t.Errorf("%s in %s at %s: %q, want %q", c.spec, c.zone, c.slot, got, c.want)
		}
	}
}
