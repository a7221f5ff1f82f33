package explain_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/explain"
	"github.com/fencepost/fencepost/core/spec"
)

func clock(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

func TestParseAt(t *testing.T) {
	t.Parallel()
	now := clock("2026-12-01T10:00:00Z")
	for _, c := range []struct{ text, zone, want, note string }{
		{"", "Europe/Berlin", "2026-12-01T10:00:00Z", ""},
		{"2026-03-29T02:30:00+01:00", "Europe/Berlin", "2026-03-29T01:30:00Z", ""},
		{"2026-07-01T02:30", "Europe/Berlin", "2026-07-01T00:30:00Z", ""},
		{"2026-07-01 02:30:15", "", "2026-07-01T02:30:15Z", ""},
		{"2026-07-01", "America/New_York", "2026-07-01T04:00:00Z", ""},
		{"2026-03-29T01:59:59", "Europe/Berlin", "2026-03-29T00:59:59Z", ""},
		{"2026-03-29T02:00", "Europe/Berlin", "2026-03-29T01:00:00Z", "did not exist"},
		{"2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:30:00Z", "did not exist"},
		{"2026-03-29T03:00", "Europe/Berlin", "2026-03-29T01:00:00Z", ""},
		{"2026-10-25T01:59", "Europe/Berlin", "2026-10-24T23:59:00Z", ""},
		{"2026-10-25T02:00", "Europe/Berlin", "2026-10-25T00:00:00Z", "came twice"},
		{"2026-10-25T02:59", "Europe/Berlin", "2026-10-25T00:59:00Z", "came twice"},
		{"2026-10-25T03:00", "Europe/Berlin", "2026-10-25T02:00:00Z", ""},
		{"2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:45:00Z", "did not exist"},
		{"2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", "came twice"},
		{"2026-09-06", "America/Santiago", "2026-09-06T04:00:00Z", "did not exist"},
	} {
		got, err := explain.ParseAt(c.text, c.zone, now)
		if err != nil || !got.Equal(clock(c.want)) || !strings.Contains(got.Note, c.note) || (c.note == "") != (got.Note == "") || got.Asked != c.text {
			t.Errorf("%q in %s: %s, %q, %v; want %s", c.text, c.zone, got.Time, got.Note, err, c.want)
		}
	}
	for _, text := range []string{"now", "2026-02-30", "25:00", "1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "2026-03-29T02:30Z junk"} {
		var ce *core.Error
		if _, err := explain.ParseAt(text, "", now); !errors.As(err, &ce) || ce.Field != "at" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// facts are those of the slot of ten o'clock of an hourly schedule that has settled
// everything up to noon.
func facts(t *testing.T, change func(*explain.Facts)) explain.Facts {
	t.Helper()
	cur := &core.Scheduled{
		Schedule: core.Schedule{
			ID: uuid.MustParse("00000000-0000-7000-8000-000000000007"), Name: "a", Spec: "0 * * * *", Misfire: core.MisfireRunOnce, MisfireGrace: time.Minute, Overlap: core.OverlapSkip,
			MaxAttempts: 5, Version: 1, CreatedAt: clock("2026-12-01T00:30:00Z"), UpdatedAt: clock("2026-12-01T00:30:00Z"),
		},
		Timer: core.Timer{Done: clock("2026-12-01T12:00:00Z"), FireAt: clock("2026-12-01T13:00:00Z"), LastRun: clock("2026-12-01T12:00:00Z")},
		Now:   clock("2026-12-01T12:30:00Z"), LastState: core.RunSucceeded,
	}
	f := explain.Facts{Cur: cur, Slot: clock("2026-12-01T10:00:00Z")}
	change(&f)
	var err error
	if f.Slots, err = spec.Load(&cur.Schedule); err != nil {
		t.Fatal(err)
	}
	return f
}

// row returns a row of the slot of ten o'clock.
func row(state core.RunState, change func(*core.Run)) *core.Run {
	r := &core.Run{
		Key: core.RunKey{Slot: clock("2026-12-01T10:00:00Z")}, State: state, Cause: core.CauseSchedule, Queue: "mails", Attempt: 1, MaxAttempts: 5,
		CreatedAt: clock("2026-12-01T10:00:00Z"), StartedAt: clock("2026-12-01T10:00:01Z"), FinishedAt: clock("2026-12-01T10:00:09Z"), WakeAt: clock("2026-12-01T10:01:00Z"),
	}
	if change != nil {
		change(r)
	}
	return r
}

func because(reason core.Reason) func(*core.Run) { return func(r *core.Run) { r.Reason = reason } }

// TestVerdicts: each thing that can become of a slot, with what the sentence has to
// say.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	later := func(slot, now string) func(*explain.Facts) {
		return func(f *explain.Facts) {
			f.Slot, f.Cur.Now = clock("2026-12-01T"+slot+":00Z"), clock("2026-12-01T"+now+":00Z")
		}
	}
	both := func(changes ...func(*explain.Facts)) func(*explain.Facts) {
		return func(f *explain.Facts) {
			for _, change := range changes {
				change(f)
			}
		}
	}
	has := func(r *core.Run) func(*explain.Facts) { return func(f *explain.Facts) { f.Row = r } }
	rules := func(change func(*core.Schedule)) func(*explain.Facts) {
		return func(f *explain.Facts) { change(&f.Cur.Schedule) }
	}
	for name, c := range map[string]struct {
		change  func(*explain.Facts)
		verdict explain.Verdict
		says    []string
	}{
		"succeeded": {has(row(core.RunSucceeded, nil)), "succeeded", []string{"ran: the first attempt succeeded at 2026-12-01 10:00:09 +00:00"}},
		"catch-up":  {has(row(core.RunSucceeded, func(r *core.Run) { r.Cause, r.CreatedAt = core.CauseCatchUp, clock("2026-12-01T11:00:00Z") })), "succeeded", []string{"to catch up, 1h after the slot"}},
		"running":   {has(row(core.RunRunning, func(r *core.Run) { r.Attempt = 3 })), "running", []string{"is running: attempt 3 began at"}},
		"retrying":  {has(row(core.RunRetrying, func(r *core.Run) { r.Error = "one\ntwo" })), "retrying", []string{"tried again at 2026-12-01 10:01", "one ..."}},
		"queued":    {has(row(core.RunQueued, nil)), "queued", []string{"queued on mails", "doctor"}},
		"dead":      {has(row(core.RunDead, because(core.ReasonLost))), "dead", []string{"its executor was lost", "redrive"}},
		"canceled":  {has(row(core.RunCanceled, because(core.ReasonRequested))), "canceled", []string{"somebody asked"}},
		"replaced":  {has(row(core.RunCanceled, because(core.ReasonReplaced))), "canceled", []string{"cancel_previous"}},
		"late":      {both(has(row(core.RunCanceled, because(core.ReasonLate))), rules(func(s *core.Schedule) { s.CatchUpWithin = time.Hour })), "canceled", []string{"catch_up_within 1h"}},
		"paused":    {has(row(core.RunSkipped, because(core.ReasonPaused))), "skipped", []string{"was paused"}},
		"edited":    {has(row(core.RunSkipped, because(core.ReasonEdited))), "skipped", []string{"an edit"}},
		"excepted":  {has(row(core.RunSkipped, because(core.ReasonException))), "skipped", []string{"an exception"}},
		"closed":    {has(row(core.RunSkipped, because(core.ReasonBlackout))), "skipped", []string{"a calendar closed it"}},
		"overlap": {both(has(row(core.RunSkipped, because(core.ReasonOverlap))), func(f *explain.Facts) {
			f.Before = row(core.RunRunning, func(r *core.Run) { r.Key.Slot = clock("2026-12-01T09:00:00Z") })
		}), "skipped", []string{"the run of 2026-12-01 09:00 +00:00 was alive", "queue_one"}},
		"queue full": {both(has(row(core.RunSkipped, because(core.ReasonOverlap))), rules(func(s *core.Schedule) { s.Overlap = core.OverlapQueueOne })), "skipped", []string{"a slot waited"}},
		"merged": {both(has(row(core.RunSkipped, func(r *core.Run) {
			r.Reason, r.RangeFrom, r.RangeCount, r.Key.Slot = core.ReasonMisfire, clock("2026-12-01T09:00:00Z"), 3, clock("2026-12-01T11:00:00Z")
		})), func(f *explain.Facts) {
			f.Next = row(core.RunSucceeded, func(r *core.Run) { r.Key.Slot = clock("2026-12-01T12:00:00Z") })
		}), "skipped", []string{"the run of 2026-12-01 12:00 +00:00, which succeeded, stands in", "3 slots from 2026-12-01 09:00"}},
		"misfire skip": {both(has(row(core.RunSkipped, because(core.ReasonMisfire))), rules(func(s *core.Schedule) { s.Misfire = core.MisfireSkip })), "skipped", []string{"misfire skip runs no missed slot"}},
		"beyond cap":   {both(has(row(core.RunSkipped, because(core.ReasonMisfire))), rules(func(s *core.Schedule) { s.Misfire = core.MisfireRunAll })), "skipped", []string{"misfire_cap of the newest 1000"}},
		"another slot": {has(row(core.RunSucceeded, func(r *core.Run) { r.Key.Slot = clock("2026-12-01T11:00:00Z") })), "missing", []string{"please report"}},
		"missing":      {func(*explain.Facts) {}, "missing", []string{"must not happen"}},
		"changed":      {rules(func(s *core.Schedule) { s.Version, s.UpdatedAt = 2, clock("2026-12-01T11:00:00Z") }), "changed", []string{"changed at 2026-12-01 11:00"}},
		"unborn":       {rules(func(s *core.Schedule) { s.CreatedAt = clock("2026-12-01T11:00:00Z") }), "before_creation", []string{"created later, at 2026-12-01 11:00"}},
		"expired":      {both(func(f *explain.Facts) { f.Cur.Now = clock("2027-01-01T00:00:00Z") }), "expired", []string{"kept for 30d"}},
		"expected":     {later("13:00", "12:30"), "expected", []string{"comes at 2026-12-01 13:00 +00:00"}},
		"spread":       {both(later("13:00", "12:30"), rules(func(s *core.Schedule) { s.Window = 10 * time.Minute })), "expected", []string{"after the slot: starts are spread over 10m"}},
		"moved": {both(later("13:00", "12:30"), rules(func(s *core.Schedule) {
			s.Rules.Exceptions = []core.Exception{{Slot: clock("2026-12-01T13:00:00Z"), MoveTo: clock("2026-12-01T13:20:00Z")}}
		})), "expected", []string{"comes at 2026-12-01 13:20", "an exception moved it"}},
		"will be excepted": {both(later("13:00", "12:30"), rules(func(s *core.Schedule) {
			s.Rules.Exceptions = []core.Exception{{Slot: clock("2026-12-01T13:00:00Z"), Skip: true, Note: "party"}}
		})), "will_skip", []string{"an exception skips this one slot (party)"}},
		"is paused":   {both(later("13:00", "12:30"), rules(func(s *core.Schedule) { s.Paused, s.Rules.PauseNote = true, "moving" })), "will_skip", []string{"is paused (moving)"}},
		"pause ends":  {both(later("13:00", "12:30"), rules(func(s *core.Schedule) { s.Paused, s.Rules.PausedUntil = true, clock("2026-12-01T13:30:00Z") })), "will_skip", []string{"paused until 2026-12-01 13:30"}},
		"after pause": {both(later("14:00", "12:30"), rules(func(s *core.Schedule) { s.Paused, s.Rules.PausedUntil = true, clock("2026-12-01T13:30:00Z") })), "expected", nil},
		"used up": {both(later("13:00", "12:30"), func(f *explain.Facts) {
			f.Cur.Schedule.Rules.MaxRuns, f.Cur.Timer.RunsLeft = 3, new(int64)
		}), "completed", []string{"max_runs 3"}},
		"no calendar": {both(later("13:00", "12:30"), rules(func(s *core.Schedule) { s.Rules.Calendars = []string{"holidays"} })), "blocked", []string{"calendar holidays exists"}},
		"too late":    {both(later("13:00", "13:30"), rules(func(s *core.Schedule) { s.CatchUpWithin = time.Minute })), "will_skip", []string{"catch_up_within 1m has passed"}},
		"due":         {later("13:00", "13:00"), "due", []string{"no claimer has taken it"}},
		"overdue":     {later("13:00", "13:30"), "due", []string{"for 30m", "doctor"}},
		"waiting": {both(later("13:00", "13:30"), func(f *explain.Facts) {
			f.Cur.Timer.Parked, f.Cur.LastState, f.Cur.Schedule.Overlap = true, core.RunRunning, core.OverlapQueueOne
		}), "waiting", []string{"waits for the run of 2026-12-01 12:00 +00:00, which is running (overlap queue_one)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := explain.Judge(facts(t, c.change))
			if got.Verdict != c.verdict {
				t.Errorf("verdict %s, want %s: %s", got.Verdict, c.verdict, got.Sentence)
			}
			for _, text := range c.says {
				if !strings.Contains(got.Sentence, text) {
					t.Errorf("%q does not say %q", got.Sentence, text)
				}
			}
		})
	}
}
