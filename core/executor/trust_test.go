package executor

import (
	"testing"
	"time"
)

// What has elapsed is the larger of what the monotonic and the wall clock say:
// the monotonic one stands still while a virtual machine is frozen, the wall
// clock can be set back (H24). No test from outside can part the two.
func TestH24LeftByTheClockThatIsFurtherOn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		mono, wall time.Duration // from now until the end of trust
		want       time.Duration
	}{
		"both agree":                      {10 * time.Second, 10 * time.Second, 10 * time.Second},
		"frozen: the wall clock went on":  {28 * time.Second, -time.Hour, -time.Hour},
		"the wall clock was set back":     {-time.Second, time.Hour, -time.Second},
		"frozen for less than the lease":  {28 * time.Second, 3 * time.Second, 3 * time.Second},
		"the wall clock was set far back": {5 * time.Second, 24 * time.Hour, 5 * time.Second},
		"at the very end":                 {0, 0, 0},
	} {
		end := instant{mono: now.Add(tt.mono), wall: now.Round(0).Add(tt.wall)}
		if got := end.left(now); got != tt.want {
			t.Errorf("%s: %s left, want %s", name, got, tt.want)
		}
	}
}

// The wall part must have lost its monotonic reading, or both would be one clock.
func TestInstantHoldsBothClocks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	i := at(now).add(time.Minute)
	if i.mono == i.mono.Round(0) {
		t.Error("the monotonic part has no monotonic reading")
	}
	if i.wall != i.wall.Round(0) {
		t.Error("the wall part has a monotonic reading")
	}
	if got := i.left(now); got != time.Minute {
		t.Errorf("%s left, want a minute", got)
	}
}

// A lease is trusted from when it was asked for, less a margin of a second or a
// quarter of a short lease.
func TestTrustUntil(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	for lease, want := range map[time.Duration]time.Duration{
		30 * time.Second: 29 * time.Second,
		4 * time.Second:  3 * time.Second,
		2 * time.Second:  1500 * time.Millisecond,
	} {
		e := &Executor{c: Config{Lease: lease}}
		if got := e.trustUntil(sent).left(sent); got != want {
			t.Errorf("a lease of %s is trusted for %s, want %s", lease, got, want)
		}
	}
}
