package spec

import (
	"cmp"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
)

// once has a slot at each of a few instants, in order.
type once struct {
	at []time.Time
	// whys say what a clock change did to the time that was asked for, one for each
	// instant; nil if none touched it.
	whys []string
}

// Next implements Slots.
func (o once) Next(t time.Time) time.Time {
	for _, at := range o.at {
		if t.Before(at) {
			return at
		}
	}
	return time.Time{}
}

// Prev implements Slots.
func (o once) Prev(t time.Time) time.Time {
	var last time.Time
	for _, at := range o.at {
		if t.After(at) {
			last = at
		}
	}
	return last
}

// Describe implements kind.
func (o once) Describe() string {
	if len(o.at) > 1 {
		return "once in each pass of a repeated hour"
	}
	return "once"
}

// Explain implements kind.
func (o once) Explain(slot time.Time) string {
	for i, why := range o.whys {
		if o.at[i].Equal(slot) {
			return why
		}
	}
	return ""
}

// instants returns the spec of times that no clock can change.
func instants(at ...time.Time) Spec {
	texts := make([]string, len(at))
	for i := range at {
		at[i] = at[i].UTC()
		texts[i] = at[i].Format(time.RFC3339)
	}
	return Spec{
		kind: once{at: at}, Text: "at " + strings.Join(texts, " and "), Anchor: at[0], OneTime: true,
		DST: DST{core.DSTGapRunAfter, core.DSTOverlapFirst, "an instant: clock changes do not touch it, and neither policy applies"},
	}
}

func (r reader) in(text string) (Spec, error) {
	d, err := core.ParseDuration(text)
	if err != nil || d <= 0 {
		return Spec{}, r.refuse("delay", text, "not a duration above zero", `write it such as "in 3d" or "in 90s"`)
	}
	parsed := instants(r.now.Add(d).Add(time.Second - 1).Truncate(time.Second))
	parsed.Relative = true
	return parsed, nil
}

// at reads a time with an offset, one of the zone's wall clock, or the two
// instants that a stored one may have become.
func (r reader) at(text string) (Spec, error) {
	first, second, two := strings.Cut(text, " and ")
	parsed, err := r.instant(strings.TrimSpace(first))
	if err == nil && two {
		parsed, err = r.pair(parsed.Anchor, second)
	}
	if err != nil {
		return Spec{}, err
	}
	last := parsed.Prev(core.Forever)
	switch {
	case r.now.IsZero():
		return parsed, nil
	case !r.Anchor.IsZero() && !r.Anchor.Equal(parsed.Anchor):
		return Spec{}, refuseAnchor()
	case !parsed.Next(core.Forever.Add(-1)).IsZero():
		return Spec{}, r.refuse("time", text, "lies too far ahead", "use a year before 9999")
	case !last.After(r.now) && r.now.Sub(last) > r.CatchUpWithin:
		return Spec{}, r.refuse("time", text, "lies in the past",
			"to run something now, trigger it; to create late what should still fire, set catch_up_within")
	}
	return parsed, nil
}

// pair returns a spec of two instants.
func (r reader) pair(first time.Time, text string) (Spec, error) {
	second, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	if err != nil || second.Nanosecond() != 0 || !second.After(first) {
		return Spec{}, r.refuse("time", text, "not a second instant after the first", "write one time, such as at 2027-01-05T09:00")
	}
	if !r.now.IsZero() && first.In(r.loc).Format(time.DateTime) != second.In(r.loc).Format(time.DateTime) {
		return Spec{}, r.refuse("time", text, "not the same wall time as the first", "write one time, such as at 2027-01-05T09:00")
	}
	return instants(first, second), nil
}

func (r reader) instant(text string) (Spec, error) {
	text = strings.Replace(text, " ", "T", 1)
	if t, err := time.Parse(time.RFC3339, text); err == nil && t.Nanosecond() == 0 {
		return instants(t), nil
	}
	for _, layout := range []string{"2006-01-02T15:04", wallLayout} {
		if wall, err := time.Parse(layout, text); err == nil {
			return r.wall(text, wall)
		}
	}
	return Spec{}, r.refuse("time", text, "not a time of whole seconds",
		`write it such as "at 2027-01-05T09:00", in the schedule's time zone, or with an offset`)
}

const wallLayout = "2006-01-02T15:04:05"

// wall returns the instants at which the zone's clocks show a wall time, as the
// two policies choose. Its text stays the wall time, so that another zone or
// policy, or new zone data, gives it another instant.
func (r reader) wall(text string, wall time.Time) (Spec, error) {
	at := showing(wall, r.loc)
	var whys []string
	shown := strings.TrimSuffix(wall.Format(wallLayout), ":00")
	switch {
	case len(at) == 0 && r.DSTGap == core.DSTGapSkip && !r.now.IsZero():
		return Spec{}, r.refuse("time", text, "does not exist in "+r.loc.String()+": clocks skip it, and so does dst_gap",
			"choose another time, or set dst_gap to run_after")
	case len(at) == 0 && r.DSTGap == core.DSTGapSkip: // a stored one, see CheckFires
	case len(at) == 0:
		at = []time.Time{gapEnd(wall, r.loc)}
		whys = []string{shown + " does not exist: clocks skip it, and this is the first instant after the gap"}
	case len(at) > 1:
		whys = []string{shown + " comes twice: this is the first time", shown + " comes twice: this is the second time"}
		if r.DSTOverlap != core.DSTOverlapBoth {
			at, whys = at[:1], whys[:1]
		}
	}
	parsed := Spec{
		kind: once{at, whys}, Text: "at " + wall.Format(wallLayout), Anchor: r.Anchor, OneTime: true,
		DST: DST{core.DSTGapRunAfter, core.DSTOverlapFirst, "one wall time: in a gap it runs right after it, in a repeated hour the first time"},
	}
	if r.DSTGap != core.DSTGapAuto || r.DSTOverlap != core.DSTOverlapAuto {
		parsed.DST = DST{cmp.Or(r.DSTGap, parsed.DST.Gap), cmp.Or(r.DSTOverlap, parsed.DST.Overlap), "set for this schedule"}
	}
	if len(at) > 0 {
		parsed.Anchor = at[0]
	}
	return parsed, nil
}

// showing returns the instants at which loc's clocks show wall, none in a gap
// and two in a repeated hour, in order.
func showing(wall time.Time, loc *time.Location) []time.Time {
	var at []time.Time
	// The offsets in force a day before and after are all that can apply; the
	// larger one, which gives the earlier instant, is in force first.
	for _, probe := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
		_, offset := wall.Add(probe).In(loc).Zone()
		t := wall.Add(-time.Duration(offset) * time.Second).UTC()
		if _, got := t.In(loc).Zone(); got == offset && (len(at) == 0 || !t.Equal(at[0])) {
			at = append(at, t)
		}
	}
	if len(at) == 2 && at[1].Before(at[0]) {
		at[0], at[1] = at[1], at[0]
	}
	return at
}

// gapEnd returns the first instant after the gap that wall lies in: the end of
// the offset that is in force before it.
func gapEnd(wall time.Time, loc *time.Location) time.Time {
	_, offset := wall.Add(-26 * time.Hour).In(loc).Zone()
	_, end := wall.Add(-time.Duration(offset) * time.Second).Add(-26 * time.Hour).In(loc).ZoneBounds()
	return end.UTC()
}
