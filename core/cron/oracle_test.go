package cron_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/cron"
)

// oracle is a second evaluator, made to be obviously right: it asks the time
// package for the wall clock of every single step and tests each field as text.
type oracle struct {
	fields   []string // seconds first
	loc      *time.Location
	step     time.Duration
	runAfter bool
	first    bool
}

// matchesWall tests a wall clock reading, whatever zone w is in.
func (o oracle) matchesWall(w time.Time) bool {
	if !inField(o.fields[0], w.Second(), 0, 59) || !inField(o.fields[1], w.Minute(), 0, 59) ||
		!inField(o.fields[2], w.Hour(), 0, 23) || !inField(o.fields[4], int(w.Month()), 1, 12) {
		return false
	}
	date, weekday := o.dateMatches(w), o.weekdayMatches(w)
	if strings.ContainsAny(o.fields[3][:1]+o.fields[5][:1], "*?") {
		return date && weekday
	}
	return date || weekday
}

// inField tests a list of star, a, a-b, each with an optional step.
func inField(text string, value, low, high int) bool {
	for _, element := range strings.Split(text, ",") {
		body, stepText, stepped := strings.Cut(element, "/")
		step := 1
		if stepped {
			step, _ = strconv.Atoi(stepText)
		}
		a, b := low, high
		if body != "*" && body != "?" {
			aText, bText, ranged := strings.Cut(body, "-")
			a, _ = strconv.Atoi(aText)
			switch {
			case ranged:
				b, _ = strconv.Atoi(bText)
			case !stepped:
				b = a
			}
		}
		if value >= a && value <= b && (value-a)%step == 0 {
			return true
		}
	}
	return false
}

func (o oracle) dateMatches(w time.Time) bool {
	last := time.Date(w.Year(), w.Month()+1, 0, 0, 0, 0, 0, time.UTC)
	for _, element := range strings.Split(o.fields[3], ",") {
		switch before, _, nearest := strings.Cut(element, "W"); {
		case element == "L":
			if w.Day() == last.Day() {
				return true
			}
		case element == "LW":
			if w.Day() == nearestWorkday(last).Day() {
				return true
			}
		case strings.HasPrefix(element, "L-"):
			n, _ := strconv.Atoi(element[2:])
			if w.Day() == last.Day()-n {
				return true
			}
		case nearest:
			n, _ := strconv.Atoi(before)
			if n <= last.Day() && w.Day() == nearestWorkday(last.AddDate(0, 0, n-last.Day())).Day() {
				return true
			}
		case inField(element, w.Day(), 1, 31):
			return true
		}
	}
	return false
}

// nearestWorkday tries the day, its neighbors, and theirs, in the same month.
func nearestWorkday(day time.Time) time.Time {
	for _, shift := range []int{0, -1, 1, -2, 2} {
		d := day.AddDate(0, 0, shift)
		if d.Month() == day.Month() && d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			return d
		}
	}
	return day
}

func (o oracle) weekdayMatches(w time.Time) bool {
	for _, element := range strings.Split(o.fields[5], ",") {
		day, nth, numbered := strings.Cut(element, "#")
		switch {
		case numbered:
			n, _ := strconv.Atoi(nth)
			if inField(day, int(w.Weekday()), 0, 6) && (w.Day()+6)/7 == n {
				return true
			}
		case strings.HasSuffix(element, "L"):
			if inField(element[:1], int(w.Weekday()), 0, 6) && w.AddDate(0, 0, 7).Month() != w.Month() {
				return true
			}
		case inField(element, int(w.Weekday()), 0, 6):
			return true
		}
	}
	return false
}

// slots returns every slot in [from, to).
func (o oracle) slots(from, to time.Time) []time.Time {
	var list []time.Time
	for at := from; at.Before(to); at = at.Add(o.step) {
		if o.fires(at.In(o.loc)) {
			list = append(list, at)
		}
	}
	return list
}

func (o oracle) fires(at time.Time) bool {
	if o.matchesWall(at) && !(o.first && o.isSecondPass(at)) {
		return true
	}
	return o.runAfter && o.gapMatches(at)
}

// isSecondPass looks for an earlier instant, up to three hours back, with the
// same wall clock reading: the clock was ahead by just the time between.
func (o oracle) isSecondPass(at time.Time) bool {
	for back := time.Minute; back <= 3*time.Hour; back += time.Minute {
		if time.Duration(offsetOf(at.Add(-back), o.loc)-offsetOf(at, o.loc))*time.Second == back {
			return true
		}
	}
	return false
}

// gapMatches looks at each wall clock reading that was skipped right before at.
func (o oracle) gapMatches(at time.Time) bool {
	_, offset := at.Zone()
	_, before := at.Add(-o.step).Zone()
	gap := time.Duration(offset-before) * time.Second
	if gap <= 0 || gap > 3*time.Hour {
		return false
	}
	end := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
	for wall := end.Add(-gap); wall.Before(end); wall = wall.Add(o.step) {
		if o.matchesWall(wall) {
			return true
		}
	}
	return false
}

