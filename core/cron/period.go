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

// periodAt returns what the time package knows about the offset at unix. Its
// end is the next change or earlier. Its start is not to be relied on: in the
// year of the last change that a zone file lists by date, the time package
// answers from the rule that follows, which may begin months before.
func periodAt(loc *time.Location, unix int64) period {
	t := time.Unix(unix, 0).In(loc)
	from, to := t.ZoneBounds()
	_, seconds := t.Zone()
	p := period{start: math.MinInt64, end: math.MaxInt64, offset: int64(seconds), before: int64(seconds)}
	if !from.IsZero() {
		p.start = from.Unix()
	}
	if !to.IsZero() {
		p.end = to.Unix()
	}
	if p.end <= unix {
		// On 31 December of a leap year the time package ends the year, and with
		// it the period, a day early.
		_, rest := floorDiv(unix, secondsPerDay)
		p.end = unix - rest + secondsPerDay
	}
	return p
}

// sinceChange returns p with the exact start, and the offset before it, if the
// clock changed less than maxJump before unix. Older changes have no effect
// after unix.
func (p period) sinceChange(loc *time.Location, unix int64) period {
	if p.start == math.MinInt64 {
		return p
	}
	p.start = unix - maxJump
	return p.trace(loc, unix)
}

// complete returns p with the exact start and the offset before it.
func (p period) complete(loc *time.Location, unix int64) period {
	if p.start == math.MinInt64 {
		return p
	}
	p.start--
	return p.trace(loc, unix)
}

// trace moves start, which must lie before the last change up to unix or after
// it in the same period, forward to that change.
func (p period) trace(loc *time.Location, unix int64) period {
	for range maxSteps {
		earlier := periodAt(loc, p.start)
		if earlier.end > unix {
			break
		}
		p.start, p.before = earlier.end, earlier.offset
	}
	return p
}
