package spec_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// maxDescription is far above what the longest spec takes.
const maxDescription = 4000

// FuzzSpec: whatever is written, it is refused in words or loads back with the
// same slots, has a description of bounded length, and explains its slots.
func FuzzSpec(f *testing.F) {
	file, err := os.Open("../cron/testdata/vectors.jsonl.gz")
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	text, err := gzip.NewReader(file)
	if err != nil {
		f.Fatal(err)
	}
	lines := bufio.NewScanner(text)
	for n := 0; lines.Scan(); n++ {
		var v struct{ Spec, TZ string }
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			f.Fatal(err)
		}
		if n%50 == 0 {
			f.Add(v.Spec, v.TZ, int64(1_790_000_000+n*86_400), uint8(n))
		}
	}
	for _, text := range []string{"every 90m", "in 3d", "at 2027-10-31T02:30", "at 2027-03-28T02:30", "at 2027-01-05T09:00:00+05:30", "@daily", "H H * * *"} {
		f.Add(text, "Europe/Berlin", int64(1_790_000_000), uint8(0))
	}
	f.Fuzz(func(t *testing.T, text, zone string, unix int64, policies uint8) {
		now := time.Unix(unix%100_000_000_000, 0).UTC()
		s := core.Schedule{
			ID: id, Spec: text, TimeZone: zone,
			DSTGap:     []core.DSTGap{"", core.DSTGapRunAfter, core.DSTGapSkip}[policies%3],
			DSTOverlap: []core.DSTOverlap{"", core.DSTOverlapFirst, core.DSTOverlapBoth}[policies/3%3],
		}
		parsed, err := spec.Parse(&s, now)
		if err != nil {
			if err.Error() == "" {
				t.Fatalf("%q is refused without a word", text)
			}
			return
		}
		s.Spec, s.TimeZone, s.Anchor = parsed.Text, parsed.Zone, parsed.Anchor
		loaded, err := spec.Load(&s)
		if err != nil || loaded.Text != parsed.Text {
			t.Fatalf("%q is stored as %q, which loads as %q: %v", text, parsed.Text, loaded.Text, err)
		}
		if got := loaded.Describe(); got == "" || len(got) > maxDescription {
			t.Fatalf("%q is described in %d bytes", text, len(got))
		}
		at := now
		for range 3 {
			next := loaded.Next(at)
			if !next.Equal(parsed.Next(at)) {
				t.Fatalf("%q and %q differ after %s", text, parsed.Text, at)
			}
			if next.IsZero() {
				return
			}
			if got := loaded.Explain(next); len(got) > maxDescription {
				t.Fatalf("%q explains %s in %d bytes", text, next, len(got))
			}
			at = next
		}
	})
}
