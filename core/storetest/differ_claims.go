package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// differQueues are the queues of the schedules; the first has limits at times.
var differQueues = []string{queue, "other"}

func scheduleDeeds() []deed {
	return []deed{
		{"create", differCreate}, {"edit", differEdit}, {"pause", differPause}, {"delete", differDelete},
		{"trigger", differTrigger}, {"advance", differAdvance}, {"calendar", differCalendar},
	}
}

func differCreate(w *twins) bool {
	if len(w.ids) >= 4 {
		return false
	}
	tenant := w.tenants[w.rng.IntN(2)]
	s := core.Schedule{
		Region: w.a.Region, TenantID: tenant, ID: w.id(), Spec: fmt.Sprintf("every %dm", 1+w.rng.IntN(3)),
		Anchor: w.now().Truncate(time.Minute), Job: core.Job{Queue: differQueues[w.rng.IntN(2)], Payload: []byte(`{"n": 1}`)},
		Misfire:      []core.Misfire{core.MisfireRunOnce, core.MisfireSkip, core.MisfireRunAll}[w.rng.IntN(3)],
		MisfireGrace: 30 * time.Second, Timeout: time.Minute, MaxAttempts: 1 + w.rng.IntN(3),
		Overlap: []core.Overlap{core.OverlapSkip, core.OverlapAllow, core.OverlapQueueOne, core.OverlapCancelPrevious}[w.rng.IntN(4)],
	}
	s.Rules.MisfireCap = 5
	if w.likely(2) {
		s.CatchUpWithin = 2 * time.Minute
	}
	if w.likely(2) {
		s.Rules.TotalTimeout = 5 * time.Minute
	}
	s.Name = s.ID.String()
	slots, err := spec.Load(&s)
	if err != nil {
		w.Fatal(err)
	}
	next, done := plan.First(&s, slots, w.now())
	for range 1 + w.rng.IntN(2) { // sent again at times
		_, err = both(w, "create", func(st Store) (any, error) { return nil, st.Create(w.ctx, s, next, done) })
	}
	w.ids, w.owner[s.ID] = append(w.ids, s.ID), tenant
	return err == nil
}

func differEdit(w *twins) bool {
	cur, slots, ok := w.schedule()
	if !ok {
		return false
	}
	next := cur.Schedule
	next.MaxAttempts = 1 + w.rng.IntN(4)
	next.Job.Queue = differQueues[w.rng.IntN(2)]
	changed := w.likely(5)
	if changed {
		next.Spec = fmt.Sprintf("every %dm", 1+w.rng.IntN(3))
	}
	if w.likely(3) {
		next.Overlap = []core.Overlap{core.OverlapSkip, core.OverlapAllow, core.OverlapQueueOne}[w.rng.IntN(3)]
	}
	after, err := spec.Load(&next)
	if err != nil {
		w.Fatal(err)
	}
	e := plan.Edit(&cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: after, SlotsChanged: changed})
	return w.apply(&cur, e)
}

// apply carries an edit out, or one whose guard does not hold.
func (w *twins) apply(cur *core.Scheduled, e core.Edit) bool {
	w.Helper()
	if w.likely(1) {
		e.Fence--
	}
	_, err := both(w, "apply", func(s Store) (any, error) { return nil, s.Apply(w.ctx, cur.Schedule.TenantID, e) })
	return err == nil
}

func differPause(w *twins) bool {
	cur, slots, ok := w.schedule()
	if !ok {
		return false
	}
	if !cur.Schedule.Paused {
		return w.apply(&cur, plan.Pause(&cur, slots, time.Time{}, "x"))
	}
	next := cur.Schedule
	next.Paused, next.Rules.PauseNote = false, ""
	return w.apply(&cur, plan.Edit(&cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: slots}))
}

func differDelete(w *twins) bool {
	cur, slots, ok := w.schedule()
	if !ok || len(w.ids) < 4 || w.likely(7) {
		return false
	}
	e := plan.Delete(&cur, slots)
	_, err := both(w, "delete", func(s Store) (any, error) { return nil, s.Delete(w.ctx, cur.Schedule.TenantID, e) })
	if err == nil && len(w.ids) >= 4 { // room for another; its runs stay in both
		w.ids = w.ids[1:]
	}
	return err == nil
}

func differTrigger(w *twins) bool {
	cur, _, ok := w.schedule()
	if !ok {
		return false
	}
	m := core.Manual{ScheduleID: cur.Schedule.ID, Fence: cur.Timer.Fence - int64(w.rng.IntN(4)/3), Slot: w.now().Truncate(time.Millisecond).Add(time.Microsecond)}
	_, err := both(w, "trigger", func(s Store) (core.Run, error) { return s.Trigger(w.ctx, cur.Schedule.TenantID, m) })
	return err == nil
}

func differAdvance(w *twins) bool {
	w.advance([]time.Duration{time.Second, 10 * time.Second, time.Minute, 4 * time.Minute}[w.rng.IntN(4)] + time.Duration(w.rng.IntN(1000))*time.Millisecond)
	return true
}

