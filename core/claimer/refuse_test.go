package claimer_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/infra/clock"
)

// stubborn is a publisher that refuses until a time, each queue in its own way.
type stubborn struct {
	s       *stage
	until   time.Duration
	refusal error
	slow    time.Duration // how long a refusal takes
	mu      sync.Mutex
	copies  map[core.RunKey]int
	last    map[core.RunKey]time.Time
}

func newStubborn(s *stage, p *stubborn) *stubborn {
	return &stubborn{s: s, until: time.Minute, refusal: p.refusal, slow: p.slow, copies: map[core.RunKey]int{}, last: map[core.RunKey]time.Time{}}
}

// takes ends the refusals.
func (p *stubborn) takes() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = 0
}

func (p *stubborn) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.s.at() < p.until
}

func (p *stubborn) Publish(ctx context.Context, _ string, msgs []core.Message) (int, error) {
	refuse := p.refuses()
	if refuse && p.slow > 0 {
		_ = (clock.System{}).Sleep(ctx, p.slow) // an error is ctx's end
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if refuse {
		return 0, p.refusal
	}
	for _, m := range msgs {
		p.copies[m.Key]++
		p.last[m.Key] = time.Now()
	}
	return len(msgs), nil
}

// all returns the runs of all schedules.
func (s *stage) all() []core.Run {
	s.Helper()
	var out []core.Run
	page, err := s.db.List(s.Context(), s.tenant, core.ScheduleQuery{Limit: 1000})
	s.must(err)
	for _, c := range page.Items {
		out = append(out, s.runs(c.Schedule.ID)...)
	}
	return out
}

// TestQueueRefusesForAMinute: while a queue takes nothing, claims go on at their times;
// when it takes again every run is published, and none more often than its waiting
// explains.
func TestQueueRefusesForAMinute(t *testing.T) {
	t.Parallel()
	const n, minute = 100, time.Minute
	for name, how := range map[string]*stubborn{
		"full":     {refusal: core.ErrQueueFull},
		"gone":     {refusal: errors.New("the queue is gone")},
		"hanging":  {refusal: context.DeadlineExceeded, slow: 10 * time.Second},
		"hesitant": {refusal: core.ErrQueueFull, slow: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				for range n {
					s.add("every 10s", time.Second, nil)
				}
				p := newStubborn(s, how)
				stop := s.claim(func(c *claimer.Config) { c.Publisher, c.DispatchLease = p, 30*time.Second })
				s.until(minute)
				if runs := s.all(); len(runs) != 6*n {
					t.Errorf("%d runs were claimed meanwhile, want %d", len(runs), 6*n)
				}
				s.until(3*minute - 5*time.Second)
				stop()
				for _, r := range s.all() {
					most, wait := 1, p.last[r.Key].Sub(r.Key.Slot)
					if wait >= 30*time.Second { // copies beside the first
						most += 1 + int(math.Log2(float64(wait)/float64(30*time.Second)))
					}
					if got := p.copies[r.Key]; got < 1 || got > most {
						t.Fatalf("that of %s was published %d times, want 1 to %d", r.Key.Slot.Sub(s.began), got, most)
					}
				}
			})
		})
	}
}

// TestRefusedBacklogIsBounded: what waits to be published takes a bounded place, however
// much is claimed while the queue hangs: the rest comes from the database.
func TestRefusedBacklogIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		const n, held, swept = 1000, 20_000, 64 * core.Shards
		for range n {
			s.add("every 1s", time.Second, nil)
		}
		p := newStubborn(s, &stubborn{refusal: context.DeadlineExceeded, slow: 10 * time.Second})
		stop := s.claim(func(c *claimer.Config) { c.Publisher = p })
		s.until(40 * time.Second)
		p.takes()
		s.until(51 * time.Second)
		stop()
		// What waited, what was claimed since, and what was in the calls that hung.
		if got, most := len(p.copies), held+12*n+swept; got < held || got > most {
			t.Errorf("%d messages came once it took again, want %d to %d", got, held, most)
		}
		if got := len(s.all()); got < 50*n {
			t.Errorf("only %d runs were claimed", got)
		}
	})
}
