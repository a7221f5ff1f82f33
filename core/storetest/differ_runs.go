package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/backfill"
)

func runDeeds() []deed {
	return []deed{
		{"start", differStart}, {"heartbeat", differHeartbeat}, {"finish", differFinish}, {"sweep", differSweep}, {"settle", differSettle},
		{"nudge", differNudge}, {"cancel run", differCancelRun}, {"redrive", differRedrive},
		{"set limit", differSetLimit}, {"drop limit", differDropLimit}, {"hold", differHold}, {"admit", differAdmit},
	}
}

// differStart starts a message: a new one, an old one, one sent again, with the permits
// that it needs or without.
func differStart(w *twins) bool {
	d, ok := one(w, w.ds)
	if !ok {
		return false
	}
	if w.likely(3) {
		d.Token = w.id()
	}
	view, _ := both(w, "permits", func(s Store) (core.PermitView, error) { return s.Permits(w.ctx, []core.Delivery{d}) })
	if w.likely(8) {
		d.Permits = nil
		for _, need := range view.Under[d.Key] {
			for _, p := range view.Free {
				if p.TenantID == need.TenantID && p.Queue == need.Queue {
					d.Permits = append(d.Permits, core.Permit{Queue: p.Queue, TenantID: p.TenantID, N: lowest(view.Free, p), Version: 0})
					break
				}
			}
		}
		for i, p := range d.Permits {
			for _, f := range view.Free {
				if f.Queue == p.Queue && f.TenantID == p.TenantID && f.N == p.N {
					d.Permits[i].Version = f.Version
				}
			}
		}
	}
	got, _ := both(w, "start", func(s Store) ([]core.Started, error) { return s.Start(w.ctx, []core.Delivery{d}, lease) })
	for _, s := range got {
		w.held = append(w.held, held(s))
	}
	return len(got) > 0
}

// lowest returns the smallest number of the free permits of a limit: both stores are to
// be given the same one.
func lowest(free []core.Permit, of core.Permit) int {
	n := of.N
	for _, p := range free {
		if p.Queue == of.Queue && p.TenantID == of.TenantID {
			n = min(n, p.N)
		}
	}
	return n
}

func differHeartbeat(w *twins) bool {
	h, ok := one(w, w.held)
	if !ok {
		return false
	}
	got, _ := both(w, "heartbeat", func(s Store) ([]core.Beat, error) { return s.Heartbeat(w.ctx, []core.Held{h}, lease) })
	return len(got) > 0
}

func differFinish(w *twins) bool {
	h, ok := one(w, w.held)
	if !ok {
		return false
	}
	o := core.Outcome{Held: h}
	switch w.rng.IntN(5) {
	case 0, 1:
		o.State, o.Result = core.RunSucceeded, []byte(`{"n": 2}`)
	case 2:
		o.State, o.Reason, o.Delay, o.Error = core.RunRetrying, core.ReasonExhausted, time.Duration(w.rng.IntN(60))*time.Second, "it failed"
		o.HandedBack = w.likely(3)
	case 3:
		o.State, o.Reason, o.Error = core.RunDead, core.ReasonPermanent, "no"
	case 4:
		o.State = core.RunCanceled
	}
	got, _ := both(w, "finish", func(s Store) ([]core.Finished, error) { return s.Finish(w.ctx, []core.Outcome{o}) })
	return len(got) > 0
}

func differSweep(w *twins) bool {
	o := sweepOptions()
	o.Queues = append([]string{}, differQueues[:w.rng.IntN(3)]...)
	if w.likely(3) {
		o.LostIn = nil
	}
	if w.likely(3) {
		o.TellDead = 10 * time.Second
	}
	got, _ := both(w, "sweep", func(s Store) ([]core.Swept, error) {
		all, _, err := s.Sweep(w.ctx, o)
		return all, err
	})
	for _, s := range got {
		if s.State == core.RunQueued {
			w.ds = append(w.ds, core.Delivery{Message: s.Message(), Token: w.id()})
		}
	}
	return len(got) > 0
}

func differSettle(w *twins) bool {
	r, ok := w.run(core.RunDead)
	if !ok {
		return false
	}
	_, err := both(w, "settle", func(s Store) (any, error) {
		return nil, s.Settle(w.ctx, []core.Held{{Key: r.Key, Fence: r.Fence}})
	})
	return err == nil && r.State == core.RunDead
}

