package cron

import "math/bits"

const secondsPerDay = 24 * 60 * 60

// clockRule is the set of matching times of day. No part of it is empty.
type clockRule struct {
	seconds uint64 // bits 0-59
	minutes uint64 // bits 0-59
	hours   uint64 // bits 0-23
}

// atOrAfter returns the first matching second of the day from s on.
func (c clockRule) atOrAfter(s int) (int, bool) {
	h, m, s := s/3600, s/60%60, s%60
	if c.hours>>h&1 == 1 {
		if c.minutes>>m&1 == 1 {
			if r := c.seconds >> s; r != 0 {
				return h*3600 + m*60 + s + bits.TrailingZeros64(r), true
			}
		}
		if r := c.minutes >> (m + 1); r != 0 {
			m += 1 + bits.TrailingZeros64(r)
			return h*3600 + m*60 + bits.TrailingZeros64(c.seconds), true
		}
	}
	r := c.hours >> (h + 1)
	if r == 0 {
		return 0, false
	}
	h += 1 + bits.TrailingZeros64(r)
	return h*3600 + bits.TrailingZeros64(c.minutes)*60 + bits.TrailingZeros64(c.seconds), true
}

// atOrBefore returns the last matching second of the day up to s.
func (c clockRule) atOrBefore(s int) (int, bool) {
	h, m, s := s/3600, s/60%60, s%60
	if c.hours>>h&1 == 1 {
		if c.minutes>>m&1 == 1 {
			if r := c.seconds & below(s+1); r != 0 {
				return h*3600 + m*60 + top(r), true
			}
		}
		if r := c.minutes & below(m); r != 0 {
			return h*3600 + top(r)*60 + top(c.seconds), true
		}
	}
	r := c.hours & below(h)
	if r == 0 {
		return 0, false
	}
	return top(r)*3600 + top(c.minutes)*60 + top(c.seconds), true
}

// below returns the bits smaller than n.
func below(n int) uint64 { return 1<<n - 1 }

// top returns the number of the highest bit of a set that is not empty.
func top(set uint64) int { return bits.Len64(set) - 1 }

// dayRule is the set of matching days, in a form that any month can be laid
// over.
type dayRule struct {
	dates       uint32 // bits 1-31
	fromLast    uint32 // bit n: n days before the last
	nearest     uint32 // bit n: the weekday nearest to the n-th
	lastWeekday bool
	weekdays    uint32 // bits 0-6, Sunday is 0
	nth         uint64 // bit 5*weekday + n-1
	lastOf      uint32 // bits 0-6
	both        bool   // dates and weekdays must both match, not either
}

// month returns the matching days, bits 1-31, of a month of length days that
// begins on weekday first.
func (r *dayRule) month(first, length int) uint32 {
	all := uint32(1)<<(length+1) - 2
	dates, weekdays := r.dates, spread(r.weekdays, first)
	if r.fromLast != 0 || r.nearest != 0 || r.lastWeekday {
		dates |= r.specialDates(first, length)
	}
	if r.nth != 0 || r.lastOf != 0 {
		weekdays |= r.specialWeekdays(first, length)
	}
	if r.both {
		return dates & weekdays & all
	}
	return (dates | weekdays) & all
}

// spread repeats a set of weekdays over days 1-31 of a month.
func spread(weekdays uint32, first int) uint32 {
	week := uint64(weekdays) | uint64(weekdays)<<7
	week = week >> first & 0x7f
	week |= week<<7 | week<<14
	return uint32((week | week<<21) << 1)
}

func (r *dayRule) specialDates(first, length int) uint32 {
	var days uint32
	for set := r.fromLast; set != 0; set &= set - 1 {
		if n := bits.TrailingZeros32(set); n < length {
			days |= 1 << (length - n)
		}
	}
	for set := r.nearest; set != 0; set &= set - 1 {
		if n := bits.TrailingZeros32(set); n <= length {
			days |= 1 << nearestWeekday(n, first, length)
		}
	}
	if r.lastWeekday {
		days |= 1 << nearestWeekday(length, first, length)
	}
	return days
}

// nearestWeekday returns the day from Monday to Friday that is nearest to n and
// in the same month.
func nearestWeekday(n, first, length int) int {
	switch (first + n - 1) % 7 {
	case 0:
		if n == length {
			return n - 2
		}
		return n + 1
	case 6:
		if n == 1 {
			return n + 2
		}
		return n - 1
	}
	return n
}

func (r *dayRule) specialWeekdays(first, length int) uint32 {
	var days uint32
	for set := r.nth; set != 0; set &= set - 1 {
		bit := bits.TrailingZeros64(set)
		days |= 1 << (1 + (bit/5-first+7)%7 + bit%5*7)
	}
	for set := r.lastOf; set != 0; set &= set - 1 {
		d := 1 + (bits.TrailingZeros32(set)-first+7)%7 + 28
		if d > length {
			d -= 7
		}
		days |= 1 << d
	}
	return days
}

// date is a day of the proleptic Gregorian calendar.
type date struct {
	year       int64
	month, day int
}

// civil returns the date that lies n days after 1970-01-01. It counts years
// from March, so that the leap day comes last, in cycles of 400 years.
func civil(n int64) date {
	n += 719468
	cycle, day := floorDiv(n, 146097)
	year := (day - day/1460 + day/36524 - day/146096) / 365
	yearDay := day - (365*year + year/4 - year/100)
	shifted := (5*yearDay + 2) / 153
	d := date{year: year + cycle*400, month: int(shifted) + 3, day: int(yearDay-(153*shifted+2)/5) + 1}
	if d.month > 12 {
		d.month -= 12
		d.year++
	}
	return d
}

// number is the inverse of civil.
func (d date) number() int64 {
	year, shifted := d.year, int64(d.month)-3
	if shifted < 0 {
		year--
		shifted += 12
	}
	cycle, year := floorDiv(year, 400)
	yearDay := (153*shifted+2)/5 + int64(d.day) - 1
	return cycle*146097 + year*365 + year/4 - year/100 + yearDay - 719468
}

// weekday returns the day of the week of day n after 1970-01-01, a Thursday.
func weekday(n int64) int {
	_, w := floorDiv(n+4, 7)
	return int(w)
}

// monthLength returns the number of days.
func monthLength(year int64, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// floorDiv divides by a positive n and rounds down, so that the rest is never
// negative.
func floorDiv(a, n int64) (quotient, rest int64) {
	quotient, rest = a/n, a%n
	if rest < 0 {
		quotient--
		rest += n
	}
	return quotient, rest
}
