package claimer_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/infra/clock"
)

func bubble(t *testing.T, test func(s *stage, out *inbox)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		test(s, &inbox{s: s})
	})
}

// Slots are claimed and published at their very second, whatever the phase of
// the rounds, by timers held in memory: the store is not asked again for them.
func TestClaimsAtTheSecond(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		f := &faults{Store: s.db}
		s.add("every 5s", 5*time.Second, nil)
		s.until(300 * time.Millisecond)
		stop := s.claim(func(c *claimer.Config) { c.Store, c.Publisher = f, out })
		s.until(14 * time.Second)
		if diff := cmp.Diff([]time.Duration{5 * time.Second, 10 * time.Second}, out.times()); diff != "" {
			s.Errorf("times of publishing (-want +got):\n%s", diff)
		}
		if n := f.count("preload"); n != 1 {
			s.Errorf("%d preloads, want 1", n)
		}
		if n := f.count("read timers"); n != 0 {
			s.Errorf("timers were read %d times, want never", n)
		}
		s.until(61 * time.Second)
		if got := out.times(); len(got) != 12 || got[11] != time.Minute {
			s.Errorf("within a minute messages came at %s", got)
		}
		stop()
	})
}

// skewed is a clock beside the process's.
type skewed struct {
	clock.System
	by time.Duration
}

func (s skewed) Now() time.Time { return s.System.Now().Add(s.by) }

// The database's clock decides: a claimer whose clock is ahead or behind aims at
// the moment at which the database will call a timer due.
func TestDatabaseClockDecides(t *testing.T) {
	for _, by := range []time.Duration{-7300 * time.Millisecond, 7300 * time.Millisecond} {
		t.Run(by.String(), func(t *testing.T) {
			bubble(t, func(s *stage, out *inbox) {
				s.db = memory.New("local", skewed{by: by})
				s.add("every 1h", 30*time.Second, nil)
				f := &faults{Store: s.db}
				stop := s.claim(func(c *claimer.Config) { c.Store, c.Publisher = f, out })
				s.until(45 * time.Second)
				if diff := cmp.Diff([]time.Duration{30*time.Second - by}, out.times()); diff != "" {
					s.Errorf("times of publishing (-want +got):\n%s", diff)
				}
				if n := f.count("claim"); n != 1 {
					s.Errorf("%d claims, want 1", n)
				}
				stop()
			})
		})
	}
}

// A timer that changed after it was loaded is missed by the claim, read again
// and claimed as it is now.
func TestMissedClaimIsReadAgain(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		id := s.add("every 1h", 30*time.Second, nil)
		s.until(500 * time.Millisecond) // rounds are at half seconds
		stop := s.claim(func(c *claimer.Config) { c.Publisher = out })
		s.until(29700 * time.Millisecond)
		s.edit(id)
		s.until(31 * time.Second)
		got := out.times()
		if len(got) != 1 || got[0] > 30300*time.Millisecond {
			s.Errorf("messages came at %s, want one within 0.3 s of the slot", got)
		}
		if runs := s.runs(id); len(runs) != 1 || runs[0].MaxAttempts != 4 {
			s.Errorf("runs are %+v, want one of the edited schedule", runs)
		}
		stop()
	})
}

// A deleted timer is forgotten: nothing is claimed for it, nothing asked again.
func TestDeletedTimer(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		f := &faults{Store: s.db}
		id := s.add("every 1h", 30*time.Second, nil)
		s.until(500 * time.Millisecond)
		stop := s.claim(func(c *claimer.Config) { c.Store, c.Publisher = f, out })
		s.until(29700 * time.Millisecond)
		cur := s.get(id)
		s.must(s.db.Delete(s.Context(), s.tenant, core.Edit{Version: 1, Fence: 1, ValidUntil: core.Forever, Schedule: cur.Schedule}))
		s.until(5 * time.Minute)
		if n := f.count("claim"); n != 1 || len(out.times()) != 0 {
			s.Errorf("%d claims and %d messages, want 1 and none", n, len(out.times()))
		}
		stop()
	})
}

