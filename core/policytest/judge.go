package policytest

import (
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/core"
)

// Rows writes a schedule's runs, which are given oldest slot first, in the form of
// the table.
func (e *Event) Rows(runs []core.Run) []string {
	out := make([]string, len(runs))
	for i, r := range runs {
		slot := e.short(r.Key.Slot)
		if !r.RangeFrom.IsZero() {
			slot = e.short(r.RangeFrom) + ".." + slot
		}
		out[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s %s", slot, r.State, r.Cause, r.Reason))
	}
	return out
}

// Faults returns what is wrong with a history whatever the policy: a slot that is
// in no row, in two or in one that is not of it, a row that was made early, and runs
// that were alive together although overlap is not allow.
func (e *Event) Faults(c Cell, runs []core.Run) []string {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	covered := map[int64]int64{} // rows of each slot
	for _, r := range runs {
		from := r.RangeFrom
		if from.IsZero() {
			from = r.Key.Slot
		}
		n := int64(0)
		for _, slot := range e.Slots {
			if !slot.Before(from) && !slot.After(r.Key.Slot) {
				covered[slot.Unix()]++
				n++
			}
		}
		if n != max(r.RangeCount, 1) {
			complain("the row of %s stands for %d slots, and %d came", e.short(r.Key.Slot), max(r.RangeCount, 1), n)
		}
		if r.CreatedAt.Before(r.Key.Slot) {
			complain("the row of %s was made early", e.short(r.Key.Slot))
		}
	}
	for _, slot := range e.Slots {
		if n := covered[slot.Unix()]; n != 1 {
			complain("%d rows stand for %s", n, e.short(slot))
		}
	}
	if c.Overlap != core.OverlapAllow {
		wrong = append(wrong, e.together(runs)...)
	}
	return wrong
}

// together returns which runs were alive at the same time.
func (e *Event) together(runs []core.Run) []string {
	var wrong []string
	for i, a := range runs {
		for _, b := range runs[i+1:] {
			if a.State == core.RunSkipped || b.State == core.RunSkipped {
				continue
			}
			aFirst := !a.FinishedAt.IsZero() && !a.FinishedAt.After(b.CreatedAt)
			bFirst := !b.FinishedAt.IsZero() && !b.FinishedAt.After(a.CreatedAt)
			if !aFirst && !bFirst {
				wrong = append(wrong, fmt.Sprintf("the runs of %s and %s were alive together", e.short(a.Key.Slot), e.short(b.Key.Slot)))
			}
		}
	}
	return wrong
}