func differNudge(w *twins) bool {
	id, ok := one(w, w.ids)
	if !ok {
		return false
	}
	_, err := both(w, "nudge", func(s Store) (any, error) { return nil, s.Nudge(w.ctx, []uuid.UUID{id}) })
	return err == nil
}

func differCancelRun(w *twins) bool {
	r, ok := w.run(core.RunQueued, core.RunRunning, core.RunRetrying)
	if !ok || w.likely(5) {
		return false
	}
	_, err := both(w, "cancel run", func(s Store) (core.Run, error) { return s.CancelRun(w.ctx, r.TenantID, r.Key) })
	return err == nil
}

func differRedrive(w *twins) bool {
	r, ok := w.run(core.RunDead)
	if !ok {
		return false
	}
	cur, err := w.a.Store.Get(w.ctx, r.TenantID, r.Key.ScheduleID)
	if err != nil {
		return false
	}
	d := core.Redrive{Key: r.Key, Fence: cur.Timer.Fence, Within: cur.Schedule.Rules.TotalTimeout}
	_, err = both(w, "redrive", func(s Store) (any, error) { return nil, s.Redrive(w.ctx, r.TenantID, d) })
	return err == nil
}

func differSetLimit(w *twins) bool {
	l := core.Limit{Queue: queue, TenantID: w.anybody(), Concurrency: w.rng.IntN(3)}
	if w.likely(5) {
		l.TenantID = core.AllTenants
	}
	_, err := both(w, "set limit", func(s Store) (any, error) { return nil, s.SetLimit(w.ctx, l) })
	_, _ = both(w, "limits", func(s Store) ([]core.Limit, error) { return s.Limits(w.ctx, w.tenants[0]) })
	return err == nil
}

func differDropLimit(w *twins) bool {
	tenant := w.anybody()
	if w.likely(5) {
		tenant = core.AllTenants
	}
	_, err := both(w, "drop limit", func(s Store) (any, error) { return nil, s.DropLimit(w.ctx, queue, tenant) })
	return err == nil
}

func differHold(w *twins) bool {
	d, ok := one(w, w.ds)
	if !ok {
		return false
	}
	_, err := both(w, "hold", func(s Store) (any, error) { return nil, s.Hold(w.ctx, []core.Message{d.Message}) })
	return err == nil
}

func differAdmit(w *twins) bool {
	o := core.AdmitOptions{Queues: differQueues, Most: 1 + w.rng.IntN(3), DispatchLease: dispatchLease}
	got, _ := both(w, "admit", func(s Store) ([]core.Claimed, error) { return s.Admit(w.ctx, o) })
	w.publish(got)
	return len(got) > 0
}

func otherDeeds() []deed {
	return []deed{
		{"list", differList}, {"reserve", differReserve}, {"backfill", differBackfill}, {"advance backfill", differAdvanceBackfill},
		{"cancel backfill", differCancelBackfill}, {"keys", differKeys}, {"look after", differLookAfter},
	}
}

func differList(w *twins) bool {
	tenant := w.anybody()
	q := core.ScheduleQuery{Limit: 1 + w.rng.IntN(4)}
	if w.likely(5) {
		q.Queue = queue
	}
	// Pages may end elsewhere; all together they are the same.
	got, _ := both(w, "list", func(s Store) ([]core.Scheduled, error) {
		var all []core.Scheduled
		for q := q; ; {
			page, err := s.List(w.ctx, tenant, q)
			if all = append(all, page.Items...); err != nil || !page.More {
				return all, err
			}
			q.After = page.Last
		}
	})
	id, ok := one(w, w.ids)
	if !ok {
		return false
	}
	since := w.now().Add(-time.Duration(w.rng.IntN(20)) * time.Minute)
	_, _ = both(w, "runs of some states", func(s Store) ([]core.Run, error) {
		var all []core.Run
		for q := (core.RunQuery{Limit: 3, From: since, States: []core.RunState{core.RunSkipped, core.RunDead}}); ; {
			page, err := s.Runs(w.ctx, tenant, id, q)
			if all = append(all, page.Items...); err != nil || !page.More {
				return all, err
			}
			q.Before = page.Last
		}
	})
	_, _ = both(w, "slot row", func(s Store) (*core.Run, error) { return s.SlotRow(w.ctx, tenant, id, since) })
	_, _ = both(w, "count", func(s Store) (int, error) { return s.CountSchedules(w.ctx, tenant, 2) })
	return len(got) > 0
}

