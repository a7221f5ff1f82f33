package cron_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/core/cron"
)

// checkLaws holds an expression against the laws of Next and Prev from one time
// on.
func checkLaws(t rapid.TB, e *cron.Expression, at time.Time) {
	next := e.Next(at)
	if next.IsZero() {
		return
	}
	if !next.After(at) || next.Nanosecond() != 0 {
		t.Fatalf("%s: Next(%s) = %s", e, at, next)
	}
	if !e.Belongs(next) {
		t.Fatalf("%s: Next(%s) = %s does not belong", e, at, next)
	}
	if got := e.Prev(next.Add(1)); !got.Equal(next) {
		t.Fatalf("%s: Prev(%s + 1ns) = %s", e, next, got)
	}
	if prev := e.Prev(next); prev.After(at) {
		t.Fatalf("%s: Next(%s) = %s passes over %s", e, at, next, prev)
	} else if !prev.IsZero() && !e.Next(prev).Equal(next) {
		t.Fatalf("%s: %s comes between %s and %s", e, e.Next(prev), prev, next)
	}
	middle := at.Add(next.Sub(at) / 2)
	if got := e.Next(middle); !got.Equal(next) {
		t.Fatalf("%s: Next(%s) = %s, but Next(%s) = %s", e, at, next, middle, got)
	}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	zones := zoneNames(t)
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		loc, err := cron.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		e, err := cron.Parse(randomSpec(r), cron.Options{Location: loc, Gap: cron.GapPolicy(r.IntN(3)), Overlap: cron.OverlapPolicy(r.IntN(3))})
		if err != nil {
			return
		}
		near := randomChange(r, loc).Add(time.Duration(r.Int64N(int64(48*time.Hour))) - 24*time.Hour)
		far := time.Unix(r.Int64N(250_000_000_000)-50_000_000_000, r.Int64N(1e9))
		for _, at := range []time.Time{near, near.Truncate(time.Hour), far} {
			for range 3 {
				checkLaws(t, e, at)
				at = e.Next(at)
			}
		}
	})
}

// TestAllocations is not parallel, as counting requires.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	for _, spec := range []string{"* * * * *", "30 2 * * *", "0 0 LW,15W * 5L,1#1", "0 0 29 2 */7", "@every 90s"} {
		e := mustParse(t, spec, cron.Options{Location: zone(t, "America/New_York")})
		at := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
		if n := testing.AllocsPerRun(20, func() { e.Prev(e.Next(at)) }); n != 0 {
			t.Errorf("%q: %v allocations", spec, n)
		}
	}
}

// TestBoundedTime gives the dearest searches a limit that only a search without
// a bound exceeds.
func TestBoundedTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, zone string }{
		{"30 2 * 3 0#2", "America/New_York"},
		{"0 0 29 2 */7", "Africa/Casablanca"},
		{"0 0 */30 2-3,5,8-12 5#5", "Europe/London"},
		{"59 59 23 31 12 */7", "Pacific/Apia"},
	} {
		e := mustParse(t, c.spec, cron.Options{Location: zone(t, c.zone), Gap: cron.GapSkip})
		fastest := time.Hour
		for range 20 {
			start := time.Now()
			e.Next(time.Date(2088, 3, 1, 0, 0, 0, 0, time.UTC))
			e.Prev(time.Date(2128, 2, 28, 0, 0, 0, 0, time.UTC))
			fastest = min(fastest, time.Since(start))
		}
		if fastest > 20*time.Millisecond {
			t.Errorf("%q in %s takes %s", c.spec, c.zone, fastest)
		}
	}
}
