package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

var id = uuid.MustParse("018f0000-0000-7000-8000-000000000001")

func clock(s string) time.Time {
	t, err := time.Parse(time.TimeOnly, s)
	if err != nil {
		panic(err)
	}
	return time.Date(2026, 12, 1, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

func schedule(text string) (*core.Schedule, spec.Spec) {
	s := &core.Schedule{
		ID: id, Spec: text, Misfire: core.MisfireRunOnce, MisfireGrace: time.Minute, Overlap: core.OverlapSkip,
		MaxAttempts: 5, Job: core.Job{Queue: "q"},
	}
	slots, err := spec.Parse(s, clock("00:00:00"))
	if err != nil {
		panic(err)
	}
	s.Spec, s.Anchor = slots.Text, slots.Anchor
	return s, slots
}

// short renders a move's rows for comparison.
func short(rows []core.PlannedRow) []string {
	var out []string
	for _, r := range rows {
		s := r.Slot.Format(time.TimeOnly) + " " + string(r.Cause)
		if r.Skipped {
			s += " skipped " + string(r.Reason)
		}
		if !r.RangeFrom.IsZero() {
			s += " from " + r.RangeFrom.Format(time.TimeOnly)
		}
		out = append(out, s)
	}
	return out
}

func TestMove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, done, fireAt, now string
		rows                    []string
		next, until             string
	}{
		"planned ahead":          {"0 * * * *", "08:00:00", "09:00:00", "08:59:30", []string{"09:00:00 schedule"}, "10:00:00", "09:01:00"},
		"on time":                {"0 * * * *", "08:00:00", "09:00:00", "09:00:01", []string{"09:00:00 schedule"}, "10:00:00", "09:01:00"},
		"late within the grace":  {"0 * * * *", "08:00:00", "09:00:00", "09:00:59", []string{"09:00:00 schedule"}, "10:00:00", "09:01:00"},
		"late":                   {"0 * * * *", "08:00:00", "09:00:00", "09:02:00", []string{"09:00:00 catch_up"}, "10:00:00", "09:03:00"},
		"two missed":             {"0 * * * *", "08:00:00", "09:00:00", "10:30:00", []string{"09:00:00 schedule skipped misfire", "10:00:00 catch_up"}, "11:00:00", "10:31:00"},
		"ten and a half minutes": {"* * * * *", "08:00:00", "08:01:00", "08:11:30", []string{"08:10:00 schedule skipped misfire from 08:01:00", "08:11:00 schedule"}, "08:12:00", "08:12:00"},
		"zone moved the slot":    {"0 10 * * *", "08:00:00", "09:00:00", "09:00:00", nil, "10:00:00", "10:00:00"},
		"parked an hour ahead":   {"0 * * * *", "08:00:00", "09:30:00", "09:30:00", []string{"09:00:00 catch_up"}, "10:00:00", "09:31:00"},
		"each second":            {"every 1s", "08:00:00", "08:00:01", "08:00:00", []string{"08:00:01 schedule"}, "08:00:02", "08:01:01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, slots := schedule(c.spec)
			m := plan.Move(s, &core.Timer{FireAt: clock(c.fireAt), Done: clock(c.done), Fence: 7}, slots, clock(c.now))
			if diff := cmp.Diff(c.rows, short(m.Rows)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if !m.NextAt.Equal(clock(c.next)) || !m.ValidUntil.Equal(clock(c.until)) || m.Fence != 7 {
				t.Errorf("next %s until %s, want %s and %s", m.NextAt, m.ValidUntil, c.next, c.until)
			}
		})
	}
}

func TestMoveOfAFiredOneTimeSchedule(t *testing.T) {
	t.Parallel()
	s, slots := schedule("in 1h")
	m := plan.Move(s, &core.Timer{FireAt: clock("01:00:00"), Done: clock("00:00:00")}, slots, clock("01:00:00"))
	if len(m.Rows) != 1 || !m.NextAt.Equal(core.Forever) {
		t.Errorf("got %+v, want one run and then never", m)
	}
	again := plan.Move(s, &core.Timer{FireAt: core.Forever, Done: m.Done}, slots, clock("02:00:00"))
	if len(again.Rows) != 0 {
		t.Errorf("a fired one-time schedule fires again: %+v", again)
	}
}

