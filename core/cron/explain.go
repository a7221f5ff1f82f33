package cron

import (
	"fmt"
	"math"
	"time"
)

// Explain says in one clause what a clock change did to a slot: that the slot
// makes up for a gap, comes after one that swallowed slots, or lies in an hour
// that is repeated. It returns "" for a slot that no clock change touched.
func (e *Expression) Explain(slot time.Time) string {
	if e.every > 0 || slot.Unix() <= minUnix || slot.Unix() >= maxUnix {
		return ""
	}
	at := slot.Unix()
	p := periodAt(e.loc, at).complete(e.loc, at)
	wall := at + p.offset
	if p.isGap() {
		if why := e.explainGap(p, at); why != "" {
			return why
		}
	}
	if p.isOverlap() && wall < p.start+p.before {
		return clock(wall) + " comes twice: this is the second time"
	}
	next := e.changeAfter(p, at)
	if next.isOverlap() && wall >= next.start+next.offset {
		if e.overlap == OverlapFirst {
			return clock(wall) + " comes twice: it runs the first time only"
		}
		return clock(wall) + " comes twice: this is the first time"
	}
	return ""
}

// explainGap explains a slot of the period p, which begins with a gap.
func (e *Expression) explainGap(p period, at int64) string {
	from, to := p.start+p.before, p.start+p.offset
	missed, ok := e.wallAtOrAfter(from, to)
	if !ok {
		return ""
	}
	jump := fmt.Sprintf("clocks went from %s to %s", clock(from), clock(to))
	if e.gap == GapRunAfter {
		if at != p.afterGap(e.grain) {
			return ""
		}
		return fmt.Sprintf("%s: runs now for %s, which did not exist", jump, clock(missed))
	}
	// Only the first slot after the gap is worth a word.
	if first, ok := e.wallAtOrAfter(to, at+p.offset); ok && first < at+p.offset {
		return ""
	}
	return fmt.Sprintf("%s: %s did not exist and was skipped", jump, clock(missed))
}

// changeAfter returns the period that follows p, if it begins within the time in
// which a change can touch a slot at unix; otherwise one without a change.
func (e *Expression) changeAfter(p period, unix int64) period {
	offset := p.offset
	for range maxSteps {
		if p.end == math.MaxInt64 || p.end > unix+maxJump {
			break
		}
		next := periodAt(e.loc, p.end)
		next.start, next.before = p.end, offset
		if next.offset != offset {
			return next
		}
		p = next
	}
	return period{offset: offset, before: offset}
}

// clock writes the time of day of a wall second, its seconds only if there are
// any.
func clock(wall int64) string {
	_, s := floorDiv(wall, secondsPerDay)
	if s%60 == 0 {
		return fmt.Sprintf("%02d:%02d", s/3600, s/60%60)
	}
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}
