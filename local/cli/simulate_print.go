package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/local/simulate"
	"github.com/fencepost/fencepost/local/terminal"
)

// line is a row of a schedule.
type line struct {
	h *simulate.History
	r *simulate.Row
}

// lines returns all rows in the order in which they were made.
func (p *played) lines() []line {
	var all []line
	for _, h := range p.histories {
		for i := range h.Rows {
			all = append(all, line{h, &h.Rows[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b line) int {
		return cmp.Or(a.r.ClaimedAt.Compare(b.r.ClaimedAt), a.r.Key.Slot.Compare(b.r.Key.Slot))
	})
	return all
}

// print prints the rows, what each schedule did, and the assertions.
func (p *played) print(most int) error {
	all := p.lines()
	const layout = "2006-01-02 15:04:05 -07:00"
	var rows [][]string
	for _, l := range all[:min(len(all), most)] {
		slot := l.r.Key.Slot.In(l.h.Zone).Format(layout)
		if !l.r.RangeFrom.IsZero() {
			slot = l.r.RangeFrom.In(l.h.Zone).Format(layout) + " .. " + slot
		}
		rows = append(rows, []string{l.r.ClaimedAt.In(l.h.Zone).Format(layout), l.h.Name, slot, l.r.Sentence})
	}
	if err := p.printTable([]string{"CLAIMED", "SCHEDULE", "SLOT", "WHAT"}, rows); err != nil {
		return err
	}
	if len(all) > most {
		fmt.Fprintf(p.Out, "%d more rows; --rows prints more\n", len(all)-most)
	}
	for _, h := range p.histories {
		fmt.Fprintln(p.Out, terminal.Printable(summaryLine(h)))
		for _, w := range h.Warnings {
			fmt.Fprintln(p.Out, terminal.Printable("  note: "+w))
		}
	}
	for _, v := range p.verdicts {
		word := "passed"
		if !v.Passed {
			word = "FAILED"
		}
		fmt.Fprintln(p.Out, terminal.Printable(fmt.Sprintf("%s  %s  %s  (%s)", word, v.Schedule, v.Assert, v.Found)))
	}
	return nil
}

func summaryLine(h *simulate.History) string {
	s := h.Summary()
	text := fmt.Sprintf("%s: %s", s.Name, plural(int(s.Runs), "run", "runs"))
	for _, state := range []string{"succeeded", "dead", "canceled", "running", "retrying", "queued"} {
		if n := s.ByState[state]; n > 0 && n != s.Runs {
			text += fmt.Sprintf(", %d %s", n, state)
		} else if n > 0 && state != "succeeded" {
			text += ", all " + state
		}
	}
	var skipped []string
	for reason, n := range s.Skipped {
		skipped = append(skipped, fmt.Sprintf("%d skipped (%s)", n, reason))
	}
	slices.Sort(skipped)
	for _, part := range skipped {
		text += ", " + part
	}
	text += "; " + s.State
	if !h.Next.IsZero() && h.Next.Before(core.Forever) && h.State == core.ScheduleActive {
		text += ", next slot " + h.Next.In(h.Zone).Format("2006-01-02 15:04:05 -07:00")
	}
	return text
}

// simulatedRow is a row in the JSON document.
type simulatedRow struct {
	Schedule   string     `json:"schedule"`
	ClaimedAt  time.Time  `json:"claimed_at"`
	Slot       time.Time  `json:"scheduled_for"`
	RangeFrom  *time.Time `json:"range_from,omitempty"`
	RangeCount int64      `json:"range_count,omitempty"`
	State      string     `json:"state"`
	Cause      string     `json:"cause"`
	Reason     string     `json:"reason,omitempty"`
	Attempts   int        `json:"attempts,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	CoversFrom *time.Time `json:"covers_from,omitempty"`
	CoversTo   *time.Time `json:"covers_to,omitempty"`
	Sentence   string     `json:"sentence"`
}

// document is all that was found, for programs.
func (p *played) document() any {
	out := struct {
		From       time.Time          `json:"from"`
		To         time.Time          `json:"to"`
		Rows       []simulatedRow     `json:"rows"`
		Schedules  []simulate.Summary `json:"schedules"`
		Assertions []simulate.Verdict `json:"assertions"`
	}{p.scenario.From.UTC(), p.scenario.To.UTC(), []simulatedRow{}, []simulate.Summary{}, append([]simulate.Verdict{}, p.verdicts...)}
	when := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	for _, l := range p.lines() {
		r := &l.r.Run
		out.Rows = append(out.Rows, simulatedRow{
			Schedule: l.h.Name, ClaimedAt: l.r.ClaimedAt, Slot: r.Key.Slot, RangeFrom: when(r.RangeFrom), RangeCount: r.RangeCount, State: string(r.State),
			Cause: string(r.Cause), Reason: string(r.Reason), Attempts: r.Attempt, FinishedAt: when(r.FinishedAt),
			CoversFrom: when(r.CoversFrom), CoversTo: when(r.CoversTo), Sentence: l.r.Sentence,
		})
	}
	for _, h := range p.histories {
		out.Schedules = append(out.Schedules, h.Summary())
	}
	return out
}
