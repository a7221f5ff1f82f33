package claimer_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/inprocess"
)

var errGone = errors.New("the process is gone")

// shares returns how many shards each claimer works on, and fails when one has
// two claimers.
func (s *stage) shares(fs []*faults) (sizes []int, all int) {
	s.Helper()
	seen := map[int16]bool{}
	for _, f := range fs {
		held := f.shards()
		sizes = append(sizes, len(held))
		for _, shard := range held {
			if seen[shard] {
				s.Errorf("shard %d has two claimers", shard)
			}
			seen[shard] = true
		}
	}
	return sizes, len(seen)
}

// three starts claimers a second apart on one store.
func three(s *stage, out *inbox) (fs []*faults, stops []func()) {
	for _, owner := range []string{"a", "b", "c"} {
		f := &faults{Store: s.db}
		fs = append(fs, f)
		stops = append(stops, s.claim(func(c *claimer.Config) { c.Store, c.Publisher, c.Owner = f, out, owner }))
		time.Sleep(time.Second)
	}
	return fs, stops
}

// Three claimers share the shards within seconds; when one dies or leaves the
// others have them all a lease later or sooner, and each slot has one run.
func TestClaimersShare(t *testing.T) {
	for name, tt := range map[string]struct {
		dies  bool
		takes time.Duration // until the others have all shards
	}{"one dies": {true, 26 * time.Second}, "one leaves": {false, 11 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *stage, out *inbox) {
				const schedules = 200 // of every shard some
				for range schedules {
					s.add("every 10s", 10*time.Second, nil)
				}
				fs, stops := three(s, out)
				s.until(15 * time.Second)
				sizes, all := s.shares(fs)
				if slices.Max(sizes) > 22 || all != core.Shards {
					s.Errorf("15 s after the start the claimers work on %d shards, %d in all", sizes, all)
				}
				if tt.dies {
					fs[2].mu.Lock()
					fs[2].before = func(string) error { return errGone }
					fs[2].mu.Unlock()
				}
				go stops[2]()
				s.until(15*time.Second + tt.takes)
				sizes, all = s.shares(fs[:2])
				if slices.Max(sizes) > 32 || all != core.Shards {
					s.Errorf("%s after the end of one the others work on %d shards, %d in all", tt.takes, sizes, all)
				}
				s.until(62 * time.Second)
				stops[0]()
				stops[1]()
				perSlot := map[time.Duration]int{}
				for _, a := range out.arrivals() {
					perSlot[a.Slot]++
				}
				// The slots of 20 s and 30 s may have been merged where nobody was.
				for _, slot := range []time.Duration{10 * time.Second, 50 * time.Second, time.Minute} {
					if perSlot[slot] != schedules {
						s.Errorf("%d runs of the slot at %s were published, want %d", perSlot[slot], slot, schedules)
					}
				}
			})
		})
	}
}

// A newcomer gets its share although all shards are held.
func TestNewcomerGetsItsShare(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		first, second := &faults{Store: s.db}, &faults{Store: s.db}
		stop1 := s.claim(func(c *claimer.Config) { c.Store, c.Publisher, c.Owner = first, out, "a" })
		s.until(time.Minute)
		stop2 := s.claim(func(c *claimer.Config) { c.Store, c.Publisher, c.Owner = second, out, "b" })
		s.until(72 * time.Second) // two renewals
		sizes, _ := s.shares([]*faults{first, second})
		if diff := cmp.Diff([]int{32, 32}, sizes); diff != "" {
			s.Errorf("shards (-want +got):\n%s", diff)
		}
		stop1()
		stop2()
	})
}

// A full queue holds no claim up; what found no room is published by the sweep.
func TestFullQueue(t *testing.T) {
	bubble(t, func(s *stage, _ *inbox) {
		const n, capacity = 40, 25
		q, err := inprocess.New(inprocess.Config{Queues: []string{"test"}, Capacity: capacity})
		s.must(err)
		var ids []uuid.UUID
		for range n {
			ids = append(ids, s.add("every 1d", 10*time.Second, nil), s.add("every 1d", 20*time.Second, nil))
		}
		stop := s.claim(func(c *claimer.Config) { c.Publisher, c.DispatchLease = q, 30*time.Second })
		s.until(21 * time.Second)
		if q.Len("test") != capacity {
			s.Errorf("%d messages are in a queue of %d", q.Len("test"), capacity)
		}
		for _, id := range ids {
			if r := s.runs(id); len(r) != 1 || !r[0].CreatedAt.Equal(r[0].Key.Slot) {
				s.Errorf("the runs of a schedule are %+v, want one made at its slot", r)
			}
		}
		for s.at() < 3*time.Minute {
			s.startAll(q)
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		for _, id := range ids {
			if r := s.runs(id)[0]; r.State != core.RunRunning {
				s.Errorf("the run of %s is %s, want it started", r.Key.Slot, r.State)
			}
		}
	})
}

// startAll starts what waits in a queue.
func (s *stage) startAll(q *inprocess.Queue) {
	for q.Len("test") > 0 {
		ds, err := q.Receive(s.Context(), "test", 10)
		s.must(err)
		_, err = s.db.Start(s.Context(), ds, time.Hour)
		s.must(err)
	}
}

// A run that nobody starts is published again with the same fence, in gaps that
// double; one whose executor died gets a higher fence.
func TestSweepPublishesAgain(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		s.add("every 1d", 10*time.Second, nil)
		stop := s.claim(func(c *claimer.Config) { c.Publisher, c.DispatchLease = out, 30*time.Second })
		s.until(5 * time.Minute)
		got := out.arrivals()
		var at []time.Duration
		for _, a := range got {
			at = append(at, a.At)
			if a.Fence != got[0].Fence {
				s.Errorf("fence %d was published, want %d", a.Fence, got[0].Fence)
			}
		}
		want := []time.Duration{10 * time.Second, 40 * time.Second, 70 * time.Second, 130 * time.Second, 250 * time.Second}
		if diff := cmp.Diff(want, at); diff != "" {
			s.Errorf("times of publishing (-want +got):\n%s", diff)
		}
		key := core.RunKey{Region: "local", ScheduleID: got[0].Schedule, Slot: s.began.Add(got[0].Slot).UTC()}
		started, err := s.db.Start(s.Context(), []core.Delivery{{Message: core.Message{Key: key, Fence: got[0].Fence}}}, 30*time.Second)
		s.must(err)
		s.until(331 * time.Second) // nobody renews that lease
		last := out.arrivals()[len(got):]
		if len(last) != 1 || last[0].At != 330*time.Second || len(started) != 1 || last[0].Fence <= started[0].Fence {
			s.Errorf("after a lost attempt %+v was published, want one message with a higher fence", last)
		}
		stop()
	})
}

