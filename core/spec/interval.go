package spec

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/core"
)

func (r reader) interval(text string) (Spec, error) {
	d, err := core.ParseDuration(text)
	if err != nil || d%time.Second != 0 || d < core.MinInterval {
		return Spec{}, r.refuse("interval", text, "not a duration of whole seconds, at least 1s", `write it such as "every 15m" or "every 1h30m"`)
	}
	if r.Anchor.Nanosecond() != 0 {
		return Spec{}, core.Invalid("anchor", "must be a whole second")
	}
	if r.Anchor.IsZero() && !r.now.IsZero() {
		r.anchor(r.Rules.StartsAt)
	}
	origin := r.Anchor
	if origin.IsZero() {
		phase := core.Hash("phase", r.ID) % uint64(d/time.Second)
		origin = time.Unix(int64(phase), 0)
	}
	return Spec{
		kind: interval{origin: origin.UTC(), every: d}, Text: "every " + core.FormatDuration(d), Anchor: r.Anchor, Hint: dayHint(d), FromID: r.Anchor.IsZero(),
		DST: DST{core.DSTGapSkip, core.DSTOverlapBoth, "elapsed time: clock changes do not touch it"},
	}, nil
}

// anchor sets the origin of a new interval that begins at a time: its first slot
// is then that time.
func (r *reader) anchor(at time.Time) {
	if !at.IsZero() && at.Nanosecond() == 0 {
		with := *r.Schedule
		with.Anchor = at
		r.Schedule = &with
	}
}

// dayHint names the cron form for those who wrote days and meant the same time
// of each day.
func dayHint(d time.Duration) string {
	const day = 24 * time.Hour
	var form string
	switch {
	case d%day != 0:
		return ""
	case d == day:
		form = "0 9 * * *"
	case d == 7*day:
		form = "0 9 * * MON"
	default:
		return fmt.Sprintf(`%d hours of elapsed time, so that its time of day moves with clock changes; a cron expression such as "0 9 */%d * *" keeps it, but counts from the 1st of each month`,
			d/time.Hour, d/day)
	}
	return fmt.Sprintf(`%d hours of elapsed time, so that its time of day moves with clock changes; for the same time of day in the time zone write a cron expression such as %q`,
		d/time.Hour, form)
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

// Next implements Slots.
// Next has no slot from core.Forever on: that is the sentinel of timers.
func (i interval) Next(t time.Time) time.Time {
	if next := i.slot(i.index(t) + 1); next.Before(core.Forever) {
		return next
	}
	return time.Time{}
}

// Prev implements Slots.
func (i interval) Prev(t time.Time) time.Time {
	n := i.index(t)
	if s := i.slot(n); s.Before(t) {
		return s
	}
	return i.slot(n - 1)
}

// Describe implements kind.
func (i interval) Describe() string {
	return "every " + core.FormatDuration(i.every) + " of elapsed time"
}

// Explain implements kind: clock changes do not touch elapsed time.
func (i interval) Explain(time.Time) string { return "" }