// A claimer that slept through several slots makes one range row and one run.
func TestSlotsMissedByAll(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		id := s.add("every 1m", time.Minute, func(c *core.Schedule) { c.MisfireGrace = 10 * time.Second })
		s.until(10*time.Minute + 30*time.Second)
		stop := s.claim(func(c *claimer.Config) { c.Publisher = out })
		s.until(10*time.Minute + 31*time.Second)
		runs := s.runs(id)
		if len(runs) != 2 || runs[0].RangeCount != 9 || runs[0].Reason != core.ReasonMisfire || runs[1].Cause != core.CauseCatchUp {
			s.Errorf("runs are %+v, want a range of nine and a catch-up", runs)
		}
		stop()
	})
}

// Marks stay below what is not claimed yet and 15 s below the last look, so that
// a write that becomes visible late is found by the next poll; one that takes
// longer than any write may is found by the look below the marks.
func TestH21LowWaterMarks(t *testing.T) {
	for name, tt := range map[string]struct{ late, soonest, latest time.Duration }{
		"within the distance": {14 * time.Second, 54 * time.Second, 55 * time.Second},
		"beyond it":           {18 * time.Second, 60 * time.Second, 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *stage, out *inbox) {
				var visible atomic.Bool
				f := &faults{Store: s.db, hidden: func(uuid.UUID) bool { return !visible.Load() }}
				stop := s.claim(func(c *claimer.Config) { c.Store, c.Publisher, c.PreloadEvery = f, out, time.Hour })
				s.until(40 * time.Second) // polls look below the marks at 30 s and 60 s
				s.add("every 1h", 40*time.Second, nil)
				s.until(40*time.Second + tt.late)
				visible.Store(true)
				s.until(100 * time.Second)
				if got := out.times(); len(got) != 1 || got[0] < tt.soonest || got[0] > tt.latest {
					s.Errorf("the run was published at %s, want once between %s and %s", got, tt.soonest, tt.latest)
				}
				stop()
			})
		})
	}
}

// While a claim fails the mark stays below its timer, which is claimed when the
// database works again, even by a claimer that lost what it held in memory.
func TestMarkWaitsForClaims(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		id := s.add("every 1h", 10*time.Second, nil)
		f := &faults{Store: s.db, onClaim: func([]core.Move) error {
			if s.at() < 100*time.Second {
				return &core.Error{Code: core.CodeUnavailable, Kind: "database_busy"}
			}
			return nil
		}}
		stop := s.claim(func(c *claimer.Config) { c.Store, c.Publisher = f, out })
		s.until(99 * time.Second)
		due := s.get(id).Timer
		f.mu.Lock()
		i := slices.IndexFunc(f.lows, func(m core.ShardMark) bool { return m.Shard == due.Shard })
		if f.lows[i].Low.After(due.FireAt) {
			s.Errorf("the mark is at %s, above the timer at %s", f.lows[i].Low, due.FireAt)
		}
		f.mu.Unlock()
		s.until(102 * time.Second)
		if len(out.times()) != 1 {
			s.Error("the timer was not claimed once the database worked again")
		}
		stop()
	})
}

