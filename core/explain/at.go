package explain

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
)

// At is the instant that somebody asked about.
type At struct {
	time.Time
	// Asked is what they wrote; empty if they wrote nothing, which is now.
	Asked string
	// Note says what the clocks of the zone did to a wall time; mostly empty.
	Note string
}

// wallLayouts are the forms of a time on the clocks of the schedule's zone.
var wallLayouts = [...]string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// ParseAt reads an instant, RFC 3339, or a time on the clocks of an IANA zone. The
// empty text is now. A wall time that a clock change skipped is read as if the
// clocks had not changed; of one that came twice the first is meant.
func ParseAt(text, zone string, now time.Time) (At, error) {
	loc, err := Zone(zone)
	switch {
	case err != nil:
		return At{}, fmt.Errorf("load the time zone: %w", err)
	case text == "":
		return At{Time: now.UTC()}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return bounded(At{Time: t.UTC(), Asked: text})
	}
	for _, layout := range wallLayouts {
		wall, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		at, note := resolve(wall, loc)
		return bounded(At{Time: at, Asked: text, Note: note})
	}
	return At{}, core.Invalid("at", `must be a time such as "2026-03-29T01:00:00Z", or "2026-03-29T02:30" on the clocks of the schedule's zone`)
}

// Zone returns the clocks of an IANA zone; the empty name is UTC.
func Zone(name string) (*time.Location, error) { return cron.LoadLocation(name) }

// bounded refuses times that no slot can have.
func bounded(at At) (At, error) {
	if at.Year() < 1970 || !at.Before(core.Forever) {
		return At{}, core.Invalid("at", "must be between the years 1970 and 9999")
	}
	return at, nil
}

// resolve returns the first instant at which the clocks of a zone show a wall time,
// which is given as UTC, and what is special about it.
func resolve(wall time.Time, loc *time.Location) (time.Time, string) {
	offset := func(t time.Time) time.Duration {
		_, seconds := t.In(loc).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(wall.Add(-36*time.Hour)), offset(wall.Add(36*time.Hour))
	first, second := wall.Add(-max(before, after)), wall.Add(-min(before, after))
	shows := func(t time.Time) bool { return t.Add(offset(t)).Equal(wall) }
	clock := wall.Format("15:04")
	switch {
	case before == after:
		return first, ""
	case shows(first) && shows(second):
		return first, fmt.Sprintf("%s came twice on that day in %s: at %s and at %s; this is about the first", clock, loc, utc(first), utc(second))
	case shows(first):
		return first, ""
	case shows(second):
		return second, ""
	}
	return wall.Add(-before), fmt.Sprintf("%s did not exist on that day in %s: the clocks went over it", clock, loc)
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }
