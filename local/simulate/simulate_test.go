package simulate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/policytest"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/core/spec"
	"github.com/fencepost/fencepost/local/simulate"
)

func ptr[T any](v T) *T { return &v }

var targets = map[string]core.Target{"test": core.Handler(nil)}

func fields(text string, change func(*schedules.Fields)) schedules.Fields {
	f := schedules.Fields{Name: ptr("a"), Spec: &text, TimeZone: ptr("Europe/Berlin"), Job: &core.Job{Queue: "test", Payload: []byte("{}")}}
	if change != nil {
		change(&f)
	}
	return f
}

func clock(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

// TestEverySlotIsAccountedFor plays random schedules over clock changes and outages:
// each slot is in one row or to come, no row is early, runs are not alive together
// unless overlap is allow.
func TestEverySlotIsAccountedFor(t *testing.T) {
	t.Parallel()
	specs := []string{"* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "every 90s", "every 25m", "0 */5 * * * *", "15,45 1-4 * * *"}
	misfires := []core.Misfire{core.MisfireRunOnce, core.MisfireSkip, core.MisfireRunAll}
	overlaps := []core.Overlap{core.OverlapSkip, core.OverlapAllow, core.OverlapQueueOne, core.OverlapCancelPrevious}
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			from := []time.Time{clock("2026-03-28T20:00:00Z"), clock("2026-10-24T20:00:00Z")}[r.IntN(2)].Add(time.Duration(r.IntN(3600)) * time.Second)
			s := simulate.Scenario{Span: simulate.Span{From: from, To: from.Add(10 * time.Hour)}}
			for range r.IntN(3) {
				begin := from.Add(time.Duration(r.IntN(8*3600)) * time.Second)
				s.Outages = append(s.Outages, simulate.Span{From: begin, To: begin.Add(time.Duration(1+r.IntN(3*3600)) * time.Second)})
			}
			c := policytest.Cell{Misfire: misfires[r.IntN(3)], Overlap: overlaps[r.IntN(4)]}
			if c.Misfire == core.MisfireRunAll && c.Overlap == core.OverlapCancelPrevious {
				c.Overlap = core.OverlapSkip
			}
			f := fields(specs[r.IntN(len(specs))], func(f *schedules.Fields) {
				f.Misfire, f.Overlap, f.Anchor = &c.Misfire, &c.Overlap, nil
				if r.IntN(3) == 0 {
					f.CatchUpWithin = ptr(time.Duration(1+r.IntN(30)) * time.Minute)
				}
			})
			job := simulate.Job{RunTime: time.Duration(r.IntN(1200)) * time.Second, Fail: r.IntN(3)}
			h, err := simulate.Play(t.Context(), s, f, targets, nil, job)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := spec.Load(&core.Schedule{Spec: *f.Spec, TimeZone: *f.TimeZone, ID: h.ID})
			if err != nil {
				t.Fatal(err)
			}
			e := policytest.Event{}
			end := h.Next
			for slot := parsed.Next(from); slot.Before(end); slot = parsed.Next(slot) {
				e.Slots = append(e.Slots, slot)
			}
			var runs []core.Run
			for _, row := range h.Rows {
				run := row.Run
				if run.FinishedAt.IsZero() {
					run.FinishedAt = s.To.Add(time.Hour)
				}
				runs = append(runs, run)
				for _, o := range s.Outages {
					if !row.ClaimedAt.Before(o.From) && row.ClaimedAt.Before(o.To) {
						t.Errorf("the row of %s was made in an outage", run.Key.Slot)
					}
				}
			}
			for _, fault := range e.Faults(c, runs) {
				t.Errorf("%s %s %s: %s", *f.Spec, c.Misfire, c.Overlap, fault)
			}
		})
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	from := clock("2026-06-01T00:00:00Z")
	s := simulate.Scenario{Span: simulate.Span{From: from, To: from.Add(6 * time.Hour)}}
	for name, c := range map[string]struct {
		change func(*schedules.Fields)
		job    simulate.Job
		state  core.RunState
		reason core.Reason
		tries  int
	}{
		"succeeds":       {nil, simulate.Job{RunTime: time.Minute}, core.RunSucceeded, "", 1},
		"fails once":     {nil, simulate.Job{Fail: 1}, core.RunSucceeded, "", 2},
		"fails always":   {func(f *schedules.Fields) { f.MaxAttempts = ptr(3) }, simulate.Job{Fail: 9}, core.RunDead, core.ReasonExhausted, 3},
		"takes too long": {func(f *schedules.Fields) { f.Timeout, f.MaxAttempts = ptr(time.Minute), ptr(2) }, simulate.Job{RunTime: time.Hour}, core.RunDead, core.ReasonTimeout, 2},
		"in all":         {func(f *schedules.Fields) { f.Timeout, f.TotalTimeout = ptr(time.Duration(0)), ptr(time.Minute) }, simulate.Job{RunTime: time.Hour}, core.RunDead, core.ReasonTotal, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := simulate.Play(t.Context(), s, fields("at 2026-06-01T03:00:00Z", c.change), targets, nil, c.job)
			if err != nil || len(h.Rows) != 1 {
				t.Fatalf("%+v, %v", h, err)
			}
			if r := h.Rows[0].Run; r.State != c.state || r.Reason != c.reason || r.Attempt != c.tries || h.State != core.ScheduleCompleted {
				t.Errorf("the run is %s (%s) after %d attempts, the schedule %s", r.State, r.Reason, r.Attempt, h.State)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	s := simulate.Scenario{Span: simulate.Span{From: clock("2026-06-01T00:00:00Z"), To: clock("2027-06-01T00:00:00Z")}}
	if _, err := simulate.Play(t.Context(), s, fields("every 1s", nil), targets, nil, simulate.Job{}); err == nil {
		t.Error("a year of seconds is played")
	}
	var ce *core.Error
	if _, err := simulate.Play(t.Context(), s, fields("60 * * * *", nil), targets, nil, simulate.Job{}); !errors.As(err, &ce) || ce.Field != "spec" {
		t.Errorf("a wrong spec: %v", err)
	}
	h, err := simulate.Play(t.Context(), s, fields("0 0 1 * *", nil), targets, nil, simulate.Job{})
	if err != nil || len(h.Rows) != 12 {
		t.Errorf("a year of months: %v", err)
	}
}
