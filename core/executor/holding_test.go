package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/inprocess"
)

var errCut = &core.Error{Code: core.CodeUnavailable, Kind: "database_unreachable", Message: "the database does not answer"}

// Leases are renewed each third of their length, by one call for all attempts,
// and not at all while there are none.
func TestHeartbeatCadence(t *testing.T) {
	bubble(t, func(s *stage) {
		f := &faults{Store: s.db}
		stop := s.execute(takes(45*time.Second), func(c *executor.Config) { c.Store = f })
		s.until(25 * time.Second)
		first, second := s.give(nil), s.give(nil)
		s.until(61 * time.Second)
		if got := s.run(first).WakeAt.Sub(s.began); got != 90*time.Second {
			s.Errorf("at 61 s the lease ends at %s, want 30 s after the heartbeat of 60 s", got)
		}
		s.until(5 * time.Minute)
		stop()
		want := []time.Duration{30 * time.Second, 40 * time.Second, 50 * time.Second, 60 * time.Second}
		got := f.times(s, "heartbeat")
		if n := len(got); n == 5 && got[4] == 70*time.Second { // at their very end
			got = got[:4]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("heartbeats (-want +got):\n%s", diff)
		}
		if a, b := s.run(first), s.run(second); a.State != core.RunSucceeded || b.State != core.RunSucceeded {
			s.Errorf("the runs are %s and %s", a.State, b.State)
		}
	})
}

// An executor that is cut off ends its attempt before its lease does; the run
// goes to another, whose outcome counts, and nothing of the first is written.
func TestCutOffExecutor(t *testing.T) {
	bubble(t, func(s *stage) {
		var cut atomic.Bool
		f := &faults{Store: s.db, before: func(string) error {
			if cut.Load() {
				return errCut
			}
			return nil
		}}
		own, err := inprocess.New(inprocess.Config{Queues: []string{"test"}})
		s.must(err)
		var cause error
		var ended, began time.Duration
		s.until(300 * time.Millisecond)
		stopFirst := s.execute(func(ctx context.Context, _ core.Execution) (json.RawMessage, error) {
			<-ctx.Done()
			ended, cause = s.at(), context.Cause(ctx)
			return nil, nil // it even says that it succeeded
		}, func(c *executor.Config) { c.Store, c.Queue = f, own })
		s.until(700 * time.Millisecond) // out of step with the heartbeats
		m := s.ready(nil)
		key := m.Key
		_, err = own.Publish(s.Context(), "test", []core.Message{m})
		s.must(err)
		s.until(12 * time.Second) // the last heartbeat was at 10.3 s
		cut.Store(true)
		s.until(40200 * time.Millisecond)
		if swept := s.sweep(); len(swept) != 0 {
			s.Errorf("the sweep took %+v while the lease went on", swept)
		}
		s.until(40300 * time.Millisecond)
		s.sweep()
		stopSecond := s.execute(func(context.Context, core.Execution) (json.RawMessage, error) {
			began = s.at()
			return []byte(`"second"`), nil
		}, nil)
		s.until(41 * time.Second)
		cut.Store(false)
		s.until(3 * time.Minute)
		stopFirst()
		stopSecond()
		if ended != 39300*time.Millisecond || !errors.Is(cause, executor.ErrLeaseLost) || began < ended {
			s.Errorf("the first attempt ended at %s with %v, the second began at %s; want 39.3s and lease lost", ended, cause, began)
		}
		if got, n := s.ending(key), len(f.times(s, "finish")); got.State != core.RunSucceeded || got.Result != `"second"` || n != 0 {
			s.Errorf("the run is %+v after %d finishes of the first", got, n)
		}
	})
}

// A heartbeat that comes back without the run ends the attempt at once; one that
// fails says nothing about it.
func TestLostLease(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*faults, *atomic.Bool)
		ends  time.Duration
	}{
		"it did not come back": {func(f *faults, on *atomic.Bool) {
			f.beats = func(got []core.Beat) []core.Beat {
				if on.Load() {
					return nil
				}
				return got
			}
		}, 20 * time.Second},
		"a heartbeat failed": {func(f *faults, on *atomic.Bool) {
			f.before = func(call string) error {
				if call == "heartbeat" && on.CompareAndSwap(true, false) {
					return errCut
				}
				return nil
			}
		}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *stage) {
				f := &faults{Store: s.db}
				var on atomic.Bool
				tt.spoil(f, &on)
				var ended time.Duration
				stop := s.execute(func(ctx context.Context, _ core.Execution) (json.RawMessage, error) {
					err := clock.System{}.Sleep(ctx, time.Minute)
					ended = s.at()
					return nil, err
				}, func(c *executor.Config) { c.Store = f })
				s.give(nil)
				s.until(15 * time.Second)
				on.Store(true)
				s.until(2 * time.Minute)
				stop()
				if ended != tt.ends {
					s.Errorf("the attempt ended at %s, want %s", ended, tt.ends)
				}
			})
		})
	}
}

