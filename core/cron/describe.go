package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Describe puts the expression in plain English, such as "at 02:30 on Monday to
// Friday", so that its author sees what it was taken for. H shows as the value
// that it has for this schedule. The text is for people and may change.
func (e *Expression) Describe() string {
	if e.every > 0 {
		return "every " + e.every.String() + " of elapsed time"
	}
	when, daily := e.clock.describe()
	parts := []string{when}
	switch day := e.days.describe(); {
	case day != "":
		parts = append(parts, day)
	case daily:
		parts = append(parts, "every day")
	}
	if months := uint64(e.months); months != all(1, 12) {
		parts = append(parts, "in "+values("and", months, 1, monthName))
	}
	return strings.Join(parts, " ")
}

// maxClockTimes is up to how many times of day are listed one by one.
const maxClockTimes = 4

// describe returns the time of day, and whether "every day" should follow it.
func (c clockRule) describe() (text string, daily bool) {
	if bits.OnesCount64(c.hours)*bits.OnesCount64(c.minutes)*bits.OnesCount64(c.seconds) <= maxClockTimes {
		return "at " + join("and", c.times()), true
	}
	units := []struct {
		name string
		set  uint64
		top  int
	}{{"second", c.seconds, 59}, {"minute", c.minutes, 59}, {"hour", c.hours, 23}}
	if c.seconds == 1 {
		units = units[1:]
	}
	open := false // the text ends with a rate, which needs no larger unit
	for i, u := range units {
		rate, stepped := steps(u.set, u.top, u.name)
		switch {
		case i == 0 && stepped:
			text = rate
		case i == 0:
			text = "at " + counted(u.name, u.set)
		case open && u.set == all(0, u.top):
			continue
		default:
			text += " of " + within(u.set, u.top, u.name)
		}
		open = stepped
	}
	return text, false
}

// times lists all times of day.
func (c clockRule) times() []string {
	var out []string
	for s, ok := c.atOrAfter(0); ok; s, ok = c.atOrAfter(s + 1) {
		out = append(out, clock(int64(s)))
		if s+1 == secondsPerDay {
			break
		}
	}
	return out
}

// steps says "every 15 minutes" of a set that goes evenly through the whole of
// 0 to top, and reports whether it does.
func steps(set uint64, top int, unit string) (string, bool) {
	for n := 1; n <= (top+1)/2; n++ {
		if (top+1)%n == 0 && set == sequence(0, top, n) {
			if n == 1 {
				return "every " + unit, true
			}
			return fmt.Sprintf("every %d %ss", n, unit), true
		}
	}
	return "", false
}

// within names the larger unit that something happens in.
func within(set uint64, top int, unit string) string {
	if set == all(0, top) {
		return "every " + unit
	}
	if _, ok := steps(set, top, unit); ok {
		return "every " + ordinal(top/bits.OnesCount64(set)+1) + " " + unit
	}
	return counted(unit, set)
}

func counted(unit string, set uint64) string {
	if bits.OnesCount64(set) > 1 {
		unit += "s"
	}
	return unit + " " + values("and", set, 0, strconv.Itoa)
}

// describe returns the days, "" for every day.
func (r *dayRule) describe() string {
	free := r.dates == uint32(all(1, 31))
	anyWeekday := r.weekdays == uint32(all(0, 6))
	switch {
	case free && anyWeekday, !r.both && (free || anyWeekday):
		return ""
	case free:
		return "on " + r.describeWeekdays("and")
	case anyWeekday:
		return r.describeDates() + " of the month"
	case r.both:
		return r.describeDates() + " of the month if it is " + r.describeWeekdays("or")
	}
	return r.describeDates() + " of the month, and on " + r.describeWeekdays("and")
}

func (r *dayRule) describeDates() string {
	var out []string
	switch n := bits.TrailingZeros32(r.dates &^ 2); {
	case r.dates == 0:
	case bits.OnesCount32(r.dates) > maxClockTimes && uint64(r.dates) == sequence(1, 31, n-1):
		out = append(out, fmt.Sprintf("every %s day from the 1st", ordinal(n-1)))
	default:
		out = append(out, "the "+values("and", uint64(r.dates), 1, ordinal))
	}
	for set := r.fromLast; set != 0; set &= set - 1 {
		switch n := bits.TrailingZeros32(set); n {
		case 0:
			out = append(out, "the last day")
		default:
			out = append(out, fmt.Sprintf("the %s day before the last", ordinal(n)))
		}
	}
	for set := r.nearest; set != 0; set &= set - 1 {
		out = append(out, fmt.Sprintf("the working day nearest to the %s", ordinal(bits.TrailingZeros32(set))))
	}
	if r.lastWeekday {
		out = append(out, "the last working day")
	}
	return "on " + join("and", out)
}

func (r *dayRule) describeWeekdays(word string) string {
	var out []string
	if r.weekdays != 0 {
		out = append(out, values(word, uint64(r.weekdays), 0, weekdayName))
	}
	for set := r.nth; set != 0; set &= set - 1 {
		bit := bits.TrailingZeros64(set)
		out = append(out, fmt.Sprintf("the %s %s", ordinal(bit%5+1), weekdayName(bit/5)))
	}
	for set := r.lastOf; set != 0; set &= set - 1 {
		out = append(out, "the last "+weekdayName(bits.TrailingZeros32(set)))
	}
	return join(word, out)
}

// values lists a set, with three or more in a row as "a to b".
func values(word string, set uint64, low int, name func(int) string) string {
	var out []string
	for n := low; n < 64; n++ {
		if set>>n&1 == 0 {
			continue
		}
		last := n
		for last < 63 && set>>(last+1)&1 == 1 {
			last++
		}
		if last-n >= 2 {
			out = append(out, name(n)+" to "+name(last))
			n = last
			continue
		}
		out = append(out, name(n))
	}
	return join(word, out)
}

// join writes a list as people do.
func join(word string, items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " " + word + " " + items[len(items)-1]
}

// all returns the set of a to b.
func all(a, b int) uint64 { return sequence(a, b, 1) }

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

func monthName(n int) string {
	return strings.Fields("- January February March April May June July August September October November December")[n]
}

func weekdayName(n int) string {
	return strings.Fields("Sunday Monday Tuesday Wednesday Thursday Friday Saturday")[n]
}
