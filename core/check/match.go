package check

import (
	"slices"
	"time"
)

// window is when something has to happen, both ends included.
type window struct{ open, close time.Time }

// unmatched pairs windows with times, each at most once, and returns the windows that
// find none. It takes times in their order and gives each to the open window that
// closes first, which leaves as few as there can be: windows on a line are convex
// (Glover 1967).
func unmatched(windows []window, times []time.Time) []window {
	rest := slices.Clone(windows)
	slices.SortFunc(rest, func(a, b window) int { return a.open.Compare(b.open) })
	var open, missed []window
	for _, t := range sorted(times) {
		for len(rest) > 0 && !rest[0].open.After(t) {
			open, rest = append(open, rest[0]), rest[1:]
		}
		slices.SortFunc(open, func(a, b window) int { return a.close.Compare(b.close) })
		for len(open) > 0 && open[0].close.Before(t) {
			missed, open = append(missed, open[0]), open[1:]
		}
		if len(open) > 0 {
			open = open[1:]
		}
	}
	return append(append(missed, open...), rest...)
}
