package check_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core/check"
)

var t0 = time.Date(2027, 3, 9, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

// book writes histories by hand: what a right scheduler leaves behind.
type book struct {
	check.History
	fence int64
}

func newBook() *book { return &book{History: check.History{Start: at(30), End: at(600)}, fence: 65536} }

func (b *book) op(kind, schedule string, seconds float64, after *check.Schedule) {
	if after != nil {
		after.ID = schedule
	}
	b.Operations = append(b.Operations, check.Operation{
		Kind: kind, Schedule: schedule, Begin: at(seconds), End: at(seconds + .01), Answered: true, OK: true, After: after,
	})
}

func minutely(change func(*check.Schedule)) *check.Schedule {
	s := &check.Schedule{Spec: "* * * * *", TimeZone: "UTC", Misfire: "run_once", MisfireGrace: "10s", MisfireCap: 1000, Overlap: "skip", State: "active"}
	if change != nil {
		change(s)
	}
	return s
}

// ran adds a run of a slot that was made and ran for some seconds.
func (b *book) ran(schedule string, slot, made, took float64) *check.Run {
	r := b.row(schedule, slot, made, "succeeded")
	r.Attempt, r.Fence = 1, b.fence+1
	r.FinishedAt = ptr(at(made + .1 + took))
	r.Result = fmt.Appendf(nil, `{"fence": %d}`, r.Fence)
	b.Executions = append(b.Executions, check.Execution{
		Run: r.ID, Schedule: schedule, Slot: at(slot), Attempt: 1, Fence: r.Fence, Begin: at(made + .1), End: at(made + .1 + took),
	})
	return r
}

func (b *book) row(schedule string, slot, made float64, state string) *check.Run {
	b.fence += 65536
	b.Runs = append(b.Runs, check.Run{
		ID: fmt.Sprintf("run_%s_%g", schedule, slot), ScheduleID: schedule, ScheduledFor: at(slot), State: state, Cause: "schedule",
		MaxAttempts: 3, Fence: b.fence, CreatedAt: at(made),
	})
	return &b.Runs[len(b.Runs)-1]
}

func ptr[T any](v T) *T { return &v }

// legal is a history without a fault in which every rule has something to judge.
func legal() *book {
	b := newBook()
	b.op(check.Create, "a", -1, minutely(nil))
	for n := 1; n <= 9; n++ {
		b.ran("a", float64(60*n), 60*float64(n)+.05, 1)
	}
	b.op(check.Create, "w", -1, minutely(func(s *check.Schedule) { s.Window, s.Overlap = "30s", "allow" }))
	for n := 1; n <= 9; n++ {
		b.ran("w", float64(60*n), 60*float64(n)+17, 1)
	}
	// Missed from 60 to 239 by a fault, then the newest runs.
	b.op(check.Create, "m", -1, minutely(nil))
	b.Faults = append(b.Faults, check.Fault{Kind: "kill", Begin: at(45), Heal: at(245)})
	r := b.row("m", 180, 246, "skipped")
	r.Reason, r.RangeFrom = "misfire", ptr(at(60))
	r = b.ran("m", 240, 246, 1)
	r.Cause = "catch_up"
	for n := 5; n <= 9; n++ {
		b.ran("m", float64(60*n), 60*float64(n)+.05, 1)
	}
	// Paused over three slots, later deleted.
	b.op(check.Create, "p", -1, minutely(nil))
	b.ran("p", 60, 60.05, 1)
	b.op(check.Pause, "p", 90, nil)
	b.op(check.Resume, "p", 290, nil)
	r = b.row("p", 240, 290.005, "skipped")
	r.Reason, r.RangeFrom = "paused", ptr(at(120))
	b.ran("p", 300, 300.05, 1)
	b.op(check.Delete, "p", 330, nil)
	// Fails twice, is lost once, and succeeds.
	b.op(check.Create, "f", 260, minutely(func(s *check.Schedule) { s.Spec = "at " + at(300).Format(time.RFC3339) }))
	r = b.ran("f", 300, 300.05, 1)
	r.Attempt, r.Fence, r.FinishedAt = 2, r.Fence+2, ptr(at(341))
	r.Result = fmt.Appendf(nil, `{"fence": %d}`, r.Fence)
	b.Executions[len(b.Executions)-1].Failed = true
	e := b.Executions[len(b.Executions)-1]
	e.Attempt, e.Fence, e.Failed, e.Begin, e.End = 2, r.Fence, false, at(340), at(341)
	b.Executions = append(b.Executions, e)
	p := check.Page{Schedule: "a", Begin: at(590)}
	for _, r := range b.Runs {
		if r.ScheduleID == "a" {
			p.Runs = append(p.Runs, r.ID)
		}
	}
	b.Pages = append(b.Pages, p)
	return b
}

func verdicts(t *testing.T, h *check.History) *check.Report {
	t.Helper()
	r, err := check.Check(h, check.Bounds{Settle: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(r *check.Report) string {
	var out bytes.Buffer
	_ = r.Print(&out) // a buffer takes everything
	return out.String()
}

// TestLegal: what a right scheduler does passes, and only what no log tells is unknown.
func TestLegal(t *testing.T) {
	t.Parallel()
	h := legal()
	r := verdicts(t, &h.History)
	for _, v := range r.Verdicts {
		if want := map[bool]string{true: check.Unknown, false: check.Passed}[v.Rule == "C14"]; v.Verdict != want || v.Verdict == check.Unknown && len(v.Evidence) == 0 {
			t.Errorf("%+v", v)
		}
	}
	if len(r.Verdicts) != 15 || !strings.HasSuffix(text(r), "14 passed, 0 failed, 1 unknown\n") {
		t.Error(text(r))
	}
}

// find returns the run of a slot.
func (b *book) find(schedule string, slot float64) *check.Run {
	for i := range b.Runs {
		if b.Runs[i].ScheduleID == schedule && b.Runs[i].ScheduledFor.Equal(at(slot)) {
			return &b.Runs[i]
		}
	}
	panic("no such run")
}

func (b *book) execution(schedule string, slot float64) *check.Execution {
	i := slices.IndexFunc(b.Executions, func(e check.Execution) bool { return e.Run == b.find(schedule, slot).ID })
	return &b.Executions[i]
}

func (b *book) drop(schedule string, slot float64) {
	r := b.find(schedule, slot)
	id := r.ID
	b.Executions = slices.DeleteFunc(b.Executions, func(e check.Execution) bool { return e.Run == id })
	b.Runs = slices.DeleteFunc(b.Runs, func(r check.Run) bool { return r.ID == id })
	for i := range b.Pages {
		b.Pages[i].Runs = slices.DeleteFunc(b.Pages[i].Runs, func(x string) bool { return x == id })
	}
}

// TestEachRule: what is wrong in one way fails the rule that forbids it, and no other.
func TestEachRule(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rules string
		spoil func(b *book)
	}{
		"a slot is lost":             {"C1", func(b *book) { b.drop("a", 300) }},
		"a slot of a pause is lost":  {"C1", func(b *book) { b.find("p", 240).RangeFrom = ptr(at(180)) }},
		"the newest slot is owed":    {"", func(b *book) { b.End = at(544); b.drop("a", 540) }},
		"and a second later is lost": {"C1", func(b *book) { b.End = at(546); b.drop("a", 540) }},
		"a job ran at another time": {"C1 C12", func(b *book) {
			for n := 5; n <= 9; n++ { // each at the time of the next
				e := b.execution("a", float64(60*n))
				e.Begin, e.End, b.find("a", float64(60*n)).FinishedAt = at(60*float64(n)+55), at(60*float64(n)+56), ptr(at(60*float64(n)+56))
			}
		}},
		"missed without a fault": {"C2 C11", func(b *book) {
			b.drop("a", 420)
			r := b.row("a", 420, 425, "skipped")
			r.Reason = "misfire"
		}},
		"none of the missed ran": {"C2", func(b *book) {
			b.drop("m", 240)
			b.drop("m", 300)
			b.find("m", 180).ScheduledFor = at(240)
			b.row("m", 300, 301, "skipped").Reason = "misfire"
			b.Faults[0].Heal = at(295)
		}},
		"as if on time":              {"C2", func(b *book) { b.find("m", 240).CreatedAt = at(250.2); b.find("m", 240).Cause = "schedule" }},
		"just on time":               {"", func(b *book) { b.find("m", 240).CreatedAt = at(249.9); b.find("m", 240).Cause = "schedule" }},
		"caught up although skipped": {"C2", func(b *book) { b.Operations[2].After.Misfire = "skip" }},
		"the newest is missed": {"C2", func(b *book) {
			b.drop("m", 240)
			b.find("m", 180).ScheduledFor = at(240)
		}},
		"missed within the cap": {"C2", func(b *book) { b.Operations[2].After.Misfire = "run_all" }},
		"early by 51 ms":        {"C1 C3", func(b *book) { b.execution("a", 300).Begin = at(299.949) }},
		"early by 49 ms":        {"", func(b *book) { b.execution("a", 300).Begin = at(299.951) }},
		"a row of another slot": {"C3", func(b *book) { b.execution("w", 300).Slot = at(301) }},
		"twice the same slot": {"C4 C10", func(b *book) {
			r := *b.find("a", 300)
			r.ID = "twice"
			b.Runs = append(b.Runs, r)
			b.Pages = nil
		}},
		"a run in a range of skipped slots": {"C4", func(b *book) {
			r := b.row("m", 120, 246, "skipped")
			r.Reason = "blackout"
		}},
		"a job of no row": {"C4", func(b *book) { b.execution("w", 300).Run = "nobody" }},
		"a fence that stands still": {"C5 C6", func(b *book) {
			b.Executions[len(b.Executions)-1].Fence = b.Executions[len(b.Executions)-2].Fence
		}},
		"an attempt twice": {"C5", func(b *book) { b.Executions[len(b.Executions)-1].Attempt = 1 }},
		"two at once": {"C5", func(b *book) {
			b.Executions[len(b.Executions)-2].End = at(341) // from 300.15 on; its lease ends at 330.15
			b.Executions[len(b.Executions)-1].Begin = at(330)
		}},
		"two at once, the older without a lease": {"", func(b *book) {
			b.Executions[len(b.Executions)-2].End = at(341)
			b.Executions[len(b.Executions)-1].Begin = at(330.2)
		}},
		"a result of a former holder": {"C6", func(b *book) {
			b.find("f", 300).Result = fmt.Appendf(nil, `{"fence": %d}`, b.Executions[len(b.Executions)-2].Fence)
		}},
		"success of what failed": {"C6", func(b *book) { b.execution("a", 300).Failed = true }},
		"attempts beyond the maximum": {"C7", func(b *book) {
			b.find("f", 300).MaxAttempts = 1
		}},
		"attempts handed back": {"", func(b *book) {
			b.find("f", 300).MaxAttempts = 1
			b.Executions[len(b.Executions)-2].HandedBack = true
		}},
		"again after the dead letter": {"C7", func(b *book) {
			r := b.find("f", 300)
			r.State, r.FinishedAt = "dead", ptr(at(335))
		}},
		"a run after a pause": {"C8", func(b *book) {
			b.ran("p", 120, 120.05, 1)
			b.find("p", 240).RangeFrom = ptr(at(180))
		}},
		"a start after a delete": {"C1 C8", func(b *book) {
			b.execution("p", 300).Begin, b.execution("p", 300).End = at(330.1), at(331)
			b.find("p", 300).FinishedAt = ptr(at(331))
		}},
		"a run that never ends": {"C9", func(b *book) {
			r := b.find("w", 300)
			r.State, r.FinishedAt = "running", nil
		}},
		"two runs alive": {"C10", func(b *book) { b.find("a", 300).FinishedAt = ptr(at(361)) }},
		"a page that misses a run": {"C11", func(b *book) {
			b.Pages[0].Runs = b.Pages[0].Runs[1:]
		}},
		"a page that has one twice": {"C11", func(b *book) {
			b.Pages[0].Runs = append(b.Pages[0].Runs, b.Pages[0].Runs[0])
		}},
		"all late": {"C12", func(b *book) {
			for n := 5; n <= 9; n++ {
				for _, s := range []string{"a", "m"} {
					e := b.execution(s, float64(60*n))
					e.Begin, e.End, b.find(s, float64(60*n)).FinishedAt = at(60*float64(n)+5.01), at(60*float64(n)+6), ptr(at(60*float64(n)+6))
				}
			}
		}},
		"a spread that moves": {"C13", func(b *book) { b.find("w", 540).CreatedAt = at(540 + 5) }},
		"a spread too far": {"C1 C13", func(b *book) {
			for n := 5; n <= 9; n++ {
				r, e := b.find("w", float64(60*n)), b.execution("w", float64(60*n))
				r.CreatedAt, e.Begin, e.End = at(60*float64(n)+36), at(60*float64(n)+36), at(60*float64(n)+37)
				r.FinishedAt = ptr(at(60*float64(n) + 37))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := legal()
			tt.spoil(b)
			r := verdicts(t, &b.History)
			if got := strings.Join(r.Failed(), " "); got != tt.rules {
				t.Errorf("failed %q, want %q\n%s", got, tt.rules, text(r))
			}
		})
	}
}

// TestUnanswered: an operation without an answer makes unknown, not wrong, what it may
// have done.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	b := newBook()
	b.op(check.Create, "a", -1, minutely(nil))
	b.ran("a", 60, 60.05, 1)
	b.op(check.Pause, "a", 90, nil)
	b.Operations[1].Answered = false
	for _, ran := range []bool{false, true} {
		if ran {
			b.ran("a", 120, 120.05, 1)
		}
		if r := verdicts(t, &b.History); !r.OK() {
			t.Errorf("%t: %s", ran, text(r))
		}
	}
}

// TestConcurrent: of two operations at the same time either may have been the last.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"* * * * *", "*/2 * * * *"} {
		b := newBook()
		b.op(check.Create, "a", -1, minutely(nil))
		b.op(check.Edit, "a", 50, minutely(nil))
		b.op(check.Edit, "a", 50.005, minutely(func(s *check.Schedule) { s.Spec = "*/2 * * * *" }))
		for n := 1; n <= 9; n++ {
			if spec == "* * * * *" || n%2 == 0 {
				b.ran("a", float64(60*n), 60*float64(n)+.05, 1)
			}
		}
		if r := verdicts(t, &b.History); !r.OK() {
			t.Errorf("%s: %s", spec, text(r))
		}
	}
}

// TestUnmatched compares the matching with every way to match.
func TestUnmatched(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var windows [][2]time.Time
		var times []time.Time
		for range rng.IntN(6) {
			open := rng.IntN(12)
			windows = append(windows, [2]time.Time{at(float64(open)), at(float64(open + rng.IntN(5)))})
		}
		for range rng.IntN(6) {
			times = append(times, at(float64(rng.IntN(15))))
		}
		if got, want := len(windows)-check.Unmatched(windows, times), most(windows, times); got != want {
			t.Fatalf("%v and %v: %d pairs, %d are possible", windows, times, got, want)
		}
	}
}

// most returns how many pairs there can be.
func most(windows [][2]time.Time, times []time.Time) int {
	if len(windows) == 0 {
		return 0
	}
	best := most(windows[1:], times)
	for i, t := range times {
		if !t.Before(windows[0][0]) && !t.After(windows[0][1]) {
			best = max(best, 1+most(windows[1:], slices.Delete(slices.Clone(times), i, i+1)))
		}
	}
	return best
}

// TestReadWrite: what is written is read again.
func TestReadWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := legal()
	if err := b.Write(dir); err != nil {
		t.Fatal(err)
	}
	h, err := check.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	h.Start, h.End = b.Start, b.End
	want, _ := json.Marshal(b.History) // both can be encoded
	got, _ := json.Marshal(h)
	if !bytes.Equal(want, got) {
		t.Errorf("%s\n%s", want, got)
	}
	if empty, err := check.Read(t.TempDir()); err != nil || len(empty.Runs) != 0 {
		t.Errorf("%+v %v", empty, err)
	}
}
