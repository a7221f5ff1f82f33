package check

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// oneRow is C4.
func (c *docket) oneRow(j *judge) {
	for id, rows := range c.runs {
		for i := range rows {
			r := &rows[i]
			j.looked()
			if i > 0 && rows[i-1].ScheduledFor.Equal(r.ScheduledFor) && rows[i-1].Cause != "backfill" && r.Cause != "backfill" &&
				(rows[i-1].Cause == "manual") == (r.Cause == "manual") {
				j.violation("%s and %s are both of slot %s of %s", rows[i-1].ID, r.ID, stamp(r.ScheduledFor), id)
			}
			if r.RangeFrom == nil {
				continue
			}
			for k := range rows[:i] {
				o := &rows[k]
				if o.Cause != "manual" && o.Cause != "backfill" && !o.ScheduledFor.Before(*r.RangeFrom) {
					j.violation("%s, of slot %s, lies in the range of %s", o.ID, stamp(o.ScheduledFor), r.ID)
				}
			}
		}
	}
	for i, e := range c.Executions {
		j.looked()
		if c.byID[e.Run] == nil {
			j.violation("execution %d is of %s, which has no row", i, e.Run)
		}
	}
}

// fences is C5.
func (c *docket) fences(j *judge) {
	for run, all := range c.executions {
		for i := range all {
			j.looked()
			if i == 0 {
				continue
			}
			older, newer := &all[i-1], &all[i]
			if newer.Fence <= older.Fence || newer.Attempt <= older.Attempt {
				j.violation("%s: attempt %d has fence %d, attempt %d has %d", run, older.Attempt, older.Fence, newer.Attempt, newer.Fence)
			}
			if newer.Begin.Before(older.Begin.Add(-c.b.Skew)) {
				j.violation("%s: fence %d began at %s, before fence %d", run, newer.Fence, stamp(newer.Begin), older.Fence)
			}
			over := older.End.IsZero() || older.End.After(newer.Begin.Add(c.b.Skew))
			if over && newer.Begin.Before(older.Begin.Add(c.b.Lease-c.b.Skew)) && !c.gone(older) {
				j.violation("%s: fence %d began at %s, while fence %d, from %s on, was at work and its lease of %s not over",
					run, newer.Fence, stamp(newer.Begin), older.Fence, stamp(older.Begin), c.b.Lease)
			}
		}
	}
}

// gone reports whether an execution without an end may have been cut off: its process
// was killed, or handed it back.
func (c *docket) gone(e *Execution) bool {
	return e.HandedBack || e.End.IsZero() && c.faulty(e.Begin, e.Begin.Add(c.b.Lease))
}

// stale is C6: what a run says of itself is the work of its last holder. Jobs return
// their fence, as {"fence": n}.
func (c *docket) stale(j *judge) {
	for i := range c.Runs {
		r := &c.Runs[i]
		all := c.executions[r.ID]
		if r.State != "succeeded" || len(all) == 0 {
			continue
		}
		j.looked()
		last := all[len(all)-1]
		if last.Fence != r.Fence {
			j.violation("%s succeeded under fence %d, its last execution has %d", r.ID, r.Fence, last.Fence)
		}
		if last.Failed {
			j.violation("%s succeeded although its last execution, of fence %d, failed", r.ID, last.Fence)
		}
		var said struct{ Fence int64 }
		if len(bytes.TrimSpace(r.Result)) > 0 && json.Unmarshal(r.Result, &said) == nil && said.Fence != 0 && said.Fence != r.Fence {
			j.violation("%s has the result of fence %d, it succeeded under %d", r.ID, said.Fence, r.Fence)
		}
	}
}

// maxCredits is how many attempts may be handed back without counting.
const maxCredits = 3

// attempts is C7.
func (c *docket) attempts(j *judge) {
	for i := range c.Runs {
		r := &c.Runs[i]
		j.looked()
		all := c.executions[r.ID]
		counted := r.Attempt
		for _, e := range all {
			if e.HandedBack && r.Attempt-counted < maxCredits {
				counted--
			}
		}
		if counted > r.MaxAttempts {
			j.violation("%s took %d attempts that count, %d are allowed", r.ID, counted, r.MaxAttempts)
		}
		if len(all) > r.Attempt {
			j.violation("%s says %d attempts, its job ran %d times", r.ID, r.Attempt, len(all))
		}
		if !r.final() || r.FinishedAt == nil {
			continue
		}
		for _, e := range all {
			if e.Begin.After(r.FinishedAt.Add(c.b.Skew)) {
				j.violation("%s is %s since %s, and its job began again at %s", r.ID, r.State, stamp(*r.FinishedAt), stamp(e.Begin))
			}
		}
	}
}

