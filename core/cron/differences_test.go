package cron_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	robfig "github.com/robfig/cron/v3"

	"github.com/fencepost/fencepost/core/cron"
)

// difference is a row of the README's table: what comes next after a time, here
// and in robfig/cron.
var difference = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\S+) \\| (\\d{4}-\\S+Z) \\| (\\S+) \\| (\\S+) \\|")

// TestDifferencesInTheREADME: users who come from robfig/cron can rely on the
// table.
func TestDifferencesInTheREADME(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := difference.FindAllStringSubmatch(string(readme), -1)
	if len(rows) < 8 {
		t.Fatalf("found only %d rows of the table", len(rows))
	}
	for _, row := range rows {
		spec, zone, ours, theirs := row[1], row[2], row[4], row[5]
		loc, err := cron.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		after, err := time.Parse(time.RFC3339, row[3])
		if err != nil {
			t.Fatal(err)
		}
		e, err := cron.Parse(spec, cron.Options{Location: loc})
		if got := answer(e, err, after); got != ours {
			t.Errorf("%s in %s after %s: %s here, the table says %s", spec, zone, row[3], got, ours)
		}
		r, err := robfig.ParseStandard(spec)
		if got := answer(r, err, after.In(loc)); got != theirs {
			t.Errorf("%s in %s after %s: %s in robfig/cron, the table says %s", spec, zone, row[3], got, theirs)
		}
		if ours == theirs {
			t.Errorf("%s is no difference", spec)
		}
	}
}

// answer is what the table has for a schedule or its refusal.
func answer(s robfig.Schedule, err error, after time.Time) string {
	if err != nil {
		return "refused"
	}
	next := s.Next(after)
	if next.IsZero() {
		return "never"
	}
	return next.UTC().Format(time.RFC3339)
}