func differReserve(w *twins) bool {
	r := core.Request{Key: [32]byte{byte(w.rng.IntN(4))}, Body: [32]byte{byte(w.rng.IntN(2))}}
	_, err := both(w, "reserve", func(s Store) (core.Reservation, error) { return s.Reserve(w.ctx, w.tenants[0], r) })
	if d, ok := one(w, w.ds); ok {
		msgs := []core.Message{{Key: d.Key, Fence: d.Fence}}
		_, _ = both(w, "note lease", func(s Store) ([]core.Message, error) { return s.NoteLease(w.ctx, w.tenants[0], r.Key, msgs) })
	}
	return err == nil
}

func differBackfill(w *twins) bool {
	cur, slots, ok := w.schedule()
	if !ok || len(w.fills) > 8 {
		return false
	}
	b := core.Backfill{ID: w.id(), TenantID: cur.Schedule.TenantID, ScheduleID: cur.Schedule.ID, From: cur.Now.Add(-time.Hour), To: cur.Now, Concurrency: 2}
	var runs []core.BackfillRun
	for slot := slots.Next(b.From); len(runs) < 5; slot = slots.Next(slot) {
		runs = append(runs, core.BackfillRun{Key: slot.Add(time.Duration(1+w.rng.IntN(2)) * time.Microsecond), CoversFrom: slots.Prev(slot)})
	}
	_, err := both(w, "create backfill", func(s Store) (any, error) { return nil, s.CreateBackfill(w.ctx, b, runs) })
	w.fills = append(w.fills, b.ID)
	return err == nil
}

func differAdvanceBackfill(w *twins) bool {
	due, _ := both(w, "due backfills", func(s Store) ([]core.DueBackfill, error) { return s.DueBackfills(w.ctx, core.AllShards()) })
	for _, d := range due {
		step, ok := backfill.Step(d)
		if !ok {
			continue
		}
		step.Fence -= int64(w.rng.IntN(4) / 3)
		got, _ := both(w, "advance backfill", func(s Store) ([]core.Claimed, error) { return s.AdvanceBackfill(w.ctx, step, dispatchLease) })
		w.publish(got)
		return len(got) > 0
	}
	return false
}

func differCancelBackfill(w *twins) bool {
	id, ok := one(w, w.fills)
	if !ok || w.likely(7) {
		return false
	}
	tenant := w.anybody()
	_, err := both(w, "cancel backfill", func(s Store) (any, error) { return nil, s.CancelBackfill(w.ctx, tenant, id) })
	got, missing := both(w, "backfill", func(s Store) (core.Backfill, error) { return s.Backfill(w.ctx, tenant, id) })
	return err == nil && missing == nil && got.State == core.BackfillCanceled
}

func differKeys(w *twins) bool {
	k := core.APIKey{Hash: [32]byte{byte(w.rng.IntN(5))}, TenantID: w.anybody(), Name: "k", Scopes: []string{"read"}}
	if w.likely(5) {
		k.ExpiresIn = time.Minute
	}
	_, err := both(w, "add key", func(s Store) (any, error) { return nil, s.AddKey(w.ctx, k) })
	_, _ = both(w, "find key", func(s Store) (core.APIKey, error) { return s.FindKey(w.ctx, k.Hash) })
	_, _ = both(w, "list keys", func(s Store) (core.KeyPage, error) { return s.ListKeys(w.ctx, k.TenantID, 3, core.KeyMark{}) })
	if w.likely(2) {
		_, _ = both(w, "revoke key", func(s Store) (core.APIKey, error) { return s.RevokeKey(w.ctx, k.TenantID, k.ID()) })
	}
	return err == nil
}

func differLookAfter(w *twins) bool {
	tenant := w.anybody()
	_, _ = both(w, "alerts", func(s Store) (int, error) {
		all, err := s.Alerts(w.ctx, tenant)
		return len(all), err
	})
	_, _ = both(w, "completed", func(s Store) ([]core.ScheduleRef, error) { return s.Completed(w.ctx) })
	got, err := both(w, "overdue", func(s Store) ([]string, error) {
		var out []string
		all, err := s.Overdue(w.ctx, tenant)
		for _, o := range all {
			out = append(out, fmt.Sprint(o.State, o.Queue, o.Count, o.Since.UnixMicro()))
		}
		return out, err
	})
	return err == nil && len(got) > 0
}
