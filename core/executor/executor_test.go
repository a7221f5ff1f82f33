package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
)

// ending is what the end of an attempt leaves in its run.
type ending struct {
	State  core.RunState
	Reason core.Reason
	Error  string
	Result string
	Failed int
}

func (s *stage) ending(k core.RunKey) ending {
	s.Helper()
	r := s.run(k)
	return ending{r.State, r.Reason, r.Error, string(r.Result), len(s.failed(k))}
}

func TestEndings(t *testing.T) {
	broken := errors.New("it broke")
	long := strings.Repeat("ä", core.MaxErrorBytes)
	for name, tt := range map[string]struct {
		attempts int
		result   string
		err      error
		want     ending
	}{
		"success":                    {3, "", nil, ending{State: core.RunSucceeded}},
		"success with a result":      {3, `{"rows":7}`, nil, ending{State: core.RunSucceeded, Result: `{"rows":7}`}},
		"a result that is not JSON":  {3, `{"rows"`, nil, ending{State: core.RunSucceeded}},
		"a result that is too large": {3, `"` + strings.Repeat("x", core.MaxResultBytes) + `"`, nil, ending{State: core.RunSucceeded}},
		"failure":                    {3, "", broken, ending{core.RunRetrying, "", "it broke", "", 1}},
		"failure of the last":        {1, "", broken, ending{core.RunDead, core.ReasonExhausted, "it broke", "", 1}},
		"permanent failure":          {3, "", core.Permanent(broken), ending{core.RunDead, core.ReasonPermanent, "it broke", "", 1}},
		"permanent failure, wrapped": {3, "", fmt.Errorf("job: %w", core.Permanent(broken)), ending{core.RunDead, core.ReasonPermanent, "job: it broke", "", 1}},
		"an error that is no text":   {3, "", errors.New("a\x00b\xffc"), ending{core.RunRetrying, "", "a\uFFFDb\uFFFDc", "", 1}},
		"an error that is too long":  {3, "", errors.New("x" + long), ending{core.RunRetrying, "", "x" + long[:core.MaxErrorBytes-2], "", 1}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *stage) {
				stop := s.execute(func(context.Context, core.Execution) (json.RawMessage, error) {
					time.Sleep(3 * time.Second)
					return []byte(tt.result), tt.err
				}, nil)
				key := s.give(func(c *core.Schedule) { c.MaxAttempts = tt.attempts })
				s.until(4 * time.Second)
				stop()
				if diff := cmp.Diff(tt.want, s.ending(key)); diff != "" {
					s.Errorf("run (-want +got):\n%s", diff)
				}
				got := s.reported()
				if len(got) != 1 || got[0].State != tt.want.State || got[0].Took != 3*time.Second || got[0].Queue != "test" || got[0].Execution.Key != key {
					s.Errorf("reports are %+v", got)
				}
			})
		})
	}
}

// What the target gets is what start said, in its context, too, which ends when
// the attempt's time does.
func TestExecution(t *testing.T) {
	bubble(t, func(s *stage) {
		var got core.Execution
		stop := s.execute(func(ctx context.Context, e core.Execution) (json.RawMessage, error) {
			got = e
			if inside, ok := core.ExecutionOf(ctx); !ok || !cmp.Equal(inside, e) {
				s.Errorf("the context has %+v", inside)
			}
			if end, ok := ctx.Deadline(); !ok || !end.Equal(s.began.Add(time.Hour)) {
				s.Errorf("the context ends at %s", end)
			}
			return nil, nil
		}, nil)
		key := s.give(nil)
		s.until(time.Second)
		stop()
		r := s.run(key)
		want := core.Execution{
			Key: key, TenantID: s.tenant, Name: key.ScheduleID.String(), Cause: core.CauseManual, Attempt: 1, Fence: r.Fence,
			Payload: []byte(`{"n":1}`), CoversFrom: r.CoversFrom, CoversTo: r.CoversTo,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("execution (-want +got):\n%s", diff)
		}
	})
}

