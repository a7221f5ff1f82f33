package spec

import "time"

// bounded are slots of which those before from, and those at or after to, do not
// exist. A zero bound is none.
type bounded struct {
	kind
	from, to time.Time
}

// Next implements Slots.
func (b bounded) Next(t time.Time) time.Time {
	if t.Before(b.from) {
		t = b.from.Add(-time.Nanosecond)
	}
	next := b.kind.Next(t)
	if !b.to.IsZero() && !next.Before(b.to) {
		return time.Time{}
	}
	return next
}

// Prev implements Slots.
func (b bounded) Prev(t time.Time) time.Time {
	if !b.to.IsZero() && b.to.Before(t) {
		t = b.to
	}
	prev := b.kind.Prev(t)
	if prev.Before(b.from) {
		return time.Time{}
	}
	return prev
}
