package cron

// GapPolicy says what happens to slots in wall time that a clock change skips.
// The zero value leaves the choice to the spec.
type GapPolicy int

// The gap policies. Jumps of more than three hours are not gaps but
// corrections, and no policy applies to them.
const (
	// GapAuto is GapRunAfter for a fixed spec and GapSkip for a wildcard one.
	GapAuto GapPolicy = iota
	// GapRunAfter fires once, right after the gap, if anything in it matched.
	GapRunAfter
	// GapSkip drops what the gap swallowed: the day has one slot less, and nothing
	// makes up for it.
	GapSkip
)

// String returns auto, run_after or skip, the words of the API, or unknown for
// a value that is none of the constants.
func (p GapPolicy) String() string {
	switch p {
	case GapAuto:
		return "auto"
	case GapRunAfter:
		return "run_after"
	case GapSkip:
		return "skip"
	}
	return "unknown"
}

// OverlapPolicy says whether slots fire again in wall time that a clock change
// repeats. The zero value leaves the choice to the spec.
type OverlapPolicy int

// The overlap policies. Jumps of more than three hours are not overlaps but
// corrections, and no policy applies to them.
const (
	// OverlapAuto is OverlapFirst for a fixed spec and OverlapBoth for a wildcard
	// one.
	OverlapAuto OverlapPolicy = iota
	// OverlapFirst fires in the first pass only, so that a daily job stays daily.
	OverlapFirst
	// OverlapBoth fires in both passes, so that a job keeps its pace in real time.
	OverlapBoth
)

// String returns auto, first or both, the words of the API, or unknown for a
// value that is none of the constants.
func (p OverlapPolicy) String() string {
	switch p {
	case OverlapAuto:
		return "auto"
	case OverlapFirst:
		return "first"
	case OverlapBoth:
		return "both"
	}
	return "unknown"
}

// resolve replaces auto by what the convention says for the kind of spec.
func resolve(gap GapPolicy, overlap OverlapPolicy, wildcard bool) (GapPolicy, OverlapPolicy, string) {
	why := "set for this schedule"
	if gap == GapAuto || overlap == OverlapAuto {
		why = "fixed: neither the minute nor the hour field begins with a star, so it follows the wall clock"
		if wildcard {
			why = "wildcard: the minute or the hour field begins with a star, so it follows real time"
		}
	}
	if gap == GapAuto {
		gap = GapRunAfter
		if wildcard {
			gap = GapSkip
		}
	}
	if overlap == OverlapAuto {
		overlap = OverlapFirst
		if wildcard {
			overlap = OverlapBoth
		}
	}
	return gap, overlap, why
}
