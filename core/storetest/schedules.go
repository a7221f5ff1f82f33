package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
)

func scheduleTests() []test {
	return []test{
		{"a schedule is stored as it was given", testCreate},
		{"a create sent again changes nothing", testCreateAgain},
		{"names are unique among a tenant's living schedules", testNames},
		{"refused values are stored nowhere", testCreateBad},
		{"schedules are listed in pages by id", testList},
		{"runs are listed in pages, newest first", testRuns},
		{"filters choose schedules", testFilters},
		{"what waits too long is found", testOverdue},
		{"alerts stand until the timer moves", testAlerts},
		{"labels are stored and replaced as a whole", testLabels},
		{"a schedule shows the state of its last run", testLastState},
		{"no method finds anything of another tenant", testTenants},
		{"a trigger makes a manual run through the fence", testTrigger},
		{"a trigger meets live runs, other fences and taken slots", testTriggerRefused},
	}
}

func testCreate(w *world) {
	w.Advance(-time.Millisecond + time.Microsecond)
	s := w.content()
	s.Name, s.TimeZone, s.Overlap, s.Window, s.Timeout, s.Paused = "Tägliche Abrechnung", "Europe/Berlin", core.OverlapAllow, time.Hour, 0, true
	s.DSTGap, s.DSTOverlap, s.Exact, s.CatchUpWithin = core.DSTGapSkip, core.DSTOverlapBoth, true, time.Minute
	s.Job.Payload = []byte(`{"a": [1, {"b": null}]}`)
	w.must(w.Store.Create(w.ctx, s, core.Forever, w.now().Add(-time.Hour)))
	want := s
	want.Version, want.CreatedAt, want.UpdatedAt = 1, w.now(), w.now()
	timer := core.Timer{
		Region: w.Region, Shard: core.ShardOf(s.ID), ScheduleID: s.ID, TenantID: w.tenant, FireAt: core.Forever, Fence: 1, Done: w.now().Add(-time.Hour),
	}
	w.same("schedule", core.Scheduled{Schedule: want, Timer: timer, Now: w.now()}, w.get(s.ID))

	cron := w.content()
	cron.Spec, cron.Anchor = "0 9 * * *", time.Time{}
	w.must(w.Store.Create(w.ctx, cron, w.now().Add(-time.Second), w.now()))
	got := w.get(cron.ID)
	w.same("a due time below now", w.now(), got.Timer.FireAt)
	w.same("anchor of a cron schedule", time.Time{}, got.Schedule.Anchor)
	_, err := w.Store.Get(w.ctx, w.tenant, uuid.New())
	w.fails("an unknown schedule", core.ErrNotFound, err)
}

func testCreateAgain(w *world) {
	s := w.content()
	w.must(w.Store.Create(w.ctx, s, w.now().Add(time.Hour), w.now()))
	before := w.get(s.ID)
	s.Spec = "every 2h"
	w.must(w.Store.Create(w.ctx, s, w.now().Add(2*time.Hour), w.now()))
	w.same("schedule", before, w.get(s.ID))
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(s.ID)))
	w.must(w.Store.Create(w.ctx, s, w.now().Add(2*time.Hour), w.now()))
	_, err := w.Store.Get(w.ctx, w.tenant, s.ID)
	w.fails("a create sent again after a delete", core.ErrNotFound, err)
}

func testNames(w *world) {
	id := w.add(func(s *core.Schedule) { s.Name = "report" })
	create := func(tenant uuid.UUID) error {
		s := w.content()
		s.Name, s.TenantID = "report", tenant
		return w.Store.Create(w.ctx, s, w.now().Add(time.Hour), w.now())
	}
	w.fails("a name that is taken", core.ErrNameTaken, create(w.tenant))
	w.must(create(uuid.New()))
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(id)))
	w.must(create(w.tenant))
	w.fails("a name that is taken again", core.ErrNameTaken, create(w.tenant))
	other := w.add(nil)
	e := w.planEdit(other, func(s *core.Schedule) { s.Name = "report" })
	before := w.get(other)
	w.fails("an edit to a name that is taken", core.ErrNameTaken, w.Store.Apply(w.ctx, w.tenant, e))
	w.same("the schedule after it", before, w.get(other))
}

func testCreateBad(w *world) {
	for name, change := range map[string]func(*core.Schedule){
		"a name with NUL":     func(s *core.Schedule) { s.Name = "a\x00b" },
		"a spec not UTF-8":    func(s *core.Schedule) { s.Spec = "\xff" },
		"a payload not JSON":  func(s *core.Schedule) { s.Job.Payload = []byte("{") },
		"no payload":          func(s *core.Schedule) { s.Job.Payload = nil },
		"a payload with NUL":  func(s *core.Schedule) { s.Job.Payload = []byte(`{"a":"\u0000"}`) },
		"no attempts":         func(s *core.Schedule) { s.MaxAttempts = 0 },
		"an unknown overlap":  func(s *core.Schedule) { s.Overlap = "whim" },
		"an unknown misfire":  func(s *core.Schedule) { s.Misfire = "whim" },
		"a queue that is bad": func(s *core.Schedule) { s.Job.Queue = "\x00" },
	} {
		s := w.content()
		change(&s)
		w.fails(name, core.ErrBadRow, w.Store.Create(w.ctx, s, w.now().Add(time.Hour), w.now()))
		id := w.add(nil)
		before := w.get(id)
		w.fails(name+" in an edit", core.ErrBadRow, w.Store.Apply(w.ctx, w.tenant, w.planEdit(id, change)))
		w.same(name+" in an edit: schedule", before, w.get(id))
		w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(id)))
	}
	all, err := w.Store.List(w.ctx, w.tenant, core.ScheduleQuery{Limit: 100})
	w.must(err)
	w.same("schedules", 0, len(all.Items))
}