// A request to cancel reaches the attempt with the next heartbeat and makes the
// run canceled, unless its work was done by then.
func TestCancel(t *testing.T) {
	for name, tt := range map[string]struct {
		job  func(ctx context.Context) error
		want core.RunState
	}{
		"ends": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, core.RunCanceled},
		"is done by then": {func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, core.RunSucceeded},
		"fails before it is told": {func(context.Context) error {
			time.Sleep(17 * time.Second)
			return errors.New("it broke")
		}, core.RunCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *stage) {
				var told time.Duration
				stop := s.execute(func(ctx context.Context, _ core.Execution) (json.RawMessage, error) {
					err := tt.job(ctx)
					if errors.Is(context.Cause(ctx), executor.ErrCanceled) {
						told = s.at()
					}
					return nil, err
				}, nil)
				key := s.give(nil)
				s.until(12 * time.Second)
				s.remove(key)
				s.until(21 * time.Second)
				stop()
				if told != 0 && told != 20*time.Second {
					s.Errorf("the attempt was told at %s, want with the heartbeat of 20 s", told)
				}
				if got := s.ending(key); got.State != tt.want {
					s.Errorf("the run is %+v, want %s", got, tt.want)
				}
			})
		})
	}
}

// An outage while an outcome is to be recorded costs no attempt: the lease is
// kept as soon as that works, and the finish sent again, whether the first was
// carried out or not.
func TestFinishOutlivesAnOutage(t *testing.T) {
	for name, happened := range map[string]bool{"not carried out": false, "carried out": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *stage) {
				outage := func() error {
					if s.at() < 20*time.Second {
						return core.ErrUnknownOutcome
					}
					return nil
				}
				f := &faults{Store: s.db, finished: outage}
				if !happened {
					f.finished, f.onFinish = nil, func([]core.Outcome) error { return outage() }
				}
				stop := s.execute(func(context.Context, core.Execution) (json.RawMessage, error) {
					time.Sleep(5 * time.Second)
					return []byte(`"kept"`), nil
				}, func(c *executor.Config) { c.Store = f })
				key := s.give(nil)
				s.until(22 * time.Second)
				stop()
				if diff := cmp.Diff(ending{State: core.RunSucceeded, Result: `"kept"`}, s.ending(key)); diff != "" {
					s.Errorf("run (-want +got):\n%s", diff)
				}
				if got := s.run(key); got.Attempt != 1 || len(s.reported()) != 1 {
					s.Errorf("%d attempts and %d reports, want one", got.Attempt, len(s.reported()))
				}
				if n := len(f.times(s, "finish")); n < 10 || n > 40 {
					s.Errorf("the finish was sent %d times in 15 s", n)
				}
			})
		})
	}
}

// An outage longer than the lease costs the attempt: the outcome is given up and
// the sweep takes the run.
func TestFinishGivesUp(t *testing.T) {
	bubble(t, func(s *stage) {
		f := &faults{Store: s.db, before: func(call string) error {
			if since := s.at(); since > 12*time.Second && since < 2*time.Minute {
				return errCut
			}
			return nil
		}}
		stop := s.execute(takes(15*time.Second), func(c *executor.Config) { c.Store = f })
		key := s.give(nil)
		s.until(3 * time.Minute)
		if got := s.run(key); got.State != core.RunRunning || len(s.reported()) != 0 {
			s.Errorf("the run is %s with %d reports", got.State, len(s.reported()))
		}
		finishes := f.times(s, "finish")
		if last := finishes[len(finishes)-1]; last < 38*time.Second || last > 40*time.Second {
			s.Errorf("the last finish was sent at %s, want it as long as the lease can be trusted, until 39s", last)
		}
		s.sweep()
		s.until(4 * time.Minute)
		stop()
		if got := s.run(key); got.State != core.RunSucceeded || got.Attempt != 2 {
			s.Errorf("in the end the run is %s after %d attempts", got.State, got.Attempt)
		}
	})
}