// TestOracle compares Next, Prev and Belongs with the oracle around random
// clock changes of random zones.
func TestOracle(t *testing.T) {
	t.Parallel()
	zones := zoneNames(t)
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2026))
			for range 6 {
				loc := zone(t, zones[r.IntN(len(zones))])
				change := randomChange(r, loc)
				compareAround(t, r, loc, change, time.Minute, 30*time.Hour)
				compareAround(t, r, loc, change, time.Second, 100*time.Minute)
			}
		})
	}
}

// TestOracleNamedChanges covers the changes that have broken schedulers, and
// those for which the time package reports a period that begins too early.
func TestOracleNamedChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, change string }{
		{"America/New_York", "2026-03-08T07:00:00Z"},
		{"America/New_York", "2026-11-01T06:00:00Z"},
		{"America/Goose_Bay", "2011-11-01T03:00:00Z"},
		{"America/St_Johns", "2011-11-01T02:30:00Z"},
		{"America/Indiana/Winamac", "2007-03-11T08:00:00Z"},
		{"America/Indiana/Petersburg", "2007-11-04T07:00:00Z"},
		{"America/Ciudad_Juarez", "2022-11-30T06:00:00Z"},
		{"America/Metlakatla", "2019-01-20T10:00:00Z"},
		{"America/Danmarkshavn", "1996-01-01T03:00:00Z"},
		{"America/Havana", "2026-11-01T05:00:00Z"},
		{"Antarctica/Casey", "2018-03-10T17:00:00Z"},
		{"Antarctica/Casey", "2020-10-03T16:01:00Z"},
		{"Antarctica/Troll", "2026-03-29T01:00:00Z"},
		{"Antarctica/Vostok", "1994-01-31T17:00:00Z"},
		{"Asia/Nicosia", "1998-08-31T21:00:00Z"},
		{"Asia/Pyongyang", "2018-05-04T15:00:00Z"},
		{"Asia/Ust-Nera", "1981-03-31T15:00:00Z"},
		{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
		{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
		{"Europe/London", "2028-12-31T12:00:00Z"},
		{"Kwajalein", "1993-08-21T12:00:00Z"},
		{"Pacific/Apia", "2011-12-30T10:00:00Z"},
		{"Pacific/Chatham", "2026-09-26T14:00:00Z"},
		{"Pacific/Kiritimati", "1994-12-31T10:00:00Z"},
	} {
		t.Run(c.zone+" "+c.change, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 1))
			for range 10 {
				compareAround(t, r, zone(t, c.zone), instant(t, c.change), time.Minute, 27*time.Hour)
			}
		})
	}
}

func compareAround(t *testing.T, r *rand.Rand, loc *time.Location, change time.Time, step, radius time.Duration) {
	t.Helper()
	spec := randomSpec(r)
	options := cron.Options{Location: loc, Gap: cron.GapPolicy(r.IntN(3)), Overlap: cron.OverlapPolicy(r.IntN(3))}
	o := oracle{fields: append([]string{"0"}, strings.Fields(spec)...), loc: loc, step: step}
	if step == time.Second {
		o.fields[0] = randomField(r, 0, 59, 1)
		spec = o.fields[0] + " " + spec
	}
	e, err := cron.Parse(spec, options)
	if err != nil {
		return // Only a date that never comes is refused; TestRandomSpecs sees to it.
	}
	wildcard := strings.ContainsAny(o.fields[1][:1]+o.fields[2][:1], "*?")
	o.runAfter = options.Gap == cron.GapRunAfter || options.Gap == cron.GapAuto && !wildcard
	o.first = options.Overlap == cron.OverlapFirst || options.Overlap == cron.OverlapAuto && !wildcard
	from, to := change.Add(-radius).Truncate(step), change.Add(radius)
	var forward, back []time.Time
	for at := e.Next(from.Add(-1)); at.Before(to) && !at.IsZero(); at = e.Next(at) {
		forward = append(forward, at.UTC())
	}
	for at := e.Prev(to); !at.Before(from); at = e.Prev(at) {
		back = append(back, at.UTC())
	}
	slices.Reverse(back)
	where := fmt.Sprintf("%q in %s around %s, gap %s, overlap %s", spec, loc, change, options.Gap, options.Overlap)
	want := o.slots(from.UTC(), to)
	if diff := cmp.Diff(want, forward); diff != "" {
		t.Errorf("Next: %s (-want +got)\n%s", where, diff)
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("Prev: %s (-want +got)\n%s", where, diff)
	}
	for range 20 {
		at := from.Add(time.Duration(r.Int64N(int64(2*radius/step))) * step)
		if slices.ContainsFunc(want, at.Equal) != e.Belongs(at) {
			t.Errorf("Belongs(%s) = %t: %s", at, e.Belongs(at), where)
		}
	}
}
