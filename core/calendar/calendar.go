// Package calendar reads the closed times of a calendar and answers, for any
// instant, whether it is in one of them.
//
// An instant is closed when the zone's clocks show a closed time: what a clock
// change repeats is closed both times, and what it skips is nothing.
package calendar

import (
	"cmp"
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
)

const (
	day  = 24 * 60 * 60
	week = 7 * day
	// epoch is the second of the week, counted from Sunday, at which wall time
	// begins: 1970-01-01 was a Thursday.
	epoch = 4 * day
)

// span is closed from a wall second to another one, which is open again. Wall
// seconds are those since 1970-01-01 on clocks without changes, or those since
// Sunday.
type span struct{ from, to int64 }

// Calendar is a calendar ready to be asked. It is immutable and safe for
// concurrent use; the zero value has no name and is never closed.
type Calendar struct {
	name string
	loc  *time.Location
	// Both are in order and apart from each other.
	once   []span
	weekly []span // seconds of the week
}

var _ core.Closing = (*Calendar)(nil)

// New reads a calendar. The errors name the field, as in ranges[2].to.
func New(name string, c core.CalendarContent) (*Calendar, error) {
	loc, err := cron.LoadLocation(c.TimeZone)
	if err != nil {
		return nil, refuseZone(err)
	}
	out := &Calendar{name: name, loc: loc}
	if err := out.readOnce(c); err != nil {
		return nil, err
	}
	if err := out.readWeekly(c.Weekly); err != nil {
		return nil, err
	}
	out.once, out.weekly = merge(out.once), merge(out.weekly)
	if len(out.weekly) == 1 && out.weekly[0] == (span{0, week}) {
		return nil, core.Invalid("weekly", "leaves no open time; to stop schedules altogether, pause them")
	}
	return out, nil
}

// Name implements core.Closing.
func (c *Calendar) Name() string { return c.name }

// merge puts spans in order and joins those that touch.
func merge(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out []span
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Closed implements core.Closing.
func (c *Calendar) Closed(t time.Time) (closed bool, until time.Time) {
	local := t.In(c.loc)
	_, offset := local.Zone()
	wall := t.Unix() + int64(offset)
	closed, change := c.at(wall)
	if change == never {
		return closed, time.Time{}
	}
	until = time.Unix(t.Unix()+change-wall, 0).UTC()
	// Behind a clock change the clocks show something else.
	if _, end := local.ZoneBounds(); !end.IsZero() && end.Before(until) {
		until = end.UTC()
	}
	return closed, until
}

// never stands for a change that does not come.
const never = int64(1<<63 - 1)

// at reports whether a wall second is closed, and when that may change.
func (c *Calendar) at(wall int64) (closed bool, change int64) {
	once, change := within(c.once, wall)
	if len(c.weekly) == 0 {
		return once, change
	}
	second := ((wall+epoch)%week + week) % week
	weekly, next := within(c.weekly, second)
	switch first := c.weekly[0]; {
	case next == never: // on to the first one of the next week
		next = week + first.from
	case weekly && next == week && first.from == 0:
		next = week + first.to
	}
	return once || weekly, min(change, wall-second+next)
}

// within reports whether a second is in one of the spans, and where the span, or
// the time before the next one, ends.
func within(all []span, second int64) (inside bool, end int64) {
	i, _ := slices.BinarySearchFunc(all, second, func(s span, at int64) int {
		if s.to <= at {
			return -1
		}
		return 1
	})
	switch {
	case i == len(all):
		return false, never
	case all[i].from <= second:
		return true, all[i].to
	}
	return false, all[i].from
}
