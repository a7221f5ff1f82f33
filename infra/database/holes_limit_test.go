package database_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/core"
)

func limitHoles() []hole {
	slowly := stalling("start", "AS g(schedule_id, scheduled_for, fence, queue, tenant_id, n, version)\n")
	return []hole{
		{
			name: "L1_start_without_a_permit", scenario: startWithoutPermit,
			guards: []mutation{{file: "start", guard: "(NOT m.limited OR", instead: "(true OR"}},
		},
		{
			name: "L2_two_starts_with_one_permit", scenario: twoStartsOnePermit, stall: slowly,
			guards: []mutation{{file: "start", guard: "AND p.n = g.n AND p.version = g.version\n", instead: "AND p.n = g.n\n"}},
		},
		{
			name: "L3_permit_of_another_limit", scenario: permitOfAnother,
			guards: []mutation{{file: "start", guard: "AND k.queue = q.name AND k.tenant_id = q.tenant_id AND", instead: "AND"}},
		},
		{
			name: "L4_permit_seen_before_a_lost_lease", scenario: permitOfALostRun,
			guards: []mutation{{file: "read_permits", guard: "AND j.state = 'running' AND j.fence = p.fence", instead: "AND j.state = 'running'"}},
		},
		{
			name: "L5_two_starts_of_one_run", scenario: twoStartsOneRun, stall: slowly,
			guards: []mutation{{file: "start", guard: " AND r.holder = m.token", instead: ""}},
		},
		{
			name: "L6_let_go_twice", scenario: letGoTwice, stall: sleeping("admit", "chosen", "w"),
			guards: []mutation{{file: "admit", guard: "AND r.state = 'queued' AND r.gate = 1 AND r.fence = w.fence\n", instead: "AND r.state = 'queued'\n"}},
		},
	}
}

// limited makes n runs of a queue that lets limit be running, and returns their
// messages.
func (w *world) limited(limit, n int) []core.Delivery {
	w.Helper()
	w.must(w.db.SetLimit(w.ctx, core.Limit{Queue: "test", Concurrency: limit}))
	out := make([]core.Delivery, n)
	for i := range out {
		out[i] = delivery(w.claimNow(w.overdue(nil)))
	}
	return out
}

// permit gives a delivery the first free permit.
func (w *world) permit(d core.Delivery) core.Delivery {
	w.Helper()
	v, err := w.db.Permits(w.ctx, []core.Delivery{d})
	w.must(err)
	if len(v.Free) == 0 {
		w.Fatal("no permit is free")
	}
	d.Permits = v.Free[:1]
	return d
}

func (w *world) running() int {
	w.Helper()
	return value[int](w, "SELECT count(*) FROM runs WHERE state = 'running'")
}

func (w *world) overLimit(limit int) string {
	w.Helper()
	if n := w.running(); n > limit {
		return fmt.Sprintf("%d runs are running, the limit is %d", n, limit)
	}
	return ""
}

// startWithoutPermit: an executor that has not heard of the limit.
func startWithoutPermit(w *world) string {
	ds := w.limited(0, 1)
	w.start(ds[0], time.Minute)
	return w.overLimit(0)
}

// twoStartsOnePermit: two executors see the same permit free and take it at once.
func twoStartsOnePermit(w *world) string {
	ds := w.limited(1, 2)
	ds[0] = w.permit(ds[0])
	ds[1].Permits = ds[0].Permits
	var wg sync.WaitGroup
	for _, d := range ds {
		wg.Go(func() { w.start(d, time.Minute) })
	}
	wg.Wait()
	if w.running() == 0 {
		w.Error("neither got it")
	}
	return w.overLimit(1)
}

// permitOfAnother: a permit of the tenant's limit is none of the queue's.
func permitOfAnother(w *world) string {
	ds := w.limited(1, 2)
	w.start(w.permit(ds[0]), time.Minute)
	w.must(w.db.SetLimit(w.ctx, core.Limit{Queue: "test", TenantID: w.tenant, Concurrency: 5}))
	w.start(w.permit(ds[1]), time.Minute)
	return w.overLimit(1)
}

// permitOfALostRun: a run loses its lease and is started again with another permit:
// the first one is free.
func permitOfALostRun(w *world) string {
	ds := w.limited(2, 1)
	w.start(w.permit(ds[0]), time.Millisecond)
	w.waitFor("the lease to end", func() bool { return len(w.sweep()) > 0 })
	again := ds[0]
	again.Fence = value[int64](w, "SELECT fence FROM runs WHERE state = 'queued'")
	again.Token[0]++
	v, err := w.db.Permits(w.ctx, []core.Delivery{again})
	w.must(err)
	again.Permits = slices.DeleteFunc(v.Free, func(p core.Permit) bool { return p.N == 1 })
	w.start(again, time.Minute)
	next := w.limited(2, 1)[0]
	v, err = w.db.Permits(w.ctx, []core.Delivery{next})
	w.must(err)
	if len(v.Free) != 1 {
		return fmt.Sprintf("%d permits are free while one of two runs", len(v.Free))
	}
	return ""
}

// twoStartsOneRun: a message comes to two executors at once, and both have a permit.
func twoStartsOneRun(w *world) string {
	d := w.limited(2, 1)[0]
	v, err := w.db.Permits(w.ctx, []core.Delivery{d})
	w.must(err)
	var started atomic.Int64
	var wg sync.WaitGroup
	for i := range 2 {
		mine := delivery(core.Claimed{Key: d.Key, Fence: d.Fence})
		mine.Permits = v.Free[i : i+1]
		wg.Go(func() { started.Add(int64(len(w.start(mine, time.Minute)))) })
	}
	wg.Wait()
	if n := started.Load(); n != 1 {
		return fmt.Sprintf("C5: %d executors have the run", n)
	}
	return ""
}

// letGoTwice: two claimers look for waiting runs at the same time.
func letGoTwice(w *world) string {
	ds := w.limited(1, 3)
	w.must(w.db.Hold(w.ctx, []core.Message{ds[0].Message, ds[1].Message, ds[2].Message}))
	var n atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			got, err := w.db.Admit(w.ctx, core.AdmitOptions{Queues: []string{"test"}, Most: 10, DispatchLease: time.Minute})
			w.must(err)
			n.Add(int64(len(got)))
		})
	}
	wg.Wait()
	if n.Load() != 1 {
		return fmt.Sprintf("%d messages for one permit", n.Load())
	}
	return ""
}
