package e2e_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// A run that somebody asks for starts within 3 seconds, although the API knows
// no queue: the sweep finds it.
func TestTriggerStartsSoon(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(w *world) {
		ahead := w.now().Truncate(time.Second).Add(30 * time.Minute)
		id := w.seed(1, "every 1h", ahead, ahead.Add(-time.Second), nil)[0]
		box, done := newMailbox(w), &tally{}
		w.claimer(w.db, box, nil)
		w.executor(w.db, box, done, nil)
		asked, err := w.service(w.db).Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
		w.must(err)

		r := w.succeeded(1)[0]
		if lag := r.StartedAt.Sub(asked.CreatedAt); lag < 0 || lag > 3*time.Second {
			w.Errorf("the run started %s after it was asked for", lag)
		}
		if r.Cause != string(core.CauseManual) || !r.ScheduledFor.Equal(asked.Key.Slot) {
			w.Errorf("the run is %+v, want the manual one that was asked for", r)
		}
		if n := w.count("timers WHERE fire_at = $1", ahead); n != 1 {
			w.Errorf("the trigger moved the timer")
		}
	})
}

// A schedule of a second fires each second: no slot is left out, none starts
// early, and nearly all start in their own second.
func TestEverySecond(t *testing.T) {
	t.Parallel()
	const seconds = 10
	eachLevel(t, func(w *world) {
		first := w.now().Truncate(time.Second).Add(2 * time.Second)
		w.seed(1, "every 1s", first, first.Add(-time.Second), func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
		box, done := newMailbox(w), &tally{}
		stopClaimer := w.claimer(w.db, box, nil)
		stopExecutor := w.executor(w.db, box, done, nil)
		w.until("10 seconds have been settled", func() bool {
			return w.count("timers WHERE done >= $1", first.Add((seconds-1)*time.Second)) == 1
		})
		stopClaimer()
		w.until("all runs have succeeded", func() bool { return w.count("runs WHERE state NOT IN ('succeeded', 'skipped')") == 0 })
		stopExecutor()

		var latest time.Duration
		own := 0
		for _, r := range w.runs() {
			if r.StartedAt == nil {
				continue
			}
			own++
			lag := r.StartedAt.Sub(r.ScheduledFor)
			if lag < 0 {
				w.Errorf("the run of %s started %s early", r.ScheduledFor, -lag)
			}
			latest = max(latest, lag)
		}
		if latest > 3*time.Second || own < seconds*8/10 {
			w.Errorf("%d of %d slots have a run of their own, and the latest started after %s", own, seconds, latest)
		}
		w.noGaps()
	})
}

// noGaps checks that the rows of each schedule of a second cover every slot
// from its first to the one its timer has settled, none of them twice.
func (w *world) noGaps() {
	w.Helper()
	last := map[string]time.Time{}
	for _, r := range w.runs() {
		id := r.ScheduleID.String()
		from := r.ScheduledFor
		if r.RangeFrom != nil {
			from = *r.RangeFrom
			if slots := r.ScheduledFor.Sub(from)/time.Second + 1; int(slots) != r.RangeCount {
				w.Errorf("schedule %s: the range from %s to %s counts %d slots", id, from, r.ScheduledFor, r.RangeCount)
			}
		}
		if before, ok := last[id]; ok && !from.Equal(before.Add(time.Second)) {
			w.Errorf("schedule %s: after the slot %s comes %s", id, before, from)
		}
		last[id] = r.ScheduledFor
	}
	settled := map[string]time.Time{}
	for _, s := range w.settled() {
		settled[s.ScheduleID.String()] = s.Done
	}
	for id, slot := range last {
		if !slot.Equal(settled[id]) {
			w.Errorf("schedule %s: settled up to %s, and the last row is for %s", id, settled[id], slot)
		}
	}
}
