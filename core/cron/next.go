package cron

import "time"

const (
	// maxJump is the largest clock change, in seconds, that counts as a gap or
	// an overlap. Larger ones correct the calendar.
	maxJump = 3 * 60 * 60
	// spreadSeconds exceeds the difference, in seconds, between any two offsets that a
	// zone can have had (RFC 9636 allows -25 to +26 hours).
	spreadSeconds = 72 * 60 * 60
	// horizonYears is how far a search goes. Any possible date comes within 40
	// years: 29 February on a given weekday is that rare around 2100.
	horizonYears = 40
	// maxSteps bounds a search. A zone with four changes a year takes 160.
	maxSteps = 1000
	// The first and last second that RFC 3339 can express. There are no slots
	// outside.
	minUnix = -62167219200
	maxUnix = 253402300799
)

// Next returns the first slot strictly after t, in the expression's zone, on a
// whole second. It returns the zero time if none lies within 40 years or before
// the year 10000. The answer depends on nothing but the expression and t; it
// is found in bounded time and without allocation. For @every it is t, cut
// to the second, plus the duration.
func (e *Expression) Next(t time.Time) time.Time {
	if t.Unix() < minUnix || t.Unix() >= maxUnix {
		return time.Time{}
	}
	if e.every > 0 {
		return e.afterDelay(t.Unix())
	}
	at := t.Unix() + 1
	horizon := min(yearStart(at, horizonYears+1), maxUnix+1)
	for range maxSteps {
		p := periodAt(e.loc, at)
		if e.gap == GapRunAfter || e.overlap == OverlapFirst {
			p = p.sinceChange(e.loc, at)
		}
		if slot, ok := e.firstIn(p, at, horizon); ok {
			return e.at(slot)
		}
		if p.end >= horizon {
			return time.Time{}
		}
		// No wall second between here and w matches, whatever clock changes
		// come, so that every instant whose wall clock is surely below w can be
		// passed over.
		w, ok := e.wallAtOrAfter(p.end+p.offset-spreadSeconds, horizon+spreadSeconds)
		if !ok {
			return time.Time{}
		}
		at = max(p.end, w-p.offset-spreadSeconds)
	}
	return time.Time{}
}

// afterDelay is Next for @every, as robfig counts it.
func (e *Expression) afterDelay(unix int64) time.Time {
	slot := unix + int64(e.every/time.Second)
	if slot > maxUnix {
		return time.Time{}
	}
	return e.at(slot)
}

// firstIn returns the first slot of period p that is not before at.
func (e *Expression) firstIn(p period, at, horizon int64) (int64, bool) {
	if e.gap == GapRunAfter && p.isGap() {
		slot := p.afterGap(e.grain)
		if _, ok := e.wallAtOrAfter(p.start+p.before, p.start+p.offset); ok && slot >= at {
			// Nothing between the end of the gap and its slot can match.
			return slot, true
		}
	}
	from := at + p.offset
	if e.overlap == OverlapFirst && p.isOverlap() {
		from = max(from, p.start+p.before)
	}
	w, ok := e.wallAtOrAfter(from, min(p.end, horizon)+p.offset)
	return w - p.offset, ok
}

// Prev returns the newest slot strictly before t, in the expression's zone: of
// all values that Next returns for some time, the last one before t. It returns
// the zero time if there is none within 40 years. For @every, whose slots
// depend on the time asked for, it is the whole second before t.
func (e *Expression) Prev(t time.Time) time.Time {
	if t.Unix() <= minUnix || t.Unix() > maxUnix {
		return time.Time{}
	}
	at := t.Unix()
	if t.Nanosecond() == 0 {
		at--
	}
	if e.every > 0 {
		return e.at(at)
	}
	horizon := max(yearStart(at, -horizonYears), minUnix)
	for range maxSteps {
		p := periodAt(e.loc, at).complete(e.loc, at)
		if slot, ok := e.lastIn(p, at, horizon); ok {
			return e.at(slot)
		}
		if p.start <= horizon {
			return time.Time{}
		}
		w, ok := e.wallAtOrBefore(p.start+p.offset+spreadSeconds, horizon-spreadSeconds)
		if !ok {
			return time.Time{}
		}
		at = min(p.start-1, w-p.offset+spreadSeconds)
	}
	return time.Time{}
}

// lastIn returns the last slot of period p that is not after at.
func (e *Expression) lastIn(p period, at, horizon int64) (int64, bool) {
	lowest := max(p.start, horizon) + p.offset
	if e.overlap == OverlapFirst && p.isOverlap() {
		lowest = max(lowest, p.start+p.before)
	}
	if w, ok := e.wallAtOrBefore(at+p.offset, lowest); ok {
		return w - p.offset, true
	}
	if e.gap == GapRunAfter && p.isGap() {
		slot := p.afterGap(e.grain)
		_, ok := e.wallAtOrAfter(p.start+p.before, p.start+p.offset)
		return slot, ok && slot <= at && slot >= horizon
	}
	return 0, false
}

// Belongs reports whether t is a slot. Slots lie on whole seconds; for @every
// each whole second is one.
func (e *Expression) Belongs(t time.Time) bool {
	return e.Next(t.Add(-1)).Equal(t) || e.every > 0 && t.Nanosecond() == 0
}

func (e *Expression) at(unix int64) time.Time {
	return time.Unix(unix, 0).In(e.loc)
}

// yearStart returns the first second of the year that lies years after that of
// unix, all in UTC.
func yearStart(unix, years int64) int64 {
	n, _ := floorDiv(unix, secondsPerDay)
	return date{year: civil(n).year + years, month: 1, day: 1}.number() * secondsPerDay
}
