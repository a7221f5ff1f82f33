package policytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
)

// reader reads one file of the table, line by line.
type reader struct {
	events []Event
	e      *Event
	// open are the indexes of the cells that the next rows belong to; rows says
	// that some have come.
	open []int
	rows bool
}

func parse(text string) ([]Event, error) {
	var r reader
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := r.line(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return r.events, nil
}

func (r *reader) line(line string) error {
	if name, ok := strings.CutPrefix(line, "== "); ok {
		r.events = append(r.events, Event{Name: name, Jobs: map[time.Time]Job{}})
		r.e, r.open, r.rows = &r.events[len(r.events)-1], nil, false
		return nil
	}
	if r.e == nil {
		return fmt.Errorf("%q stands before the first event", line)
	}
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case r.e.Story == "":
		r.e.Story = line
		return nil
	case word == "-":
		return r.cells(rest)
	case len(r.open) > 0:
		r.rows = true
		for _, i := range r.open {
			r.e.Cells[i].Rows = append(r.e.Cells[i].Rows, line)
		}
		return nil
	}
	return r.head(word, rest)
}

// head reads a line above the cells.
func (r *reader) head(word, rest string) (err error) {
	switch word {
	case "day":
		r.e.day, err = time.Parse(time.DateOnly, rest)
	case "spec":
		r.e.Spec = rest
	case "zone":
		r.e.Zone = rest
	case "cap":
		r.e.Cap, err = strconv.Atoi(rest)
	case "slots":
		for _, text := range strings.Fields(rest) {
			slot, err := r.e.time(text)
			if err != nil {
				return err
			}
			r.e.Slots = append(r.e.Slots, slot)
		}
	case "job":
		return r.job(strings.Fields(rest))
	default:
		return r.step(word, rest)
	}
	return err
}

func (r *reader) job(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("a job needs a slot and how it goes")
	}
	slot, err := r.e.time(words[0])
	if err != nil {
		return err
	}
	j := Job{How: Way(words[1])}
	if !slices.Contains([]Way{Queued, Running, Deaf, Retrying, Dead}, j.How) {
		return fmt.Errorf("no job goes %q", j.How)
	}
	if j.How != Dead {
		if j.Until, err = r.e.time(words[len(words)-1]); err != nil {
			return err
		}
	}
	r.e.Jobs[slot] = j
	return nil
}

func (r *reader) step(at, rest string) error {
	var s Step
	var err error
	if s.At, err = r.e.time(at); err != nil {
		return err
	}
	for _, deed := range []Deed{Create, ClaimLost, AnswerLost, Claim, Rest, Crash, Edit, Pause, Resume, End} {
		if arg, ok := strings.CutPrefix(rest, string(deed)); ok {
			s.Do, s.Arg = deed, strings.TrimSpace(arg)
			break
		}
	}
	if s.Do == "" {
		return fmt.Errorf("nobody can %q", rest)
	}
	if s.Do == Pause && s.Arg != "" {
		until, err := r.e.time(s.Arg)
		if err != nil {
			return err
		}
		s.Arg = until.Format(time.RFC3339)
	}
	if n := len(r.e.Steps); n > 0 && s.At.Before(r.e.Steps[n-1].At) {
		return fmt.Errorf("%s is not in the order of time", at)
	}
	r.e.Steps = append(r.e.Steps, s)
	return nil
}

// cells reads "misfire: overlaps". Several such lines in a row share their rows.
func (r *reader) cells(text string) error {
	misfire, overlaps, ok := strings.Cut(text, ": ")
	if !ok {
		return fmt.Errorf("%q is no line of cells", text)
	}
	if r.rows {
		r.open, r.rows = nil, false
	}
	for _, o := range strings.Fields(overlaps) {
		c := Cell{Misfire: core.Misfire(misfire), Overlap: core.Overlap(o)}
		if slices.ContainsFunc(r.e.Cells, func(x Cell) bool { return x.Misfire == c.Misfire && x.Overlap == c.Overlap }) {
			return fmt.Errorf("%s with %s has two answers", c.Misfire, c.Overlap)
		}
		r.open = append(r.open, len(r.e.Cells))
		r.e.Cells = append(r.e.Cells, c)
	}
	return nil
}

// time reads a time of the event's day, or of another day of its year.
func (e *Event) time(text string) (time.Time, error) {
	full := text
	if !strings.Contains(text, "T") {
		full = e.day.Format("01-02T") + text
	}
	if strings.Count(full, ":") == 1 {
		full += ":00"
	}
	t, err := time.Parse("2006-01-02T15:04:05", e.day.Format("2006-")+full)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no time: %w", text, err)
	}
	return t, nil
}

// short writes a time as the table does.
func (e *Event) short(t time.Time) string {
	layout := "15:04"
	if t.Second() != 0 {
		layout = "15:04:05"
	}
	if t.Truncate(24*time.Hour) != e.day {
		layout = "01-02T" + layout
	}
	return t.Format(layout)
}