// afterPause is C8.
func (c *docket) afterPause(j *judge) {
	for id, periods := range c.periods {
		for i := range periods {
			p := &periods[i]
			if p.State != "paused" && p.State != "deleted" {
				continue
			}
			j.looked()
			for _, r := range c.runs[id] {
				after := r.CreatedAt.After(p.begun.Add(c.b.Skew)) && r.CreatedAt.Before(p.end)
				if after && r.State != "skipped" && r.Cause != "manual" && r.Cause != "backfill" {
					j.violation("%s was made at %s, after operation %d was answered at %s", r.ID, stamp(r.CreatedAt), p.op, stamp(p.begun))
				}
				for _, e := range c.executions[r.ID] {
					// A start may be on its way to the job when the deletion is answered.
					underway := r.StartedAt != nil && !r.StartedAt.After(p.begun.Add(c.b.Skew))
					if p.State == "deleted" && e.Begin.After(p.begun.Add(c.b.Skew)) && !underway {
						j.violation("%s began at %s, after its schedule was deleted by operation %d at %s", r.ID, stamp(e.Begin), p.op, stamp(p.begun))
					}
				}
			}
		}
	}
}

// allEnd is C9.
func (c *docket) allEnd(j *judge) {
	for i := range c.Runs {
		r := &c.Runs[i]
		j.looked()
		if limit := c.by(r.CreatedAt, c.b.Settle); !r.final() && !limit.After(c.End) {
			j.violation("%s, made at %s, is still %s; it had to end by %s", r.ID, stamp(r.CreatedAt), r.State, stamp(limit))
		}
	}
}

// overlaps is C10: unless overlap is allowed, no two runs of a schedule are alive at
// once. Runs from before a stricter edit are exempt, and those of backfills.
func (c *docket) overlaps(j *judge) {
	for id, rows := range c.runs {
		var lives []Run
		for _, r := range rows {
			if r.State != "skipped" && r.Cause != "backfill" {
				lives = append(lives, r)
			}
		}
		slices.SortFunc(lives, func(a, b Run) int { return a.CreatedAt.Compare(b.CreatedAt) })
		for i := 1; i < len(lives); i++ {
			p := c.at(id, lives[i].CreatedAt)
			if p == nil || p.Overlap == "allow" || c.wasAllowed(id, lives[i].CreatedAt) {
				continue
			}
			j.looked()
			if before := endOf(lives[:i], c.End); before.After(lives[i].CreatedAt.Add(c.b.Skew)) {
				j.violation("%s was made at %s, while a run before it was alive, under overlap %s", lives[i].ID, stamp(lives[i].CreatedAt), p.Overlap)
			}
		}
	}
}

// endOf returns when the last of some runs ended.
func endOf(runs []Run, end time.Time) time.Time {
	var last time.Time
	for _, r := range runs {
		if r.FinishedAt == nil {
			return end.Add(forever)
		}
		last = later(last, *r.FinishedAt)
	}
	return last
}

// wasAllowed reports whether overlap may have been allowed before.
func (c *docket) wasAllowed(id string, t time.Time) bool {
	return slices.ContainsFunc(c.periods[id], func(p period) bool { return p.Overlap == "allow" && !p.begin.After(t) })
}

// pages is C11.
func (c *docket) pages(j *judge) {
	for i, p := range c.Pages {
		j.looked()
		seen := map[string]bool{}
		for _, id := range p.Runs {
			if seen[id] {
				j.violation("walk %d holds %s twice", i, id)
			}
			seen[id] = true
		}
		for _, r := range c.runs[p.Schedule] {
			if r.CreatedAt.Before(p.Begin.Add(-c.b.Skew)) && !seen[r.ID] {
				j.violation("walk %d, begun at %s, does not hold %s, made at %s", i, stamp(p.Begin), r.ID, stamp(r.CreatedAt))
			}
		}
	}
}