// A value that the database refuses costs its own timer an hour and the rest of
// the batch nothing.
func TestH09BadRowIsHalvedOut(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		const n = 8
		var ids []uuid.UUID
		for len(ids) < n {
			if id := uuid.New(); core.ShardOf(id) == 5 {
				ids = append(ids, s.add("every 1d", 10*time.Second, func(c *core.Schedule) { c.ID = id }))
			}
		}
		f := &faults{Store: s.db, onClaim: func(moves []core.Move) error {
			if slices.ContainsFunc(moves, func(m core.Move) bool { return m.ScheduleID == ids[3] }) {
				return core.ErrBadRow
			}
			return nil
		}}
		stop := s.claim(func(c *claimer.Config) { c.Store, c.Publisher = f, out })
		s.until(11 * time.Second)
		if len(out.times()) != n-1 {
			s.Errorf("%d runs were published, want %d", len(out.times()), n-1)
		}
		if calls := f.count("claim"); calls != 7 { // the batch, and two halves three times
			s.Errorf("%d claims found the timer, want 7", calls)
		}
		if at := s.get(ids[3]).Timer.FireAt.Sub(s.began); at != 10*time.Second+time.Hour || s.db.Alert(ids[3]) == "" {
			s.Errorf("the timer fires at %s with alert %q, want an hour later and some", at, s.db.Alert(ids[3]))
		}
		stop()
	})
}

// A spec that cannot be read parks its timer instead of coming back each second.
func TestUnreadableSpecIsParked(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		bad := s.add("whenever it suits", 10*time.Second, nil)
		good := s.add("every 1d", 10*time.Second, nil)
		stop := s.claim(func(c *claimer.Config) { c.Publisher = out })
		s.until(11 * time.Second)
		if diff := cmp.Diff([]time.Duration{10 * time.Second}, out.slotsOf(good)); diff != "" {
			s.Errorf("slots of the other schedule (-want +got):\n%s", diff)
		}
		if s.db.Alert(bad) == "" || s.get(bad).Timer.FireAt.Before(s.began.Add(time.Hour)) {
			s.Errorf("the timer is %+v, want it parked", s.get(bad).Timer)
		}
		stop()
	})
}

// A claim whose answer is lost is looked up, whether it happened or not; its run
// is published at once and only once (H15).
func TestH15UnknownOutcomeOfAClaim(t *testing.T) {
	lost := func(c *faults, happened bool) {
		first := true
		lose := func() error {
			if first {
				first = false
				return core.ErrUnknownOutcome
			}
			return nil
		}
		if happened {
			c.answer = func([]core.Claimed) error { return lose() }
		} else {
			c.onClaim = func([]core.Move) error { return lose() }
		}
	}
	for name, happened := range map[string]bool{"it happened": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *stage, out *inbox) {
				f := &faults{Store: s.db}
				lost(f, happened)
				id := s.add("every 10s", 10*time.Second, nil)
				stop := s.claim(func(c *claimer.Config) { c.Store, c.Publisher = f, out })
				s.until(25 * time.Second)
				if diff := cmp.Diff([]time.Duration{10 * time.Second, 20 * time.Second}, out.slotsOf(id)); diff != "" {
					s.Errorf("slots published (-want +got):\n%s", diff)
				}
				if at := out.times()[0]; at > 10300*time.Millisecond {
					s.Errorf("the first came at %s", at)
				}
				stop()
			})
		})
	}
}

// While claims hang nothing else is claimed, but each is cut off in time and
// made up for.
func TestHangingClaim(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		id := s.add("every 1h", 10*time.Second, nil)
		f := &hanging{faults: &faults{Store: s.db}, until: s.began.Add(30 * time.Second)}
		stop := s.claim(func(c *claimer.Config) { c.Store, c.Publisher = f, out })
		s.until(42 * time.Second)
		if diff := cmp.Diff([]time.Duration{10 * time.Second}, out.slotsOf(id)); diff != "" {
			s.Errorf("slots published (-want +got):\n%s", diff)
		}
		stop()
	})
}

// hanging is a store whose claims do not answer before the given time.
type hanging struct {
	*faults
	until time.Time
}

func (h *hanging) Claim(ctx context.Context, shard int16, moves []core.Move, lease time.Duration) ([]core.Claimed, error) {
	if time.Now().Before(h.until) {
		<-ctx.Done()
		return nil, core.ErrUnknownOutcome
	}
	return h.faults.Claim(ctx, shard, moves, lease)
}
