package schedules

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

var (
	misfires = []core.Misfire{core.MisfireRunOnce, core.MisfireSkip, core.MisfireRunAll}
	overlaps = []core.Overlap{core.OverlapSkip, core.OverlapAllow, core.OverlapQueueOne, core.OverlapCancelPrevious}
)

// The bounds of the rules.
const (
	maxMisfireCap = 10_000
	maxMaxRuns    = 1_000_000_000
	maxKeep       = 10 * 365 * 24 * time.Hour
	maxNoteBytes  = 500
)

// setRules copies the given rules.
func setRules(f Fields, to *core.Rules) {
	set(f.MisfireCap, &to.MisfireCap)
	set(f.StartsAt, &to.StartsAt)
	set(f.EndsAt, &to.EndsAt)
	set(f.MaxRuns, &to.MaxRuns)
	set(f.KeepCompleted, &to.KeepCompleted)
	set(f.DeleteAfterCompletion, &to.DeleteAfterCompletion)
	if to.MisfireCap == core.DefaultMisfireCap { // the default has one form
		to.MisfireCap = 0
	}
	if to.KeepCompleted == core.DefaultKeepCompleted {
		to.KeepCompleted = 0
	}
}

// checkRules refuses rules that are wrong or contradict each other.
func checkRules(s *core.Schedule) error {
	r := &s.Rules
	switch {
	case r.MisfireCap < 0 || r.MisfireCap > maxMisfireCap:
		return core.Invalid("misfire_cap", "must be from 1 to %d", maxMisfireCap)
	case r.MisfireCap != 0 && s.Misfire != core.MisfireRunAll:
		return core.Invalid("misfire_cap", "goes with misfire run_all only; the other policies run one missed slot at most")
	case s.Misfire == core.MisfireRunAll && s.Overlap == core.OverlapCancelPrevious:
		return core.Invalid("overlap", "cancel_previous contradicts misfire run_all: each missed run would cancel the one before")
	case !r.StartsAt.IsZero() && !r.EndsAt.IsZero() && !r.EndsAt.After(r.StartsAt):
		return core.Invalid("ends_at", "must be after starts_at")
	case r.MaxRuns < 0 || r.MaxRuns > maxMaxRuns:
		return core.Invalid("max_runs", "must be from 1 to %d, or 0 for no limit", maxMaxRuns)
	case r.KeepCompleted < 0 || r.KeepCompleted > maxKeep:
		return core.Invalid("keep_completed", "must be from 0s, which is the default of %s, to %s", core.FormatDuration(core.DefaultKeepCompleted), core.FormatDuration(maxKeep))
	case r.KeepCompleted > 0 && r.DeleteAfterCompletion:
		return core.Invalid("keep_completed", "contradicts delete_after_completion, which keeps nothing")
	}
	return nil
}

// looks bounds how many slots are looked at to find the smallest gap.
const looks = 10

// checkWindow refuses a window that is longer than the time between two slots:
// starts would be out of order with the slots after them.
func checkWindow(s *core.Schedule, parsed spec.Spec, now time.Time) error {
	if s.Window == 0 || parsed.OneTime {
		return nil
	}
	gap := smallestGap(parsed, now)
	if gap > 0 && s.Window > gap {
		return core.Invalid("window", "is longer than the time between two slots, which is %s", core.FormatDuration(gap))
	}
	return nil
}

// smallestGap returns the smallest time between two of the next slots, zero if
// there are not two.
func smallestGap(slots spec.Slots, now time.Time) time.Duration {
	var gap time.Duration
	last := slots.Next(now)
	for range looks {
		next := slots.Next(last)
		if last.IsZero() || next.IsZero() {
			break
		}
		if d := next.Sub(last); gap == 0 || d < gap {
			gap = d
		}
		last = next
	}
	return gap
}

// waits is how soon a slot that waits for a run looks again.
const waits = 2 * time.Second

// Warnings says in sentences what is legitimate and may surprise.
func Warnings(cur *core.Scheduled, slots spec.Slots) []string {
	var all []string
	s, now := &cur.Schedule, cur.Now
	gap := smallestGap(slots, now)
	if name := cur.MissingCalendar(); name != "" {
		all = append(all, fmt.Sprintf("calendar %s does not exist or cannot be read: nothing runs until it can, or until it is taken from calendars", name))
	} else if len(s.Rules.Calendars) > 0 && cur.State() == core.ScheduleActive && plan.NextStart(cur, slots).IsZero() {
		all = append(all, "calendars close every slot, as far as they were looked at")
	}
	if s.Overlap == core.OverlapAllow {
		all = append(all, "overlap allow: runs may be side by side, so that no run is told which interval of data it covers")
	}
	if gap > 0 && gap <= waits && s.Misfire == core.MisfireRunAll && s.Overlap != core.OverlapAllow {
		all = append(all, fmt.Sprintf("misfire run_all with overlap %s: missed slots run one after the other, each up to %s after the one before; at one slot each %s they may not be caught up with",
			s.Overlap, core.FormatDuration(waits), core.FormatDuration(gap)))
	}
	if gap > 0 && s.CatchUpWithin > 0 && s.Spread() >= s.CatchUpWithin {
		all = append(all, "catch_up_within is not longer than the spread of starts: slots can be late before they may start")
	}
	return all
}

// checkPause refuses a pause that is none.
func checkPause(o PauseOptions, now time.Time) error {
	switch {
	case !o.Until.IsZero() && !o.Until.After(now):
		return core.Invalid("until", "lies in the past; leave it out to pause until a resume")
	case !o.Until.IsZero() && !o.Until.Before(core.Forever):
		return core.Invalid("until", "lies too far ahead; leave it out to pause until a resume")
	case len(o.Note) > maxNoteBytes:
		return core.Invalid("note", "is longer than %d bytes", maxNoteBytes)
	}
	return nil
}

// PauseOptions say how a pause ends and what for it is. The zero value lasts until
// a resume.
type PauseOptions struct {
	// Until ends the pause by itself: slots from then on are run.
	Until time.Time
	Note  string
}
