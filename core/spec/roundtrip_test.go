package spec_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// TestStoredSpecsLoadBack: what Parse accepted loads with the same slots, for
// every kind of spec, zone and policy.
func TestStoredSpecsLoadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(1_700_000_000, 2_000_000_000).Draw(t, "now"), 0).UTC()
		s := core.Schedule{
			ID: id,
			Spec: rapid.SampledFrom([]string{
				"*/5 * * * *", "30 2 * * *", "H H * * *", "0 0 L * *", "0 30 1 * * 1-5", "@hourly", "@daily", "every 90m", "every 1 day", "P3D",
				"every P1DT1H", "in 3d", "in 90s", "at 2034-03-26T02:30", "at 2034-10-29T02:30", "at 2033-11-06T01:30:15", "CRON_TZ=Asia/Tokyo 0 9 * * *",
			}).Draw(t, "spec"),
			TimeZone:   rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}).Draw(t, "zone"),
			DSTGap:     rapid.SampledFrom([]core.DSTGap{"", core.DSTGapRunAfter, core.DSTGapSkip}).Draw(t, "gap"),
			DSTOverlap: rapid.SampledFrom([]core.DSTOverlap{"", core.DSTOverlapFirst, core.DSTOverlapBoth}).Draw(t, "overlap"),
		}
		parsed, err := spec.Parse(&s, now)
		if err != nil {
			t.Skip(err)
		}
		s.Spec, s.Anchor, s.TimeZone = parsed.Text, parsed.Anchor, parsed.Zone
		loaded, err := spec.Load(&s)
		if err != nil {
			t.Fatalf("%q does not load: %v", parsed.Text, err)
		}
		if loaded.Text != parsed.Text {
			t.Fatalf("%q loads as %q", parsed.Text, loaded.Text)
		}
		want, got := now, now
		for range 5 {
			if want, got = parsed.Next(want), loaded.Next(got); !want.Equal(got) {
				t.Fatalf("%q: parsed comes at %s, loaded at %s", parsed.Text, want, got)
			}
			if want.IsZero() {
				break
			}
			if p := loaded.Prev(want.Add(1)); !p.Equal(want) {
				t.Fatalf("%q: Prev(Next+1ns) is %s, want %s", parsed.Text, p, want)
			}
			_, _ = loaded.Explain(want), loaded.Describe()
		}
	})
}
