package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// gauge is a job that notes how many of it ran at once, by tenant and in all, and in
// which order tenants came.
type gauge struct {
	tally
	takes time.Duration

	mu    sync.Mutex
	live  map[uuid.UUID]int
	peak  map[uuid.UUID]int
	order []uuid.UUID
}

func newGauge(takes time.Duration) *gauge {
	g := &gauge{takes: takes, live: map[uuid.UUID]int{}, peak: map[uuid.UUID]int{}}
	g.then = func(ctx context.Context, e core.Execution) error {
		g.count(e.TenantID, 1)
		defer g.count(e.TenantID, -1)
		select {
		case <-time.After(g.takes):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return g
}

func (g *gauge) count(tenant uuid.UUID, by int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if by > 0 {
		g.order = append(g.order, tenant)
	}
	for _, t := range []uuid.UUID{tenant, core.AllTenants} {
		g.live[t] += by
		g.peak[t] = max(g.peak[t], g.live[t])
	}
}

// peaks returns the most that ran at once, of a tenant or of all.
func (g *gauge) peaks(tenant uuid.UUID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.peak[tenant]
}

// TestLimits: two claimers and two executors on one database never have more runs of a
// queue running than its limit lets, of one tenant than its own lets, and lose
// none of those that wait. A tenant that comes late does not wait for all of another's.
func TestLimits(t *testing.T) {
	eachLevel(t, func(w *world) {
		const n, all, own = 150, 6, 4
		first, second := w.tenant, uuid.New()
		w.must(w.db.SetLimit(w.ctx, core.Limit{Queue: queue, Concurrency: all}))
		w.must(w.db.SetLimit(w.ctx, core.Limit{Queue: queue, TenantID: first, Concurrency: own}))
		w.seedDue(n)
		job := newGauge(15 * time.Millisecond)
		for range 2 {
			db, box := w.open(w.url), newMailbox(w)
			w.claimer(db, box, nil)
			w.executor(db, box, job, func(c *executor.Config) { c.Publisher = box })
		}
		w.until("some have run", func() bool { return len(job.executions()) >= 20 })
		w.tenant = second
		w.seedDue(20)
		end := w.succeeded(n + 20)
		if diff := cmp.Diff(once(end), job.executions()); diff != "" {
			w.Errorf("executions: %s", diff)
		}
		if got := job.peaks(core.AllTenants); got > all {
			w.Errorf("%d ran at once, the limit is %d", got, all)
		}
		if got := job.peaks(first); got > own {
			w.Errorf("%d of the first tenant ran at once, its limit is %d", got, own)
		}
		last := len(job.order) - 1 - slices.Index(reversed(job.order), second)
		if behind := len(job.order) - 1 - last; behind < 20 {
			w.Errorf("the late tenant's last run came when only %d of the other's were left", behind)
		}
	})
}

func reversed[T any](in []T) []T {
	out := slices.Clone(in)
	slices.Reverse(out)
	return out
}

// TestLimitKeepsPace: a limit costs waiting, not throughput: runs follow each other
// without a look by anybody in between. -v prints how close it comes.
func TestLimitKeepsPace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.New(t))
	const n, limit, takes = 400, 10, 100 * time.Millisecond
	w.must(w.db.SetLimit(w.ctx, core.Limit{Queue: queue, Concurrency: limit}))
	w.seedDue(n)
	box, job := newMailbox(w), newGauge(takes)
	began := time.Now()
	w.claimer(w.db, box, nil)
	w.executor(w.db, box, job, func(c *executor.Config) { c.Publisher = box })
	w.succeeded(n)
	took, least := time.Since(began), n/limit*takes
	t.Logf("%d runs of %s, %d at once: %s, of which %s is the least", n, takes, limit, took.Round(10*time.Millisecond), least)
	if published := len(box.published()); published > n+n/4 {
		t.Errorf("%d messages for %d runs", published, n)
	}
	// Looks alone would let ten go a second.
	if took > time.Duration(n/limit)*time.Second/2 {
		t.Errorf("it took %s", took)
	}
}

// TestLimitOutlivesItsHolder: the permits of an executor that is gone are free once its
// leases have ended, and runs that wait go on.
func TestLimitOutlivesItsHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.New(t))
	w.must(w.db.SetLimit(w.ctx, core.Limit{Queue: queue, Concurrency: 2}))
	w.seedDue(6)
	box := newMailbox(w)
	w.claimer(w.db, box, nil)
	w.until("two are let go", func() bool { return len(box.published()) >= 2 })
	ds, err := box.Receive(w.ctx, queue, 10)
	w.must(err)
	view, err := w.db.Permits(w.ctx, ds)
	w.must(err)
	for i := range ds { // as an executor that dies right after
		ds[i].Permits = view.Free[i : i+1]
	}
	if started, err := w.db.Start(w.ctx, ds, 3*time.Second); err != nil || len(started) != 2 {
		t.Fatal(fmt.Sprint(started), err)
	}
	job := newGauge(0)
	w.executor(w.db, box, job, func(c *executor.Config) { c.Publisher = box })
	w.succeeded(6)
	if got := job.peaks(core.AllTenants); got > 2 {
		t.Errorf("%d ran at once", got)
	}
}
