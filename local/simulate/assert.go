package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
)

// Verdict is one assertion with what was found.
type Verdict struct {
	Schedule string `json:"schedule"`
	Assert   string `json:"assert"`
	Passed   bool   `json:"passed"`
	Found    string `json:"found"`
}

// Summary counts what a schedule did. Runs are those that were admitted.
type Summary struct {
	Name     string           `json:"name"`
	State    string           `json:"state"`
	Runs     int64            `json:"runs"`
	ByState  map[string]int64 `json:"by_state"`
	Skipped  map[string]int64 `json:"skipped"` // slots by reason
	MaxAlive int64            `json:"max_alive"`
	Warnings []string         `json:"warnings,omitempty"`
}

// Summary counts.
func (h *History) Summary() Summary {
	s := Summary{Name: h.Name, State: string(h.State), ByState: map[string]int64{}, Skipped: map[string]int64{}, MaxAlive: h.maxAlive(), Warnings: h.Warnings}
	for _, r := range h.Rows {
		if r.Run.State == core.RunSkipped {
			s.Skipped[string(r.Run.Reason)] += max(r.RangeCount, 1)
			continue
		}
		s.Runs++
		s.ByState[string(r.Run.State)]++
	}
	return s
}

// maxAlive returns how many runs were alive at the same time.
func (h *History) maxAlive() int64 {
	type change struct {
		at time.Time
		by int64
	}
	var all []change
	for _, r := range h.Rows {
		if r.Run.State == core.RunSkipped {
			continue
		}
		all = append(all, change{r.ClaimedAt, 1})
		if !r.FinishedAt.IsZero() {
			all = append(all, change{r.FinishedAt, -1})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return a.at.Compare(b.at) })
	var alive, most int64
	for i := 0; i < len(all); {
		began := all[i].at
		for ; i < len(all) && all[i].at.Equal(began); i++ {
			alive += all[i].by
		}
		most = max(most, alive)
	}
	return most
}

// reasons are those for which slots are skipped.
var reasons = []core.Reason{
	core.ReasonOverlap, core.ReasonMisfire, core.ReasonPaused, core.ReasonEdited, core.ReasonLate, core.ReasonBlackout, core.ReasonException, core.ReasonDeleted,
}

// Check holds a schedule's history to an assertion. The error names a field that is
// wrong.
func (a *Assertion) Check(h *History) ([]Verdict, error) {
	var out []Verdict
	s := h.Summary()
	add := func(passed bool, assert, found string) {
		out = append(out, Verdict{h.Name, assert, passed, found})
	}
	for _, c := range []struct {
		name  string
		value *int64
		holds func(want int64) bool
	}{
		{"runs", a.Runs, func(want int64) bool { return s.Runs == want }},
		{"at_least", a.AtLeast, func(want int64) bool { return s.Runs >= want }},
		{"at_most", a.AtMost, func(want int64) bool { return s.Runs <= want }},
	} {
		if c.value != nil {
			add(c.holds(*c.value), fmt.Sprintf("%s: %d", c.name, *c.value), fmt.Sprintf("%d runs", s.Runs))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(a.Skipped)) {
		if !slices.Contains(reasons, core.Reason(reason)) {
			return nil, core.Invalid("skipped."+reason, "is not why a slot is skipped")
		}
		want := a.Skipped[reason]
		add(s.Skipped[reason] == want, fmt.Sprintf("skipped %s: %d", reason, want), fmt.Sprintf("%d slots", s.Skipped[reason]))
	}
	if a.MaxAlive != nil {
		add(s.MaxAlive <= *a.MaxAlive, fmt.Sprintf("max_alive: %d", *a.MaxAlive), fmt.Sprintf("%d at once", s.MaxAlive))
	}
	if a.State != "" {
		add(s.State == a.State, "state: "+a.State, s.State)
	}
	if err := a.times(h, add); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, core.Invalid("", "asserts nothing; give runs, at_least, at_most, skipped, runs_at, no_runs_between, max_alive or state")
	}
	return out, nil
}

// times checks what is said of times.
func (a *Assertion) times(h *History, add func(passed bool, assert, found string)) error {
	for i, text := range a.RunsAt {
		slot, err := at(fmt.Sprintf("runs_at[%d]", i), text, h.ZoneName)
		if err != nil {
			return err
		}
		row := h.at(slot)
		found := "no slot"
		if row != nil {
			found = string(row.Run.State) + " " + string(row.Run.Reason)
		}
		add(row != nil && row.Run.State != core.RunSkipped, "runs_at: "+text, strings.TrimSpace(found))
	}
	if len(a.NoRunsBetween) == 0 {
		return nil
	}
	if len(a.NoRunsBetween) != 2 {
		return core.Invalid("no_runs_between", "must have two times")
	}
	var span Span
	for i, to := range []*time.Time{&span.From, &span.To} {
		t, err := at(fmt.Sprintf("no_runs_between[%d]", i), a.NoRunsBetween[i], h.ZoneName)
		if err != nil {
			return err
		}
		*to = t
	}
	n := 0
	for _, r := range h.Rows {
		if r.Run.State != core.RunSkipped && span.has(r.ClaimedAt) {
			n++
		}
	}
	add(n == 0, "no_runs_between: "+strings.Join(a.NoRunsBetween, " and "), fmt.Sprintf("%d runs", n))
	return nil
}

// at returns the row that stands for a slot.
func (h *History) at(slot time.Time) *Row {
	for i := range h.Rows {
		r := &h.Rows[i]
		if r.Key.Slot.Equal(slot) || !r.RangeFrom.IsZero() && !slot.Before(r.RangeFrom) && slot.Before(r.Key.Slot) {
			return r
		}
	}
	return nil
}