// A panic is a failure of its attempt and of nothing else.
func TestPanic(t *testing.T) {
	bubble(t, func(s *stage) {
		stop := s.execute(func(_ context.Context, e core.Execution) (json.RawMessage, error) {
			if e.Attempt == 1 {
				panic("no such thing")
			}
			return nil, nil
		}, nil)
		key := s.give(nil)
		s.until(time.Second)
		got := s.ending(key)
		if got.State != core.RunRetrying || !strings.Contains(got.Error, "no such thing") || !strings.Contains(got.Error, "executor_test.go") {
			s.Errorf("the run is %s with error %q, want retrying with the panic and where it was", got.State, got.Error)
		}
		s.until(12 * time.Second)
		s.sweep()
		s.until(13 * time.Second)
		stop()
		if got := s.ending(key); got.State != core.RunSucceeded || got.Failed != 1 {
			s.Errorf("the run of the second attempt is %+v", got)
		}
	})
}

// The pauses between attempts double up to their bound; half of each is random.
func TestBackoff(t *testing.T) {
	bubble(t, func(s *stage) {
		stop := s.execute(func(context.Context, core.Execution) (json.RawMessage, error) { return nil, errors.New("again") },
			nil)
		key := s.give(func(c *core.Schedule) { c.MaxAttempts, c.Rules.Retry.MaxDelay = 5, 35*time.Second })
		for _, whole := range []time.Duration{10 * time.Second, 20 * time.Second, 35 * time.Second, 35 * time.Second} {
			began := time.Now()
			time.Sleep(time.Second)
			r := s.run(key)
			if pause := r.WakeAt.Sub(began); r.State != core.RunRetrying || pause < whole/2 || pause > whole {
				s.Fatalf("after attempt %d the run is %s for %s, want a pause of %s to %s", r.Attempt, r.State, pause, whole/2, whole)
			}
			time.Sleep(time.Until(r.WakeAt))
			s.sweep()
		}
		time.Sleep(time.Second)
		stop()
		if got := s.run(key); got.State != core.RunDead || got.Attempt != 5 {
			s.Errorf("at the end the run is %s after %d attempts", got.State, got.Attempt)
		}
	})
}

// A job may ask for a longer delay than its schedule, and for no shorter one.
func TestRetryAfter(t *testing.T) {
	bubble(t, func(s *stage) {
		stop := s.execute(func(_ context.Context, e core.Execution) (json.RawMessage, error) {
			after := map[int]time.Duration{1: time.Hour, 2: time.Millisecond}[e.Attempt]
			return nil, core.RetryAfter(errors.New("busy"), after)
		}, nil)
		key := s.give(func(c *core.Schedule) { c.Rules.Retry = core.Retry{InitialDelay: time.Minute, Multiplier: 1} })
		time.Sleep(time.Second)
		if r := s.run(key); r.State != core.RunRetrying || !r.WakeAt.Equal(s.began.Add(time.Hour)) || r.Error != "busy" {
			s.Errorf("the first attempt left %+v", r)
		}
		s.until(time.Hour)
		s.sweep()
		s.until(time.Hour + time.Second)
		stop()
		if r, want := s.run(key), s.began.Add(time.Hour+30*time.Second); r.State != core.RunRetrying || r.WakeAt.Before(want) {
			s.Errorf("the second attempt left %+v, want a delay of half a minute at least", r)
		}
	})
}

// The time for all attempts ends an attempt whose own time is not up, and the run.
func TestTotalTimeout(t *testing.T) {
	bubble(t, func(s *stage) {
		var took time.Duration
		stop := s.execute(func(ctx context.Context, _ core.Execution) (json.RawMessage, error) {
			<-ctx.Done()
			took = s.at()
			if !errors.Is(context.Cause(ctx), executor.ErrTotalTimeout) {
				s.Errorf("the attempt ended with %v", context.Cause(ctx))
			}
			return nil, ctx.Err()
		}, nil)
		key := s.give(func(c *core.Schedule) { c.Timeout, c.Rules.TotalTimeout = 45*time.Second, 40*time.Second })
		s.until(50 * time.Second)
		stop()
		if got := s.ending(key); took != 40*time.Second || got.State != core.RunDead || got.Reason != core.ReasonTotal {
			s.Errorf("after %s the run is %+v", took, got)
		}
	})
}

