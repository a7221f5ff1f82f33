package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func testOverdue(w *world) {
	look := func(tenant uuid.UUID) []core.Overdue {
		got, err := w.Store.Overdue(w.ctx, tenant)
		w.must(err)
		return got
	}
	w.same("overdue at first", 0, len(look(w.tenant)))
	id, h := w.reach(core.RunQueued, nil)
	_, running := w.reach(core.RunRunning, func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	fire := w.get(id).Timer.FireAt
	queued, since := w.run(h.Key).CreatedAt, w.run(running.Key).CreatedAt
	w.to(fire.Add(time.Hour))
	got := look(w.tenant)
	if len(got) != 3 {
		w.Fatalf("overdue: %+v", got)
	}
	w.same("due", core.Overdue{Count: got[0].Count, Since: fire}, got[0])
	w.same("queued", core.Overdue{State: core.RunQueued, Queue: queue, Count: 1, Since: queued}, got[1])
	w.same("running", core.Overdue{State: core.RunRunning, Queue: queue, Count: 1, Since: since}, got[2])
	w.same("overdue of another tenant", 0, len(look(uuid.New())))
}
