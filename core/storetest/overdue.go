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
	queued, lease := w.run(h.Key).CreatedAt, w.run(running.Key).WakeAt
	w.to(fire.Add(time.Hour))
	got := look(w.tenant)
	if len(got) != 3 {
		w.Fatalf("overdue: %+v", got)
	}
	waits := core.Overdue{State: core.RunQueued, Queue: queue, Count: 1, Since: queued}
	w.same("queued", waits, got[0])
	w.same("due", core.Overdue{Count: got[1].Count, Since: fire}, got[1])
	w.same("running", core.Overdue{State: core.RunRunning, Queue: queue, Count: 1, Since: lease}, got[2])
	w.same("overdue of another tenant", 0, len(look(uuid.New())))

	// A run that nobody takes is published again and again, and waits all the same.
	w.same("runs published again", 2, len(w.sweep(sweepOptions())))
	w.same("wakes later", true, w.run(h.Key).WakeAt.After(w.now()))
	w.same("queued, published again", waits, look(w.tenant)[0])
}

func testAlerts(w *world) {
	look := func(tenant uuid.UUID) []core.Alert {
		got, err := w.Store.Alerts(w.ctx, tenant)
		w.must(err)
		return got
	}
	id := w.add(nil)
	w.add(func(s *core.Schedule) { s.Name = "other" })
	m := w.due(id)
	w.same("alerts at first", 0, len(look(w.tenant)))
	w.must(w.Store.Park(w.ctx, w.get(id).Timer.Shard, m, "cannot be claimed"))
	want := []core.Alert{{ScheduleID: id, Name: w.get(id).Schedule.Name, Kind: core.AlertClaimRefused, Detail: "cannot be claimed", OpenedAt: w.now()}}
	w.same("alerts", want, look(w.tenant))
	w.same("alerts of another tenant", 0, len(look(uuid.New())))
	w.to(w.get(id).Timer.FireAt)
	w.same("alerts when it is tried again", want, look(w.tenant))
	w.same("claimed", true, len(w.claim(w.due(id))) > 0)
	w.same("alerts when it was claimed", 0, len(look(w.tenant)))
}