// A result or an error that the database refuses is left out, and costs neither
// its run nor those of the batch it came with their outcome.
func TestBadRowIsHalvedOut(t *testing.T) {
	bubble(t, func(s *stage) {
		const n = 8
		var keys []core.RunKey
		f := &faults{Store: s.db, onFinish: func(os []core.Outcome) error {
			if slices.ContainsFunc(os, func(o core.Outcome) bool {
				return o.Key == keys[3] && o.Result != nil || o.Key == keys[6] && o.Error != ""
			}) {
				return core.ErrBadRow
			}
			return nil
		}}
		stop := s.execute(func(_ context.Context, e core.Execution) (json.RawMessage, error) {
			time.Sleep(time.Second)
			if e.Key == keys[6] {
				return nil, errors.New("it broke")
			}
			return []byte(`"kept"`), nil
		}, func(c *executor.Config) { c.Store = f })
		var ms []core.Message
		for range n {
			m := s.ready(nil)
			keys, ms = append(keys, m.Key), append(ms, m)
		}
		s.publish(ms...)
		s.until(2 * time.Second)
		stop()
		for i, k := range keys {
			want := ending{State: core.RunSucceeded, Result: `"kept"`}
			switch i {
			case 3:
				want.Result = ""
			case 6:
				want = ending{State: core.RunRetrying, Failed: 1}
			}
			if diff := cmp.Diff(want, s.ending(k)); diff != "" {
				s.Errorf("run %d (-want +got):\n%s", i, diff)
			}
		}
		if len(s.reported()) != n {
			s.Errorf("%d reports, want %d", len(s.reported()), n)
		}
	})
}

// At the end attempts may go on for a while; those that take longer are ended
// and handed back, with their leases kept until then: a run with one attempt is
// not dead for it.
func TestShutdown(t *testing.T) {
	bubble(t, func(s *stage) {
		var cause error
		stop := s.execute(func(ctx context.Context, e core.Execution) (json.RawMessage, error) {
			err := clock.System{}.Sleep(ctx, map[string]time.Duration{`1`: 12 * time.Second, `2`: time.Hour}[string(e.Payload)])
			if err != nil {
				cause = context.Cause(ctx)
			}
			return nil, err
		}, func(c *executor.Config) { c.Drain = 5 * time.Second })
		short := s.give(func(c *core.Schedule) { c.Job.Payload = []byte(`1`) })
		long := s.give(func(c *core.Schedule) { c.Job.Payload, c.MaxAttempts = []byte(`2`), 1 })
		s.until(9 * time.Second)
		var waiting sync.WaitGroup
		waiting.Go(stop)
		s.until(10 * time.Second)
		late := s.give(nil)
		waiting.Wait()
		if s.at() != 14*time.Second {
			s.Errorf("the executor ended at %s, want 5 s after it was told", s.at())
		}
		if got := s.run(short); got.State != core.RunSucceeded {
			s.Errorf("the short run is %s", got.State)
		}
		if got := s.run(long); got.State != core.RunRetrying || !got.WakeAt.Equal(s.began.Add(s.at())) || !errors.Is(cause, executor.ErrShutdown) {
			s.Errorf("the long run is %s until %s, its attempt ended with %v", got.State, got.WakeAt, cause)
		}
		if got := s.run(late); got.State != core.RunQueued {
			s.Errorf("a run that came after the end is %s", got.State)
		}
	})
}

// At the end, too, outcomes are recorded in spite of an outage, for a while.
func TestShutdownDuringAnOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		outage time.Duration
		want   core.RunState
		ended  time.Duration // at the latest
	}{
		"short": {3 * time.Second, core.RunSucceeded, 6 * time.Second},
		"long":  {time.Hour, core.RunRunning, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *stage) {
				f := &faults{Store: s.db, onFinish: func([]core.Outcome) error {
					if s.at() < 2*time.Second+tt.outage {
						return errCut
					}
					return nil
				}}
				stop := s.execute(takes(2*time.Second), func(c *executor.Config) { c.Store = f })
				key := s.give(nil)
				s.until(time.Second)
				stop()
				if s.at() > tt.ended {
					s.Errorf("the executor ended at %s, want by %s", s.at(), tt.ended)
				}
				if got := s.run(key); got.State != tt.want {
					s.Errorf("the run is %s, want %s", got.State, tt.want)
				}
			})
		})
	}
}

// An executor without what it cannot do without is not made.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*executor.Config){
		"no store":   func(c *executor.Config) { c.Store = nil },
		"no queue":   func(c *executor.Config) { c.Queue = nil },
		"no clock":   func(c *executor.Config) { c.Clock = nil },
		"no targets": func(c *executor.Config) { c.Targets = nil },
	} {
		c := executor.Config{
			Store: newFake(), Queue: newFake(), Clock: clock.System{}, Targets: map[string]core.Target{"test": takes(0)},
			Logger: slog.New(slog.DiscardHandler),
		}
		change(&c)
		if _, err := executor.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
