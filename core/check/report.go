package check

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Bounds are what is allowed. The zero value of each is its default.
type Bounds struct {
	Skew     time.Duration // between clocks; defaults to 50 ms
	Lag      time.Duration // from a slot, with its spread, to a start; defaults to 5 s
	Recovery time.Duration // after a heal; defaults to 30 s
	Lease    time.Duration // of a run; defaults to 30 s
	// Settle is how long a run may take once it is claimed, with all its attempts;
	// defaults to 2 min.
	Settle time.Duration
}

func (b Bounds) withDefaults() Bounds {
	b.Skew = cmp.Or(b.Skew, 50*time.Millisecond)
	b.Lag = cmp.Or(b.Lag, 5*time.Second)
	b.Recovery = cmp.Or(b.Recovery, 30*time.Second)
	b.Lease = cmp.Or(b.Lease, 30*time.Second)
	b.Settle = cmp.Or(b.Settle, 2*time.Minute)
	return b
}

// The verdicts.
const (
	Passed  = "passed"
	Failed  = "failed"
	Unknown = "unknown"
)

// Verdict is what became of one rule.
type Verdict struct {
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
	// Judged is how many things were looked at; with none the rule is unknown.
	Judged int `json:"judged"`
	// Evidence are the first violations, each with the events it rests on; or why
	// nothing is known.
	Evidence []string `json:"evidence,omitempty"`
	// Violations is how many there are.
	Violations int `json:"violations"`
}

// Report has a verdict for each rule, in their order.
type Report struct {
	Verdicts []Verdict `json:"verdicts"`
}

// OK reports whether no rule was violated.
func (r *Report) OK() bool { return len(r.Failed()) == 0 }

// Failed returns the rules that were violated, in their order.
func (r *Report) Failed() []string {
	var out []string
	for _, v := range r.Verdicts {
		if v.Verdict == Failed {
			out = append(out, v.Rule)
		}
	}
	return out
}

// Print writes a table and a line that says how many passed.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	counts := map[string]int{}
	for _, v := range r.Verdicts {
		counts[v.Verdict]++
		fmt.Fprintf(t, "%s\t%s\t%d judged\t%s\n", v.Rule, v.Verdict, v.Judged, strings.Join(v.Evidence[:min(1, len(v.Evidence))], ""))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d passed, %d failed, %d unknown\n", counts[Passed], counts[Failed], counts[Unknown])
	return err
}

// maxEvidence bounds what is told of one rule.
const maxEvidence = 10

// judge collects what one rule found.
type judge struct{ v Verdict }

func (j *judge) looked() { j.v.Judged++ }

func (j *judge) violation(format string, args ...any) {
	j.v.Violations++
	if len(j.v.Evidence) < maxEvidence {
		j.v.Evidence = append(j.v.Evidence, fmt.Sprintf(format, args...))
	}
}

func (j *judge) verdict() Verdict {
	switch {
	case j.v.Violations > 0:
		j.v.Verdict = Failed
	case j.v.Judged == 0:
		j.v.Verdict = Unknown
		if len(j.v.Evidence) == 0 {
			j.v.Evidence = []string{"nothing in the logs to judge it by"}
		}
	default:
		j.v.Verdict = Passed
	}
	return j.v
}

// Check judges a history.
func Check(h *History, b Bounds) (*Report, error) {
	c, err := newCase(h, b.withDefaults())
	if err != nil {
		return nil, err
	}
	r := &Report{}
	for _, rule := range []struct {
		name string
		do   func(*judge)
	}{
		{"C1", c.everySlot}, {"C2", c.misfires}, {"C3", c.neverEarly}, {"C4", c.oneRow}, {"C5", c.fences}, {"C6", c.stale}, {"C7", c.attempts},
		{"C8", c.afterPause}, {"C9", c.allEnd}, {"C10", c.overlaps}, {"C11", c.pages}, {"C12", c.lag}, {"C13", c.spread}, {"C14", c.silence},
	} {
		j := &judge{v: Verdict{Rule: rule.name}}
		rule.do(j)
		r.Verdicts = append(r.Verdicts, j.verdict())
	}
	r.Verdicts = append(r.Verdicts, evidence(r.Verdicts))
	return r, nil
}

// evidence judges the verdicts themselves: C15.
func evidence(all []Verdict) Verdict {
	j := &judge{v: Verdict{Rule: "C15"}}
	for _, v := range all {
		j.looked()
		if v.Verdict != Passed && len(v.Evidence) == 0 {
			j.violation("%s is %s without evidence", v.Rule, v.Verdict)
		}
	}
	return j.verdict()
}
