package cron_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core/cron"
)

func addSpecs(f *testing.F) {
	f.Helper()
	for _, spec := range append(robfigSpecs(),
		"0 0 L-3,LW,15W * 5L,1#2", "H H(9-17)/2 H * H", "@every 90s", "TZ=UTC 0 0 * * *", "TZ=", "CRON_TZ=UTC ",
		"0 0 31 2 *", "5-1 * * * *", "0 0 * * sat-sun", "\x00", "0 0 */30 2 5#2", "*/0 * * * *", "H( * * * *") {
		f.Add(spec, int64(1_772_953_200), uint16(7))
	}
}

// FuzzParse sees to it that a spec is either refused in full words or good for
// an answer, and that its spelling means the same again.
func FuzzParse(f *testing.F) {
	addSpecs(f)
	f.Fuzz(func(t *testing.T, spec string, unix int64, salt uint16) {
		e, err := cron.Parse(spec, cron.Options{Salt: uint64(salt)})
		if err != nil {
			var refusal *cron.ParseError
			if !errors.As(err, &refusal) {
				t.Fatalf("Parse(%q): %T", spec, err)
			}
			if refusal.Field == "" || refusal.Reason == "" || refusal.Hint == "" || len(refusal.Token) > 40 ||
				refusal.Position < 1 || refusal.Position > max(len(spec), 1)+1 {
				t.Fatalf("Parse(%q): %+v", spec, refusal)
			}
			return
		}
		again, err := cron.Parse(e.String(), cron.Options{Salt: uint64(salt)})
		if err != nil {
			t.Fatalf("Parse(%q) reads as %q: %v", spec, e, err)
		}
		at := time.Unix(unix, 0)
		if a, b := e.Next(at), again.Next(at); !a.Equal(b) {
			t.Fatalf("Parse(%q): %s, but %q: %s", spec, a, e, b)
		}
		if at = time.Unix(unix%200_000_000_000, 0); at.Year() > 0 && at.Year() < 9900 && e.Next(at).IsZero() {
			t.Fatalf("%q has no slot after %s", spec, at.UTC())
		}
	})
}

// FuzzNext walks forward in any zone.
func FuzzNext(f *testing.F) {
	addSpecs(f)
	zones := zoneNames(f)
	f.Fuzz(func(t *testing.T, spec string, unix int64, index uint16) {
		loc := zone(t, zones[int(index)%len(zones)])
		e, err := cron.Parse(spec, cron.Options{Location: loc, Gap: cron.GapPolicy(index % 3), Overlap: cron.OverlapPolicy(index / 3 % 3)})
		if err != nil || strings.HasPrefix(e.String(), "@every") {
			return
		}
		at := time.Unix(unix, int64(index))
		for range 5 {
			checkLaws(t, e, at)
			next := e.Next(at)
			if next.IsZero() {
				return
			}
			at = next
		}
	})
}

// FuzzRobfig compares both libraries on what robfig takes.
func FuzzRobfig(f *testing.F) {
	addSpecs(f)
	f.Fuzz(func(t *testing.T, spec string, unix int64, _ uint16) {
		compareWithRobfig(t, spec, time.Unix(unix%10_000_000_000, 0).UTC())
	})
}
