package claimer_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
)

// backfilled makes a backfill of n minutes that passed.
func (s *stage) backfilled(schedule uuid.UUID, n, concurrency int) uuid.UUID {
	s.Helper()
	b := core.Backfill{ID: uuid.New(), TenantID: s.tenant, ScheduleID: schedule, From: s.began.Add(-time.Hour), To: s.began, Concurrency: concurrency}
	var runs []core.BackfillRun
	for i := range n {
		runs = append(runs, core.BackfillRun{Key: s.began.Add(time.Duration(i-n)*time.Minute + time.Microsecond)})
	}
	s.must(s.db.CreateBackfill(s.Context(), b, runs))
	return b.ID
}

func (s *stage) backfill(id uuid.UUID) core.Backfill {
	s.Helper()
	b, err := s.db.Backfill(s.Context(), s.tenant, id)
	s.must(err)
	return b
}

// mostAlive returns how many runs of a cause were alive at once.
func mostAlive(runs []core.Run, cause core.Cause) int {
	most := 0
	for _, a := range runs {
		n := 0
		for _, b := range runs {
			if b.Cause == cause && !b.CreatedAt.After(a.CreatedAt) && (b.FinishedAt.IsZero() || b.FinishedAt.After(a.CreatedAt)) {
				n++
			}
		}
		if a.Cause == cause {
			most = max(most, n)
		}
	}
	return most
}

// TestBackfills: two claimers with all shards move one backfill on beside the
// schedule's own runs; it keeps to its concurrency and each slot runs once.
func TestBackfills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		id := s.schedule("* * * * *", nil)
		fill := s.backfilled(id, 50, 4)
		stops := []func(){s.working(2*time.Second, nil), s.working(2*time.Second, nil)}
		s.until(3 * time.Minute)
		for _, stop := range stops {
			stop()
		}
		b := s.backfill(fill)
		if b.State != core.BackfillFinished || b.Succeeded != 50 {
			t.Errorf("the backfill is %+v", b)
		}
		runs := s.runs(id)
		if n := mostAlive(runs, core.CauseBackfill); n != 4 {
			t.Errorf("%d runs of the backfill were alive at once, want 4", n)
		}
		own := slices.DeleteFunc(runs, func(r core.Run) bool { return r.Cause == core.CauseBackfill })
		if len(own) < 2 || len(runs) == len(own) {
			t.Errorf("%d runs of the schedule's own", len(own))
		}
	})
}

// dying is a store whose claimer dies around the advance of a backfill.
type dying struct {
	claimer.Store
	mu     sync.Mutex
	left   int  // advances until it dies
	before bool // the last one is not carried out
}

func (d *dying) AdvanceBackfill(ctx context.Context, s core.BackfillStep, lease time.Duration) ([]core.Claimed, error) {
	d.mu.Lock()
	d.left--
	left := d.left
	d.mu.Unlock()
	switch {
	case left < 0 || left == 0 && d.before:
		return nil, errors.New("the claimer is dead")
	case left == 0:
		if _, err := d.Store.AdvanceBackfill(ctx, s, lease); err != nil {
			return nil, err
		}
		return nil, core.ErrUnknownOutcome
	}
	return d.Store.AdvanceBackfill(ctx, s, lease)
}

// TestBackfillOutlivesItsClaimer: a claimer dies before or after a step was carried
// out, whose runs nobody published then; another goes on, and each slot runs once.
func TestBackfillOutlivesItsClaimer(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			id := s.schedule("0 0 1 1 *", nil)
			fill := s.backfilled(id, 10, 2)
			stop := s.working(time.Second, func(c *claimer.Config) {
				c.Store, c.DispatchLease = &dying{Store: s.db, left: 3, before: before}, 30*time.Second
			})
			s.until(10 * time.Second)
			stop()
			stop = s.working(time.Second, nil)
			s.until(2 * time.Minute)
			stop()
			b := s.backfill(fill)
			if b.State != core.BackfillFinished || b.Succeeded != 10 || len(s.runs(id)) != 10 || mostAlive(s.runs(id), core.CauseBackfill) > 2 {
				t.Errorf("the backfill is %+v with %d runs", b, len(s.runs(id)))
			}
		})
	}
}