func TestRangeIsCountedUpToItsBound(t *testing.T) {
	t.Parallel()
	s, slots := schedule("every 1s")
	m := plan.Move(s, &core.Timer{FireAt: clock("00:00:01"), Done: clock("00:00:00")}, slots, clock("12:00:00"))
	if len(m.Rows) != 2 || m.Rows[0].RangeCount != core.MaxRangeCount {
		t.Errorf("got %+v", m.Rows)
	}
	m = plan.Move(s, &core.Timer{FireAt: clock("00:00:01"), Done: clock("00:00:00")}, slots, clock("00:01:41"))
	if m.Rows[0].RangeCount != 100 {
		t.Errorf("100 skipped slots are counted as %d", m.Rows[0].RangeCount)
	}
}

// ledger records the row that each slot ends in.
type ledger struct {
	t     *rapid.T
	slots spec.Spec
	rows  map[time.Time]string
}

func (l *ledger) add(rows []core.PlannedRow) {
	for _, r := range rows {
		first := r.RangeFrom
		if first.IsZero() {
			first = r.Slot
		}
		for s := first; !s.After(r.Slot); s = l.slots.Next(s) {
			if before, ok := l.rows[s]; ok {
				l.t.Fatalf("slot %s has two rows: %s and %+v", s.Format(time.TimeOnly), before, r)
			}
			l.rows[s] = string(r.Cause) + " " + string(r.Reason)
		}
	}
}

// TestEverySlotHasOneRow: however late the claims come and whatever edits,
// pauses and resumes come between them, each slot ends in exactly one row (C1,
// C4), none early (C3).
func TestEverySlotHasOneRow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, slots := schedule(rapid.SampledFrom([]string{"* * * * *", "*/7 * * * *", "every 45s", "every 10s", "5 * * * *"}).Draw(t, "spec"))
		s.Window = time.Duration(rapid.SampledFrom([]int{0, 0, 30, 200}).Draw(t, "window")) * time.Second
		begin := clock("01:00:00")
		now := begin
		l := &ledger{t: t, slots: slots, rows: map[time.Time]string{}}
		timer := core.Timer{Fence: 1, Done: now}
		timer.FireAt, _ = plan.First(s, slots, now)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
			cur := &core.Scheduled{Schedule: *s, Timer: timer, Now: now}
			var e core.Edit
			switch rapid.SampledFrom([]string{"claim", "claim", "claim", "pause", "resume", "window", "touch"}).Draw(t, "what") {
			case "claim":
				if s.Paused || timer.FireAt.After(now) {
					continue
				}
				m := plan.Move(s, &timer, slots, now)
				for _, r := range m.Rows {
					if r.Slot.Add(s.Offset()).After(now) {
						t.Fatalf("slot %s was planned early, at %s", r.Slot, now)
					}
				}
				if !m.ValidUntil.After(now) && m.ValidUntil.After(timer.FireAt.Add(s.MisfireGrace)) {
					t.Fatalf("a fresh plan is void: until %s at %s", m.ValidUntil, now)
				}
				l.add(m.Rows)
				timer.FireAt, timer.Done = m.NextAt, m.Done
				continue
			case "pause":
				if s.Paused {
					continue
				}
				e = plan.Pause(cur, slots, time.Time{}, "")
			case "resume":
				if !s.Paused {
					continue
				}
				e = plan.Resume(cur, slots)
			case "window":
				next := *s
				next.Window = time.Duration(rapid.SampledFrom([]int{0, 20, 500}).Draw(t, "window")) * time.Second
				e = plan.Edit(cur, plan.Change{Old: *s, New: next, OldSlots: slots, NewSlots: slots})
			case "touch": // the same slots under another name, as a change of zone can be
				e = plan.Edit(cur, plan.Change{Old: *s, New: *s, OldSlots: slots, NewSlots: slots, SlotsChanged: true})
			}
			if !e.ValidUntil.After(now) {
				t.Fatalf("an edit is void from the start: until %s at %s", e.ValidUntil, now)
			}
			l.add(e.Settle)
			*s = e.Schedule
			if e.MoveTimer {
				timer.FireAt, timer.Done = e.NextAt, e.Done
			}
		}
		for slot := slots.Next(begin); !slot.After(timer.Done); slot = slots.Next(slot) {
			if _, ok := l.rows[slot]; !ok {
				t.Fatalf("slot %s is settled and has no row", slot.Format(time.TimeOnly))
			}
		}
		for slot := range l.rows {
			if slot.After(timer.Done) {
				t.Fatalf("slot %s has a row and is not settled", slot.Format(time.TimeOnly))
			}
		}
	})
}
