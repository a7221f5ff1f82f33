package cron

import (
	"math"
	"time"
)

// period is a stretch of Unix time, [start, end), in which a zone keeps one
// offset. All values are in seconds. Adjacent periods may have equal offsets.
type period struct {
	start, end int64
	offset     int64 // local minus UTC
	before     int64 // the offset of the period before, or offset
}

// isGap reports whether the clock went forward at the start.
func (p period) isGap() bool { return p.offset > p.before && p.offset-p.before <= maxJump }

// isOverlap reports whether the clock went back at the start.
func (p period) isOverlap() bool { return p.before > p.offset && p.before-p.offset <= maxJump }

// afterGap returns the first instant of the period whose wall clock shows a
// multiple of grain seconds; zones have changed in the middle of a minute.
func (p period) afterGap(grain int64) int64 {
	_, rest := floorDiv(p.start+p.offset, grain)
	if rest == 0 {
		return p.start
	}
	return p.start + grain - rest
}

// periodAt returns the period that holds unix. Its start and before are exact
// only if the clock changed less than maxJump before unix; nothing else
// depends on them.
func periodAt(loc *time.Location, unix int64) period {
	start, end, offset := bounds(loc, unix)
	p := period{start: start, end: end, offset: offset, before: offset}
	if start == math.MinInt64 {
		return p
	}
	p.start = unix - maxJump
	return p.trace(loc, unix)
}

// fullPeriodAt returns the period that holds unix with an exact start.
func fullPeriodAt(loc *time.Location, unix int64) period {
	start, end, offset := bounds(loc, unix)
	p := period{start: start, end: end, offset: offset, before: offset}
	if start == math.MinInt64 {
		return p
	}
	p.start--
	return p.trace(loc, unix)
}

// trace moves start forward to the last change up to unix. The end that the
// time package gives for an instant can be relied on, its start cannot: after
// the last change it knows by date it answers with the first of January.
func (p period) trace(loc *time.Location, unix int64) period {
	for range maxSteps {
		_, end, offset := bounds(loc, p.start)
		if end > unix {
			break
		}
		p.start, p.before = end, offset
	}
	return p
}

// bounds returns what the time package knows about the offset at unix. Both
// ends may be artificial, with the same offset on the other side.
func bounds(loc *time.Location, unix int64) (start, end, offset int64) {
	t := time.Unix(unix, 0).In(loc)
	from, to := t.ZoneBounds()
	_, seconds := t.Zone()
	start, end = math.MinInt64, math.MaxInt64
	if !from.IsZero() {
		start = from.Unix()
	}
	if !to.IsZero() {
		end = to.Unix()
	}
	if end <= unix {
		// The last day of a leap year: the time package counts 365 days.
		_, rest := floorDiv(unix, secondsPerDay)
		end = unix - rest + secondsPerDay
	}
	return start, end, int64(seconds)
}
