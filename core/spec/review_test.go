package spec_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// TestPrefixIsNoField: a zone in front of a spec does not make it Quartz's.
func TestPrefixIsNoField(t *testing.T) {
	t.Parallel()
	from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"CRON_TZ=Europe/Berlin 0 30 2 * * *": "2027-01-01T01:30:00Z",
		"CRON_TZ=Europe/Berlin 30 2 ? * MON": "2027-01-04T01:30:00Z",
		"TZ=UTC 30 2 * * ?":                  "2027-01-01T02:30:00Z",
		"TZ=UTC 15 30 2 * * ?":               "2027-01-01T02:30:15Z",
	} {
		got, err := spec.Parse(&core.Schedule{ID: id, Spec: text}, from)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if next := got.Next(from).UTC().Format(time.RFC3339); next != want {
			t.Errorf("%s comes at %s, want %s", text, next, want)
		}
	}
}

// TestIntervalsEndBeforeTheSentinel: no slot is a time that timers read as never.
func TestIntervalsEndBeforeTheSentinel(t *testing.T) {
	t.Parallel()
	got, err := spec.Parse(&core.Schedule{ID: id, Spec: "every 14600d"}, now)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for at := got.Next(now); !at.IsZero(); at = got.Next(at) {
		if n++; n > 1000 || !at.Before(core.Forever) {
			t.Fatalf("slot %d is at %s", n, at)
		}
	}
}

// TestTwoInstantsAreOneWallTime: the stored form of a repeated hour is no way to
// write any two times.
func TestTwoInstantsAreOneWallTime(t *testing.T) {
	t.Parallel()
	s := core.Schedule{ID: id, Spec: "at 2030-01-01T00:00:00Z and 2031-01-01T00:00:00Z"}
	if got, err := spec.Parse(&s, now); err == nil {
		t.Errorf("two times were taken: %s", got.Text)
	}
}
