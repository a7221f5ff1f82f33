package cron

import "math/bits"

// Wall time is counted in seconds of a calendar without clock changes, from
// 1970-01-01 00:00 on the wall clock.

// wallAtOrAfter returns the first matching wall second in [from, limit).
func (e *Expression) wallAtOrAfter(from, limit int64) (int64, bool) {
	if from >= limit {
		return 0, false
	}
	n, second := floorDiv(from, secondsPerDay)
	d := civil(n)
	first := n - int64(d.day) + 1
	days := e.daysOf(d.year, d.month, first) &^ uint32(below(d.day))
	if days>>d.day&1 == 1 {
		if s, ok := e.clock.atOrAfter(int(second)); ok {
			w := n*secondsPerDay + int64(s)
			return w, w < limit
		}
		days &^= 1 << d.day
	}
	for days == 0 {
		first += int64(monthLength(d.year, d.month))
		if first*secondsPerDay >= limit {
			return 0, false
		}
		if d.month++; d.month > 12 {
			d.month, d.year = 1, d.year+1
		}
		days = e.daysOf(d.year, d.month, first)
	}
	s, _ := e.clock.atOrAfter(0)
	w := (first+int64(bits.TrailingZeros32(days))-1)*secondsPerDay + int64(s)
	return w, w < limit
}

// wallAtOrBefore returns the last matching wall second in [limit, from].
func (e *Expression) wallAtOrBefore(from, limit int64) (int64, bool) {
	if from < limit {
		return 0, false
	}
	n, second := floorDiv(from, secondsPerDay)
	d := civil(n)
	first := n - int64(d.day) + 1
	days := e.daysOf(d.year, d.month, first) & uint32(below(d.day+1))
	if days>>d.day&1 == 1 {
		if s, ok := e.clock.atOrBefore(int(second)); ok {
			w := n*secondsPerDay + int64(s)
			return w, w >= limit
		}
		days &^= 1 << d.day
	}
	for days == 0 {
		if first*secondsPerDay <= limit {
			return 0, false
		}
		if d.month--; d.month < 1 {
			d.month, d.year = 12, d.year-1
		}
		first -= int64(monthLength(d.year, d.month))
		days = e.daysOf(d.year, d.month, first)
	}
	s, _ := e.clock.atOrBefore(secondsPerDay - 1)
	w := (first+int64(top(uint64(days)))-1)*secondsPerDay + int64(s)
	return w, w >= limit
}

// daysOf returns the matching days, bits 1-31, of the month that begins on day
// number first.
func (e *Expression) daysOf(year int64, month int, first int64) uint32 {
	if e.months>>month&1 == 0 {
		return 0
	}
	return e.days.month(weekday(first), monthLength(year, month))
}

// possible reports whether any date matches. Twenty-eight years without a
// skipped leap day hold each month on each weekday it can begin with.
func (e *Expression) possible() bool {
	start := date{year: 2000, month: 1, day: 1}.number() * secondsPerDay
	end := date{year: 2028, month: 1, day: 1}.number() * secondsPerDay
	_, ok := e.wallAtOrAfter(start, end)
	return ok
}
