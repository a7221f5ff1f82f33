// Package spec reads a schedule's spec, whichever of the three kinds it is, and
// answers when the next slot comes.
package spec

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
)

// MaxBytes bounds the text of a spec.
const MaxBytes = 256

// Slots answers when slots come. Values are immutable and safe for concurrent
// use; all times are UTC.
type Slots interface {
	// Next returns the first slot after t, the zero time if there is none.
	Next(t time.Time) time.Time
	// Prev returns the last slot before t, the zero time if there is none.
	Prev(t time.Time) time.Time
}

// Spec is a parsed spec. Only Parse and Load make one.
type Spec struct {
	Slots
	// Text is the normalized form, which Load reads back.
	Text string
	// Anchor is the instant of a one-time spec and the origin of an interval;
	// the zero time for cron, and for an interval whose phase is a hash.
	Anchor time.Time
	// OneTime is set when there is only one slot.
	OneTime bool
}

// Parse reads a spec as a user wrote it: a cron expression, "every 15m",
// "at 2027-01-05T09:00" (in the zone) or "in 3d" (from now, which is the
// database's time). id gives an interval without an anchor its phase. Errors
// name the field spec, time_zone or anchor.
func Parse(text, zone string, anchor, now time.Time, id uuid.UUID) (Spec, error) {
	loc, err := cron.LoadLocation(zone)
	if err != nil {
		return Spec{}, core.Invalid("time_zone", "%s", err)
	}
	if len(text) > MaxBytes {
		return Spec{}, core.Invalid("spec", "is longer than %d bytes", MaxBytes)
	}
	text = strings.TrimSpace(text)
	word, rest, _ := strings.Cut(text, " ")
	kind := strings.ToLower(word)
	if !anchor.IsZero() && kind != "every" && kind != "@every" {
		return Spec{}, core.Invalid("anchor", `goes with an interval only, such as "every 15m"`)
	}
	switch kind {
	case "every", "@every":
		return parseEvery(rest, anchor, id)
	case "at":
		return parseAt(rest, loc, now)
	case "in":
		return parseIn(rest, now)
	}
	return parseCron(text, loc, id)
}

// Load reads a spec back from its stored form. What Parse accepted once loads
// for ever.
func Load(text, zone string, anchor time.Time, id uuid.UUID) (Spec, error) {
	if strings.HasPrefix(text, "at ") {
		return oneTime(anchor), nil
	}
	return Parse(text, zone, anchor, time.Time{}, id)
}

func parseCron(text string, loc *time.Location, id uuid.UUID) (Spec, error) {
	e, err := cron.Parse(text, cron.Options{Location: loc, Salt: core.Hash("cron", id)})
	if err != nil {
		return Spec{}, core.Invalid("spec", "%s", err)
	}
	return Spec{Slots: e, Text: e.String()}, nil
}

func parseEvery(text string, anchor time.Time, id uuid.UUID) (Spec, error) {
	d, err := core.ParseDuration(text)
	if err != nil || d%time.Second != 0 || d < core.MinInterval {
		return Spec{}, core.Invalid("spec", `"every" needs a duration of whole seconds, at least 1s, such as "every 15m"`)
	}
	if anchor.Nanosecond() != 0 {
		return Spec{}, core.Invalid("anchor", "must be a whole second")
	}
	origin := anchor
	if origin.IsZero() {
		phase := core.Hash("phase", id) % uint64(d/time.Second)
		origin = time.Unix(int64(phase), 0)
	}
	return Spec{Slots: interval{origin: origin.UTC(), every: d}, Text: "every " + core.FormatDuration(d), Anchor: anchor}, nil
}

func parseIn(text string, now time.Time) (Spec, error) {
	d, err := core.ParseDuration(text)
	if err != nil || d <= 0 {
		return Spec{}, core.Invalid("spec", `"in" needs a duration, such as "in 3d"`)
	}
	return oneTime(now.Add(d).Add(time.Second - 1).Truncate(time.Second)), nil
}

func parseAt(text string, loc *time.Location, now time.Time) (Spec, error) {
	at, ok := parseInstant(strings.TrimSpace(text), loc)
	if !ok {
		return Spec{}, core.Invalid("spec", `"at" needs a time such as "at 2027-01-05T09:00", in the schedule's time zone, or with an offset`)
	}
	if !at.After(now) {
		return Spec{}, core.Invalid("spec", `"at" lies in the past; to run something now, trigger it`)
	}
	if !at.Before(core.Forever) {
		return Spec{}, core.Invalid("spec", `"at" lies too far ahead`)
	}
	return oneTime(at), nil
}

func parseInstant(text string, loc *time.Location) (time.Time, bool) {
	text = strings.Replace(text, " ", "T", 1)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC(), t.Nanosecond() == 0
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if wall, err := time.Parse(layout, text); err == nil {
			return fromWall(wall, loc), true
		}
	}
	return time.Time{}, false
}

// fromWall returns the instant at which loc's clocks show wall: the first of
// two when clocks go back, the end of the gap when they skip it.
func fromWall(wall time.Time, loc *time.Location) time.Time {
	var best time.Time
	// Every offset in force within a day of the wall time is tried; the
	// earliest instant that shows the wall time wins.
	for _, probe := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
		_, offset := wall.Add(probe).In(loc).Zone()
		t := wall.Add(-time.Duration(offset) * time.Second)
		if _, got := t.In(loc).Zone(); got == offset && (best.IsZero() || t.Before(best)) {
			best = t
		}
	}
	if !best.IsZero() {
		return best.UTC()
	}
	// No instant shows it: it lies in a gap, which ends where the offset in
	// force before it does.
	_, offset := wall.Add(-26 * time.Hour).In(loc).Zone()
	_, end := wall.Add(-time.Duration(offset) * time.Second).Add(-26 * time.Hour).In(loc).ZoneBounds()
	return end.UTC()
}

func oneTime(at time.Time) Spec {
	at = at.UTC()
	return Spec{Slots: once{at}, Text: "at " + at.Format(time.RFC3339), Anchor: at, OneTime: true}
}

// once has a single slot.
type once struct{ at time.Time }

func (o once) Next(t time.Time) time.Time {
	if t.Before(o.at) {
		return o.at
	}
	return time.Time{}
}

func (o once) Prev(t time.Time) time.Time {
	if t.After(o.at) {
		return o.at
	}
	return time.Time{}
}

// interval has a slot at origin and every so often before and after it, in
// elapsed time: it never drifts and knows nothing of wall clocks.
type interval struct {
	origin time.Time
	every  time.Duration
}

// index returns the number of the last slot at or before t.
func (i interval) index(t time.Time) int64 {
	seconds := t.Unix() - i.origin.Unix()
	every := int64(i.every / time.Second)
	n := seconds / every
	if seconds%every < 0 {
		n--
	}
	return n
}

func (i interval) slot(n int64) time.Time {
	return time.Unix(i.origin.Unix()+n*int64(i.every/time.Second), 0).UTC()
}

func (i interval) Next(t time.Time) time.Time { return i.slot(i.index(t) + 1) }

func (i interval) Prev(t time.Time) time.Time {
	n := i.index(t)
	if s := i.slot(n); s.Before(t) {
		return s
	}
	return i.slot(n - 1)
}
