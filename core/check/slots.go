package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// slotsOf returns the slots of a schedule in [from, to), second by second for a spec
// with seconds and minute by minute otherwise: slow, and obviously right. Of the
// dialect it knows stars, numbers, names, lists, ranges, steps, macros, intervals with
// an anchor and single times.
func slotsOf(s *Schedule, from, to time.Time) ([]time.Time, error) {
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	switch {
	case strings.HasPrefix(s.Spec, "every "):
		return intervalSlots(s, from, to)
	case strings.HasPrefix(s.Spec, "at "):
		at, err := time.Parse(time.RFC3339, strings.TrimPrefix(s.Spec, "at "))
		if err != nil || at.Before(from) || !at.Before(to) {
			return nil, err
		}
		return []time.Time{at.UTC()}, nil
	}
	c, err := parseCron(s.Spec)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	var out []time.Time
	for t := from.UTC().Truncate(c.step); t.Before(to); t = t.Add(c.step) {
		if !t.Before(from) && c.fires(t, zone) {
			out = append(out, t)
		}
	}
	return out, nil
}

func intervalSlots(s *Schedule, from, to time.Time) ([]time.Time, error) {
	every, err := parseDuration(strings.TrimPrefix(s.Spec, "every "))
	if err != nil || every < time.Second || s.Anchor == nil {
		return nil, fmt.Errorf("schedule %s: cannot tell the slots of %q", s.ID, s.Spec)
	}
	steps := from.Sub(*s.Anchor) / every
	var out []time.Time
	for t := s.Anchor.Add((steps - 1) * every).UTC(); t.Before(to); t = t.Add(every) {
		if !t.Before(from) {
			out = append(out, t)
		}
	}
	return out, nil
}

// parseDuration reads what the API writes, such as 90s, 1h30m or 3d.
func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err
	}
	if text == "" {
		return 0, nil
	}
	return time.ParseDuration(text)
}

// cron is a spec by its fields, each the set of its values.
type cron struct {
	step                                  time.Duration
	second, minute, hour, day, month, dow map[int]bool
	dayStar, dowStar, wild                bool
}

var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

func parseCron(text string) (*cron, error) {
	if long, ok := macros[text]; ok {
		text = long
	}
	fields := strings.Fields(text)
	c := &cron{step: time.Minute, second: map[int]bool{0: true}}
	var err error
	if len(fields) == 6 {
		c.step = time.Second
		if c.second, err = parseField(fields[0], 0, 59, nil); err != nil {
			return nil, err
		}
		fields = fields[1:]
	}
	if len(fields) != 5 {
		return nil, fmt.Errorf("%q has %d fields", text, len(fields))
	}
	months := strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")
	days := strings.Fields("sun mon tue wed thu fri sat")
	for i, f := range []struct {
		to         *map[int]bool
		least, top int
		names      map[string]int
	}{
		{&c.minute, 0, 59, nil}, {&c.hour, 0, 23, nil}, {&c.day, 1, 31, nil}, {&c.month, 1, 12, numbered(months, 1)}, {&c.dow, 0, 7, numbered(days, 0)},
	} {
		if *f.to, err = parseField(fields[i], f.least, f.top, f.names); err != nil {
			return nil, err
		}
	}
	if c.dow[7] {
		c.dow[0] = true
	}
	star := func(i int) bool { return strings.HasPrefix(fields[i], "*") }
	c.wild, c.dayStar, c.dowStar = star(0) || star(1), star(2), star(4)
	return c, nil
}

func numbered(names []string, first int) map[string]int {
	out := map[string]int{}
	for i, name := range names {
		out[name] = first + i
	}
	return out
}

func parseField(text string, least, top int, names map[string]int) (map[int]bool, error) {
	out := map[int]bool{}
	number := func(s string) (int, error) {
		if n, ok := names[strings.ToLower(s)]; ok {
			return n, nil
		}
		return strconv.Atoi(s)
	}
	for part := range strings.SplitSeq(text, ",") {
		body, stepText, stepped := strings.Cut(part, "/")
		step, low, high := 1, least, top
		var err, err2 error
		if stepped {
			step, err2 = strconv.Atoi(stepText)
		}
		if body != "*" {
			a, b, isRange := strings.Cut(body, "-")
			if low, err = number(a); err == nil {
				high = low
				if isRange {
					high, err = number(b)
				}
			}
		}
		if err != nil || err2 != nil || step < 1 || low < least || high > top || high < low {
			return nil, fmt.Errorf("%q is not understood here", part)
		}
		for v := low; v <= high; v += step {
			out[v] = true
		}
	}
	return out, nil
}

// matches reports whether a reading of a wall clock is one of the spec's.
func (c *cron) matches(wall time.Time) bool {
	day, dow := c.day[wall.Day()], c.dow[int(wall.Weekday())]
	days := day || dow
	if c.dayStar || c.dowStar {
		days = day && dow
	}
	return c.second[wall.Second()] && c.minute[wall.Minute()] && c.hour[wall.Hour()] && c.month[int(wall.Month())] && days
}

// longest is the largest jump of a clock that is a change of summer time, not a
// correction.
const longest = 3 * time.Hour

// fires reports whether an instant is a slot, by cronie's rule at clock changes: a spec
// whose minute or hour begins with a star follows real time; any other comes once in
// a repeated hour, the first time, and right after a gap that has swallowed it.
func (c *cron) fires(t time.Time, zone *time.Location) bool {
	wall := reading(t, zone)
	if c.wild {
		return c.matches(wall)
	}
	if c.matches(wall) && !repeats(t, zone) {
		return true
	}
	// The first instant after a gap stands for all that the gap swallowed.
	before := reading(t.Add(-c.step), zone)
	if gap := wall.Sub(before) - c.step; gap <= 0 || gap > longest {
		return false
	}
	for w := before.Add(c.step); w.Before(wall); w = w.Add(c.step) {
		if c.matches(w) {
			return true
		}
	}
	return false
}

// reading returns what clocks in a zone show, as a time in UTC.
func reading(t time.Time, zone *time.Location) time.Time {
	l := t.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
}

// repeats reports whether clocks have shown the same reading within the last hours.
func repeats(t time.Time, zone *time.Location) bool {
	wall := reading(t, zone)
	for back := 15 * time.Minute; back <= longest; back += 15 * time.Minute {
		if reading(t.Add(-back), zone).Equal(wall) {
			return true
		}
	}
	return false
}

// sorted returns times in order.
func sorted(in []time.Time) []time.Time {
	out := slices.Clone(in)
	slices.SortFunc(out, time.Time.Compare)
	return out
}