// More runs are due than one sweep takes of a shard: the next sweep follows at
// once.
func TestSweepGoesOn(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		const n = 300
		const shard = 5
		for added := 0; added < n; {
			if id := uuid.New(); core.ShardOf(id) == shard {
				s.add("every 1d", 10*time.Second, func(c *core.Schedule) { c.ID = id })
				added++
			}
		}
		stop := s.claim(func(c *claimer.Config) { c.Publisher, c.DispatchLease, c.Shards = out, 30*time.Second, []int16{shard} })
		s.until(41 * time.Second)
		if got := len(out.arrivals()); got != 2*n {
			s.Errorf("%d messages were published by 41 s, want %d", got, 2*n)
		}
		stop()
	})
}

// relay runs a relay beside claimers that publish nothing.
func (s *stage) relay(out core.Publisher, room func(string) bool) (stop func()) {
	s.Helper()
	r, err := claimer.NewRelay(claimer.Config{
		Store: s.db, Clock: clock.System{}, Publisher: out, Queues: []string{"test"}, Logger: slog.New(slog.DiscardHandler),
	}, room)
	s.must(err)
	return s.goes(r.Run)
}

// An executor's relay publishes what a claimer without a queue leaves in the
// database: soon, while it has room, and of its own queues only.
func TestRelay(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		id := s.add("every 10s", 10*time.Second, nil)
		s.add("every 10s", 10*time.Second, func(c *core.Schedule) { c.Job.Queue = "other" })
		var room atomic.Bool
		stopClaimer := s.claim(func(c *claimer.Config) { c.Publisher, c.Queues = nil, nil })
		s.until(500 * time.Millisecond)
		stopRelay := s.relay(out, func(string) bool { return room.Load() })
		s.until(25 * time.Second)
		if n := len(out.arrivals()); n != 0 {
			s.Errorf("%d messages were published into a queue without room", n)
		}
		room.Store(true)
		s.until(28 * time.Second)
		if diff := cmp.Diff([]time.Duration{10 * time.Second, 20 * time.Second}, out.slotsOf(id)); diff != "" {
			s.Errorf("slots published once there was room (-want +got):\n%s", diff)
		}
		s.until(31 * time.Second)
		got := out.arrivals()
		if last := got[len(got)-1]; last.Slot != 30*time.Second || last.At > 31*time.Second || len(got) != len(out.slotsOf(id)) {
			s.Errorf("of the next slot came %+v", last)
		}
		stopRelay()
		stopClaimer()
	})
}

// A relay takes no runs that lost their heartbeats: that is the claimers' part.
func TestRelayLeavesLostRuns(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		id := s.add("every 1d", 10*time.Second, nil)
		stop := s.claim(func(c *claimer.Config) { c.Publisher = out })
		s.until(11 * time.Second)
		stop()
		run := s.runs(id)[0]
		_, err := s.db.Start(s.Context(), []core.Delivery{{Message: core.Message{Key: run.Key, Fence: run.Fence}}}, 30*time.Second)
		s.must(err)
		stop = s.relay(out, func(string) bool { return true })
		s.until(5 * time.Minute)
		stop()
		if got := s.runs(id)[0]; got.State != core.RunRunning || len(out.arrivals()) != 1 {
			s.Errorf("the run is %s and %d messages came, want it left alone", got.State, len(out.arrivals()))
		}
	})
}

// A relay survives an unreachable database and ends with its context.
func TestRelayOutlivesAnOutage(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		id := s.add("every 1d", 10*time.Second, nil)
		stopClaimer := s.claim(func(c *claimer.Config) { c.Publisher, c.Queues = nil, nil })
		f := &faults{Store: s.db, before: func(string) error {
			if s.at() < 2*time.Minute {
				return errGone
			}
			return nil
		}}
		r, err := claimer.NewRelay(claimer.Config{
			Store: f, Clock: clock.System{}, Publisher: out, Queues: []string{"test"}, Logger: slog.New(slog.DiscardHandler),
		}, func(string) bool { return true })
		s.must(err)
		stop := s.goes(func(ctx context.Context) error { return r.Run(ctx) })
		s.until(2*time.Minute + 11*time.Second)
		if diff := cmp.Diff([]time.Duration{10 * time.Second}, out.slotsOf(id)); diff != "" {
			s.Errorf("slots published (-want +got):\n%s", diff)
		}
		if n := f.count("sweep"); n > 30 {
			s.Errorf("the relay asked %d times in two minutes of outage", n)
		}
		stop()
		stopClaimer()
	})
}