// An attempt that runs out of its time ends then, and is retried.
func TestTimeout(t *testing.T) {
	for attempts, want := range map[int]ending{2: {State: core.RunRetrying}, 1: {State: core.RunDead, Reason: core.ReasonTimeout}} {
		t.Run(fmt.Sprint(attempts), func(t *testing.T) {
			bubble(t, func(s *stage) {
				var took time.Duration
				stop := s.execute(func(ctx context.Context, _ core.Execution) (json.RawMessage, error) {
					<-ctx.Done()
					took = s.at()
					if !errors.Is(context.Cause(ctx), executor.ErrTimeout) {
						s.Errorf("the attempt ended with %v", context.Cause(ctx))
					}
					return nil, ctx.Err()
				}, nil)
				key := s.give(func(c *core.Schedule) { c.Timeout, c.MaxAttempts = 45*time.Second, attempts })
				s.until(50 * time.Second)
				stop()
				got := s.ending(key)
				if took != 45*time.Second || got.State != want.State || got.Reason != want.Reason || !strings.Contains(got.Error, executor.ErrTimeout.Error()) {
					s.Errorf("after %s the run is %+v, want %s", took, got, want.State)
				}
			})
		})
	}
}

// No timeout is no limit, however many leases it takes.
func TestNoTimeout(t *testing.T) {
	bubble(t, func(s *stage) {
		stop := s.execute(takes(7*time.Hour), nil)
		key := s.give(func(c *core.Schedule) { c.Timeout = 0 })
		s.until(7*time.Hour + time.Second)
		stop()
		if got := s.run(key); got.State != core.RunSucceeded || got.Attempt != 1 {
			s.Errorf("the run is %s after %d attempts", got.State, got.Attempt)
		}
	})
}

// No more attempts go on at once than allowed, and all come to their turn.
func TestConcurrency(t *testing.T) {
	bubble(t, func(s *stage) {
		const n, limit = 10, 3
		var now, most atomic.Int64
		stop := s.execute(func(context.Context, core.Execution) (json.RawMessage, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(5 * time.Second)
			now.Add(-1)
			return nil, nil
		}, func(c *executor.Config) { c.Concurrency = limit })
		var keys []core.RunKey
		for range n {
			keys = append(keys, s.give(nil))
		}
		s.until(14 * time.Second)
		if waiting := s.queue.Len("test"); waiting != 1 {
			s.Errorf("%d messages wait in the queue, want 1: no more are received than there is room for", waiting)
		}
		s.until(21 * time.Second)
		stop()
		for _, k := range keys {
			if r := s.run(k); r.State != core.RunSucceeded {
				s.Errorf("a run is %s", r.State)
			}
		}
		if most.Load() != limit {
			s.Errorf("%d attempts went on at once, want %d", most.Load(), limit)
		}
	})
}

// Messages are done with once their run has ended, or at once if they start
// nothing; until then the queue keeps them.
func TestAcknowledgment(t *testing.T) {
	bubble(t, func(s *stage) {
		q := &acknowledging{Queue: s.queue}
		good, stale, deleted := s.ready(nil), s.ready(nil), s.ready(nil)
		stale.Fence--
		s.remove(deleted.Key)
		stop := s.execute(takes(10*time.Second), func(c *executor.Config) { c.Queue = q })
		s.publish(good, stale, deleted)
		s.until(9 * time.Second)
		if got := q.messages(); len(got) != 2 || got[0].Key == good.Key || got[1].Key == good.Key {
			s.Errorf("done with while the run goes on: %+v", got)
		}
		s.until(11 * time.Second)
		stop()
		if got := q.messages(); len(got) != 3 || got[2] != good {
			s.Errorf("done with at the end: %+v", got)
		}
	})
}

// A queue that fails is asked again, at a bounded rate.
func TestReceiveFails(t *testing.T) {
	bubble(t, func(s *stage) {
		q := &failing{stage: s, until: 20 * time.Second}
		stop := s.execute(takes(time.Second), func(c *executor.Config) { c.Queue = q })
		key := s.give(nil)
		s.until(23 * time.Second)
		stop()
		if got := s.run(key); got.State != core.RunSucceeded {
			s.Errorf("the run is %s", got.State)
		}
		if q.asked > 25 {
			s.Errorf("the queue was asked %d times in 20 s of outage", q.asked)
		}
	})
}

// failing is a queue that cannot be reached at first.
type failing struct {
	*stage
	until time.Duration
	asked int
}

func (f *failing) Receive(ctx context.Context, queue string, most int) ([]core.Delivery, error) {
	if f.at() < f.until {
		f.asked++
		return nil, errors.New("connection refused")
	}
	return f.queue.Receive(ctx, queue, most)
}

func (*failing) Done(context.Context, []core.Delivery) error { return nil }
