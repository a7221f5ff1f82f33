package claimer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/policytest"
	"github.com/fencepost/fencepost/core/spec"
)

// bug is a report of what another scheduler did, with what would be right.
type bug struct {
	ID       string                     `json:"id"`
	Source   string                     `json:"source"`
	Expected map[string]json.RawMessage `json:"expected"`
}

// number returns an expected number.
func (b *bug) number(t *testing.T, key string) int {
	t.Helper()
	var n int
	if err := json.Unmarshal(b.Expected[key], &n); err != nil {
		t.Fatalf("%s has no number %s: %v", b.ID, key, err)
	}
	return n
}

// times returns expected times.
func (b *bug) times(t *testing.T, key string) []time.Time {
	t.Helper()
	text := b.Expected[key]
	if bytes.HasPrefix(text, []byte(`"`)) {
		text = slices.Concat([]byte("["), text, []byte("]"))
	}
	var out []time.Time
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s has no times %s: %v", b.ID, key, err)
	}
	return out
}

// TestBugs plays the reports of testdata/bugs.jsonl with the claimer on the store in
// memory, in virtual time. Each is a subtest that is named by its id.
func TestBugs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/bugs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	played := map[string]func(*stage, *bug){
		"bug-h32": intervalDrift, "bug-h33": intervalRestart, "bug-h34": intervalDST, "bug-h35": timerOverflow, "bug-h36": clockBack,
		"bug-h37": missedLimit, "bug-h38": catchUpStorm, "bug-h39": editFires, "bug-h40": misfireSkip, "bug-h41": pauseResume,
		"bug-h42": pausedFires, "bug-h43": skipNeverFires, "bug-h44": doubleFire, "bug-h45": missedAfterFailover, "bug-h52": longDelay, "bug-h56": topOfHour,
	}
	n := 0
	for line := range bytes.Lines(text) {
		var b bug
		if err := json.Unmarshal(line, &b); err != nil {
			t.Fatal(err)
		}
		n++
		play := played[b.ID]
		if play == nil {
			t.Errorf("nobody plays %s", b.ID)
			continue
		}
		t.Run(b.ID, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { play(newStage(t), &b) })
		})
	}
	if n != len(played) {
		t.Errorf("%d bugs are there, and %d are played", n, len(played))
	}
}

// schedule creates a schedule as the service would.
func (s *stage) schedule(text string, change func(*core.Schedule)) uuid.UUID {
	s.Helper()
	c := core.Schedule{
		Region: "local", TenantID: s.tenant, ID: uuid.New(), Spec: text, Misfire: core.MisfireRunOnce, MisfireGrace: time.Minute,
		Overlap: core.OverlapSkip, MaxAttempts: 3, Job: core.Job{Queue: "test", Payload: []byte(`{}`)},
	}
	if change != nil {
		change(&c)
	}
	c.Name = c.ID.String()
	slots, err := spec.Load(&c)
	s.must(err)
	next, done := plan.First(&c, slots, time.Now().UTC())
	s.must(s.db.Create(s.Context(), c, next, done))
	return c.ID
}

// working runs a claimer whose runs are executed, each for that long; one that
// looks seldom costs little over weeks.
func (s *stage) working(takes time.Duration, change func(*claimer.Config)) (stop func()) {
	a := &actors{stage: s, e: &policytest.Event{}, takes: takes}
	end := s.claim(func(c *claimer.Config) {
		c.Publisher, c.Shards = a, core.AllShards()
		if change != nil {
			change(c)
		}
	})
	return func() {
		end()
		a.work.Wait()
	}
}

func seldom(c *claimer.Config) { c.PollEvery = time.Minute }

// ran returns the slots of runs that succeeded, and how many others there are.
func (s *stage) ran(id uuid.UUID) (slots []time.Time, others int) {
	s.Helper()
	for _, r := range s.runs(id) {
		if r.State == core.RunSucceeded {
			slots = append(slots, r.Key.Slot)
			if r.CreatedAt.Before(r.Key.Slot) {
				s.Errorf("the run of %s was made early, at %s", r.Key.Slot, r.CreatedAt)
			}
		} else {
			others++
		}
	}
	return slots, others
}

// each returns n times from first on.
func each(first time.Time, step time.Duration, n int) []time.Time {
	out := make([]time.Time, n)
	for i := range out {
		out[i] = first.Add(time.Duration(i) * step)
	}
	return out
}

func (s *stage) wantSlots(id uuid.UUID, want []time.Time) {
	s.Helper()
	got, others := s.ran(id)
	if !slices.EqualFunc(want, got, time.Time.Equal) || others != 0 {
		s.Errorf("the runs are of %s and %d others, want %s", show(got), others, show(want))
	}
}

func show(ts []time.Time) string {
	if len(ts) > 5 {
		return fmt.Sprintf("%d slots from %s to %s", len(ts), ts[0], ts[len(ts)-1])
	}
	return fmt.Sprint(ts)
}

// sleepy is a clock that notes the longest sleep.
type sleepy struct {
	core.Clock
	longest atomic.Int64
}

func (c *sleepy) Sleep(ctx context.Context, d time.Duration) error {
	c.longest.Store(max(c.longest.Load(), int64(d)))
	return c.Clock.Sleep(ctx, d)
}
