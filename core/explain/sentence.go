package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
)

// ofRun says how a run fared.
func (f *Facts) ofRun(r *core.Run) string {
	how := ""
	if r.Cause == core.CauseCatchUp {
		how = fmt.Sprintf(" to catch up, %s after the slot", core.FormatDuration(r.CreatedAt.Sub(r.Key.Slot).Truncate(time.Second)))
	}
	attempts := "the first attempt"
	if r.Attempt > 1 {
		attempts = fmt.Sprintf("attempt %d", r.Attempt)
	}
	switch r.State {
	case core.RunSucceeded:
		return fmt.Sprintf("ran%s: %s succeeded at %s", how, attempts, f.clock(r.FinishedAt))
	case core.RunRunning:
		return fmt.Sprintf("is running%s: %s began at %s", how, attempts, f.clock(r.StartedAt))
	case core.RunRetrying:
		return fmt.Sprintf("is tried again%s at %s: %s of %d failed: %s", how, f.clock(r.WakeAt), attempts, r.MaxAttempts, firstLine(r.Error))
	case core.RunQueued:
		return fmt.Sprintf("is queued%s on %s since %s: no executor has started it; fencepost doctor tells whether one serves that queue", how, r.Queue, f.clock(r.CreatedAt))
	case core.RunDead:
		return fmt.Sprintf("ran%s and failed: %s was the last (%s): %s; fencepost runs redrive tries it again", how, attempts, dead[r.Reason], firstLine(r.Error))
	}
	return "was canceled: " + canceled(&f.Cur.Schedule, r)
}

// dead says why a run is not tried again.
var dead = map[core.Reason]string{
	core.ReasonExhausted: "retry.max_attempts is used up",
	core.ReasonPermanent: "the job said that trying again cannot help",
	core.ReasonTimeout:   "it took longer than timeout, and retry.max_attempts is used up",
	core.ReasonLost:      "its executor was lost, and retry.max_attempts is used up",
	core.ReasonTotal:     "total_timeout has passed",
}

func canceled(s *core.Schedule, r *core.Run) string {
	switch r.Reason {
	case core.ReasonLate:
		return fmt.Sprintf("it could not start within catch_up_within %s", core.FormatDuration(s.CatchUpWithin))
	case core.ReasonReplaced:
		return "a newer slot came while it was alive (overlap cancel_previous)"
	case core.ReasonDeleted:
		return "the schedule was deleted"
	}
	return "somebody asked for it"
}

// ofSkip says why a recorded slot was skipped, and notes the other run.
func (f *Facts) ofSkip(s *Slot) string {
	sch := &f.Cur.Schedule
	switch s.Run.Reason {
	case core.ReasonMisfire:
		return f.misfire(s)
	case core.ReasonOverlap:
		s.Other = f.Before
		return f.overlap(s)
	case core.ReasonPaused:
		return "the schedule was paused"
	case core.ReasonEdited:
		return "an edit replaced the spec before the slot was claimed"
	case core.ReasonDeleted:
		return "the schedule was deleted before the slot was claimed"
	case core.ReasonLate:
		return fmt.Sprintf("catch_up_within %s had passed when a claimer came", core.FormatDuration(sch.CatchUpWithin))
	}
	return f.skipped(s.Run.Reason, s.ScheduledFor)
}

// misfire explains a slot that nobody claimed in its time.
func (f *Facts) misfire(s *Slot) string {
	text := fmt.Sprintf("nobody claimed it in its time, misfire_grace %s included", core.FormatDuration(f.Cur.Schedule.MisfireGrace))
	if n := f.Next; f.Cur.Schedule.Misfire == core.MisfireRunOnce && n != nil && n.State != core.RunSkipped && n.CreatedAt.Equal(s.Run.CreatedAt) {
		s.Other = n
		return text + fmt.Sprintf("; the run of %s, which %s, stands in for it", f.clock(n.Key.Slot), stateWords(n.State))
	}
	switch f.Cur.Schedule.Misfire {
	case core.MisfireRunAll:
		return text + fmt.Sprintf("; it was beyond the misfire_cap of the newest %d", misfireCap(&f.Cur.Schedule))
	case core.MisfireSkip:
		return text + "; misfire skip runs no missed slot, run_once would run the newest"
	}
	return text
}

func misfireCap(s *core.Schedule) int {
	if s.Rules.MisfireCap > 0 {
		return s.Rules.MisfireCap
	}
	return core.DefaultMisfireCap
}

// overlap explains a slot that met a live run.
func (f *Facts) overlap(s *Slot) string {
	met := "a run was alive"
	if s.Other != nil {
		met = fmt.Sprintf("the run of %s was alive", f.clock(s.Other.Key.Slot))
	}
	switch f.Cur.Schedule.Overlap {
	case core.OverlapQueueOne:
		return met + ", and a slot waited for it already (overlap queue_one)"
	case core.OverlapCancelPrevious:
		return met + ", and a newer slot came before it had ended (overlap cancel_previous)"
	case core.OverlapAllow:
		return met + ", and overlap was not allow then"
	}
	return met + " (overlap skip); queue_one would have let it wait, allow would have run both"
}

// skipped says why a slot is not run whatever else happens.
func (f *Facts) skipped(why core.Reason, slot time.Time) string {
	r := &f.Cur.Schedule.Rules
	switch why {
	case core.ReasonPaused:
		text := "the schedule is paused"
		if !r.PausedUntil.IsZero() {
			text += " until " + f.clock(r.PausedUntil)
		}
		if r.PauseNote != "" {
			text += fmt.Sprintf(" (%s)", r.PauseNote)
		}
		return text
	case core.ReasonException:
		if e := f.Cur.Schedule.Exception(slot); e != nil && e.Note != "" {
			return fmt.Sprintf("an exception skips this one slot (%s)", e.Note)
		}
		return "an exception skips this one slot"
	case core.ReasonBlackout:
		if name, _ := f.Slots.Closed(slot); name != "" {
			return "calendar " + name + " closes it"
		}
		return "a calendar closed it"
	case core.ReasonLate:
		return fmt.Sprintf("catch_up_within %s has passed", core.FormatDuration(f.Cur.Schedule.CatchUpWithin))
	}
	return string(why)
}

// stateWords says of a run in which state it is.
func stateWords(s core.RunState) string {
	switch s {
	case core.RunSucceeded:
		return "succeeded"
	case core.RunDead:
		return "failed"
	case core.RunCanceled:
		return "was canceled"
	}
	return "is " + string(s)
}

// rangeCount says how many slots a row stands for.
func rangeCount(r *core.Run) string {
	if r.RangeCount >= core.MaxRangeCount {
		return fmt.Sprintf("at least %d", r.RangeCount)
	}
	return fmt.Sprint(r.RangeCount)
}

// firstLine keeps a sentence on one line.
func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > 200 {
		line, more = strings.ToValidUTF8(line[:200], ""), true
	}
	if more {
		line += " ..."
	}
	return line
}