func differCalendar(w *twins) bool {
	c := core.Calendar{TenantID: w.tenants[0], Name: "c", CalendarContent: core.CalendarContent{Note: fmt.Sprint(w.rng.IntN(3))}}
	version := int64(w.rng.IntN(3))
	_, err := both(w, "put calendar", func(s Store) (core.Calendar, error) { return s.PutCalendar(w.ctx, c, version) })
	if err != nil && w.likely(2) {
		_, _ = both(w, "delete calendar", func(s Store) (any, error) { return nil, s.DeleteCalendar(w.ctx, w.tenants[0], "c", version) })
	}
	return err == nil
}

func claimDeeds() []deed {
	return []deed{
		{"plan", differPlan}, {"claim", differClaim}, {"cancel previous", differCancelPrevious}, {"read claimed", differReadClaimed},
		{"park", differPark}, {"look", differLook}, {"shards", differShards},
	}
}

// differPlan plans a move as a claimer does, for now or for a claim to come.
func differPlan(w *twins) bool {
	cur, slots, ok := w.schedule()
	if !ok {
		return false
	}
	m := plan.Move(&cur.Schedule, &cur.Timer, slots, later(cur.Now, cur.Timer.FireAt))
	if w.likely(5) {
		for i := range m.Rows {
			m.Rows[i].Elsewhere = true
		}
	}
	w.moves = append(w.moves, m)
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ready returns a move: mostly one that is fresh, at its time; else an old one, now.
func (w *twins) ready() (core.Move, bool) {
	w.Helper()
	if !w.likely(8) || !differPlan(w) {
		return one(w, w.moves)
	}
	m := w.moves[len(w.moves)-1]
	if m.FireAt.After(w.now()) && m.FireAt.Before(w.now().Add(time.Hour)) && w.likely(9) {
		w.advance(m.FireAt.Sub(w.now()))
	}
	return m, true
}

func differClaim(w *twins) bool {
	m, ok := w.ready()
	if !ok {
		return false
	}
	got, _ := both(w, "claim", func(s Store) ([]core.Claimed, error) {
		return s.Claim(w.ctx, core.ShardOf(m.ScheduleID), []core.Move{m}, dispatchLease)
	})
	w.publish(got)
	return len(got) > 0
}

// publish keeps the messages of runs.
func (w *twins) publish(claimed []core.Claimed) {
	for _, c := range claimed {
		if c.State == core.RunQueued {
			w.ds = append(w.ds, core.Delivery{Message: c.Message(), Token: w.id()})
		}
	}
}

func differCancelPrevious(w *twins) bool {
	m, ok := w.ready()
	if !ok {
		return false
	}
	got, _ := both(w, "cancel previous", func(s Store) ([]core.Claimed, error) {
		return s.CancelPrevious(w.ctx, core.ShardOf(m.ScheduleID), []core.Move{m})
	})
	return len(got) > 0
}

// differReadClaimed looks up a claim, which it sends before at times.
func differReadClaimed(w *twins) bool {
	if w.likely(5) {
		differClaim(w)
	}
	if len(w.moves) == 0 {
		return false
	}
	m := w.moves[len(w.moves)-1]
	got, _ := both(w, "read claimed", func(s Store) ([]core.Claimed, error) { return s.ReadClaimed(w.ctx, []core.Move{m}) })
	w.publish(got)
	return len(got) > 0
}

func differPark(w *twins) bool {
	m, ok := one(w, w.moves)
	if !ok || w.likely(8) {
		return false
	}
	_, err := both(w, "park", func(s Store) (any, error) { return nil, s.Park(w.ctx, core.ShardOf(m.ScheduleID), m, "no") })
	w.same("alert", w.a.Alert(m.ScheduleID), w.b.Alert(m.ScheduleID))
	return err == nil && w.a.Alert(m.ScheduleID) != ""
}

func differLook(w *twins) bool {
	ahead := time.Duration(w.rng.IntN(5)) * time.Minute
	got, _ := both(w, "preload", func(s Store) ([]core.Scheduled, error) {
		all, _, err := s.Preload(w.ctx, allShards(), ahead)
		return all, err
	})
	_, _ = both(w, "poll", func(s Store) ([]core.TimerRef, error) {
		all, _, err := s.Poll(w.ctx, allShards(), ahead)
		return all, err
	})
	_, _ = both(w, "read timers", func(s Store) ([]core.Scheduled, error) {
		all, _, err := s.ReadTimers(w.ctx, w.ids)
		return all, err
	})
	return len(got) > 0
}

func differShards(w *twins) bool {
	owner := fmt.Sprint("owner", w.rng.IntN(2))
	type answer struct {
		Shards []int16
		Owners int
	}
	_, _ = both(w, "renew shards", func(s Store) (answer, error) {
		held, n, err := s.RenewShards(w.ctx, owner, 15*time.Second)
		return answer{held, n}, err
	})
	got, _ := both(w, "take shards", func(s Store) (int, error) {
		taken, err := s.TakeShards(w.ctx, owner, 15*time.Second, core.Shards) // all that are free
		return len(taken), err
	})
	if w.likely(3) {
		_, _ = both(w, "release shards", func(s Store) (any, error) { return nil, s.ReleaseShards(w.ctx, owner, nil) })
	}
	return got > 0
}

// anybody is a tenant, or nobody.
func (w *twins) anybody() uuid.UUID { return w.tenants[w.rng.IntN(len(w.tenants))] }