func testTenants(w *world) {
	id, h := w.reach(core.RunRetrying, func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	before, run := w.get(id), w.run(h.Key)
	stranger := uuid.New()
	edit := w.planEdit(id, func(s *core.Schedule) { s.Name = "mine" })
	_, err := w.Store.Get(w.ctx, stranger, id)
	w.fails("get", core.ErrNotFound, err)
	w.fails("apply", core.ErrChanged, w.Store.Apply(w.ctx, stranger, edit))
	w.fails("delete", core.ErrChanged, w.Store.Delete(w.ctx, stranger, w.deletion(id)))
	_, err = w.Store.Trigger(w.ctx, stranger, core.Manual{ScheduleID: before.Schedule.ID, Fence: before.Timer.Fence, Slot: w.manual()})
	w.fails("trigger", core.ErrChanged, err)
	_, _, err = w.Store.Run(w.ctx, stranger, h.Key)
	w.fails("run", core.ErrNotFound, err)
	all, err := w.Store.List(w.ctx, stranger, core.ScheduleQuery{Limit: 10})
	w.must(err)
	w.same("schedules listed", 0, len(all.Items))
	runs, err := w.Store.Runs(w.ctx, stranger, id, core.RunQuery{Limit: 10})
	w.must(err)
	w.same("runs listed", 0, len(runs.Items))
	w.same("schedule", before, w.get(id))
	w.same("run", run, w.run(h.Key))
	w.same("runs", 1, len(w.runs(id)))
}

// manual returns a slot that only a manual run can have.
func (w *world) manual() time.Time {
	w.Helper()
	return w.now().Truncate(time.Millisecond).Add(time.Microsecond)
}

// trigger makes a manual run of a schedule.
func (w *world) trigger(id uuid.UUID) core.Run {
	w.Helper()
	s := w.get(id)
	r, err := w.Store.Trigger(w.ctx, w.tenant, core.Manual{ScheduleID: s.Schedule.ID, Fence: s.Timer.Fence, Slot: w.manual()})
	w.must(err)
	return r
}

func testTrigger(w *world) {
	for _, overlap := range []core.Overlap{core.OverlapSkip, core.OverlapAllow} {
		id := w.add(func(s *core.Schedule) { s.Overlap = overlap })
		before := w.get(id).Timer
		got := w.trigger(id)
		want := core.Run{
			Key: core.RunKey{Region: w.Region, ScheduleID: id, Slot: w.manual()}, TenantID: w.tenant, State: core.RunQueued, Cause: core.CauseManual,
			Queue: queue, Fence: 2 * 65536, MaxAttempts: 3, WakeAt: w.now(), CreatedAt: w.now(),
		}
		if overlap == core.OverlapSkip {
			want.CoversFrom, want.CoversTo = before.Done, before.Done
		}
		w.same("returned", want, got)
		w.same("stored", want, w.run(got.Key))
		before.LastRun, before.Fence = got.Key.Slot, 2
		w.same("timer", before, w.get(id).Timer)
		o := sweepOptions()
		o.LostIn = nil
		w.same("published by the next sweep", got.Key, w.sweep(o)[0].Key)
	}
}

func testTriggerRefused(w *world) {
	for state, live := range map[core.RunState]bool{
		core.RunQueued: true, core.RunRunning: true, core.RunRetrying: true, core.RunSucceeded: false, core.RunDead: false, core.RunCanceled: false,
	} {
		id, h := w.reach(state, nil)
		w.twin(id, h.Key.Slot, contrary(state))
		before := w.get(id)
		w.same("live while "+string(state), live, before.LastRunLive())
		_, err := w.Store.Trigger(w.ctx, w.tenant, core.Manual{ScheduleID: before.Schedule.ID, Fence: before.Timer.Fence + 1, Slot: w.manual()})
		w.fails("another fence", core.ErrChanged, err)
		if !live {
			w.trigger(id)
			continue
		}
		_, err = w.Store.Trigger(w.ctx, w.tenant, core.Manual{ScheduleID: before.Schedule.ID, Fence: before.Timer.Fence, Slot: w.manual()})
		w.fails("during "+string(state), core.ErrRunLive, err)
		w.same("schedule", before, w.get(id))
		w.same("runs", 1, len(w.runs(id)))
	}
	id, _ := w.reach(core.RunQueued, func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	first := w.trigger(id)
	before := w.get(id)
	if _, err := w.Store.Trigger(w.ctx, w.tenant, core.Manual{ScheduleID: before.Schedule.ID, Fence: before.Timer.Fence, Slot: first.Key.Slot}); err == nil {
		w.Error("a manual run took the slot of another")
	}
	w.same("schedule", before, w.get(id))
	w.same("runs", 2, len(w.runs(id)))
	unknown := core.Schedule{ID: uuid.New(), TenantID: w.tenant}
	_, err := w.Store.Trigger(w.ctx, w.tenant, core.Manual{ScheduleID: unknown.ID, Fence: 1, Slot: w.manual()})
	w.fails("an unknown schedule", core.ErrChanged, err)
}

// deletion plans the deletion of a schedule.
func (w *world) deletion(id uuid.UUID) core.Edit {
	w.Helper()
	cur := w.get(id)
	return plan.Delete(&cur, w.slots(&cur.Schedule))
}
