package check

import "time"

// What the tests look at from within.
var (
	SlotsOf   = slotsOf
	Unmatched = func(windows [][2]time.Time, times []time.Time) int {
		var all []window
		for _, w := range windows {
			all = append(all, window{w[0], w[1]})
		}
		return len(unmatched(all, times))
	}
)
