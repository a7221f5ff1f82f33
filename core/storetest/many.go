package storetest

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func manyTests() []test {
	return []test{
		{"many schedules are stored as they were given", testCreateMany},
		{"of many schedules those with a taken id or name are left out", testCreateManyTaken},
		{"many schedules with a refused value are not stored", testCreateManyBad},
		{"schedules are found by their names", testNamed},
		{"a tenant's schedules are counted up to a limit", testCount},
	}
}

func testCount(w *world) {
	count := func(tenant uuid.UUID, most int) int {
		w.Helper()
		n, err := w.Store.CountSchedules(w.ctx, tenant, most)
		w.must(err)
		return n
	}
	w.same("none", 0, count(w.tenant, 10))
	w.createMany(w.contents(3)...)
	gone := w.add(func(s *core.Schedule) { s.Paused = true })
	w.same("all", 4, count(w.tenant, 10))
	w.same("as many as asked for", 4, count(w.tenant, 4))
	w.same("more than asked for", 3, count(w.tenant, 3))
	w.same("of another tenant", 0, count(uuid.New(), 10))
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(gone)))
	w.same("after a deletion", 3, count(w.tenant, 1_000_000))
}

// contents returns new schedules with a timer each.
func (w *world) contents(n int) []core.NewSchedule {
	w.Helper()
	out := make([]core.NewSchedule, n)
	for i := range out {
		out[i] = core.NewSchedule{Schedule: w.content(), NextAt: w.now().Add(time.Hour), Done: w.now().Add(-time.Millisecond)}
	}
	return out
}

// createMany returns the ids that were made, in the order of the ids.
func (w *world) createMany(all ...core.NewSchedule) []uuid.UUID {
	w.Helper()
	made, err := w.Store.CreateMany(w.ctx, w.tenant, all)
	w.must(err)
	slices.SortFunc(made, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return made
}

func testCreateMany(w *world) {
	w.to(w.now().Truncate(time.Second).Add(1500 * time.Millisecond)) // between two slots
	all := w.contents(4)
	odd := &all[1].Schedule
	odd.Name, odd.TimeZone, odd.Overlap, odd.Window, odd.Timeout, odd.Paused = "Tägliche Abrechnung", "Europe/Berlin", core.OverlapAllow, time.Hour, 0, true
	odd.DSTGap, odd.DSTOverlap, odd.Exact, odd.CatchUpWithin = core.DSTGapSkip, core.DSTOverlapBoth, true, time.Minute
	odd.Job.Payload = []byte(`{"a": [1, {"b": null}]}`)
	all[1].NextAt = core.Forever
	all[2].Schedule.Spec, all[2].Schedule.Anchor, all[2].NextAt = "0 9 * * *", time.Time{}, w.now().Add(-time.Minute)
	var ids []uuid.UUID
	for _, n := range all {
		ids = append(ids, n.Schedule.ID)
	}
	w.same("made", ids, w.createMany(all...))
	for _, n := range all {
		// One by one they are stored in the same way.
		alone := n.Schedule
		alone.ID, alone.Name = uuid.New(), n.Schedule.Name+" alone"
		w.must(w.Store.Create(w.ctx, alone, n.NextAt, n.Done))
		want := w.get(alone.ID)
		want.Schedule.ID, want.Schedule.Name = n.Schedule.ID, n.Schedule.Name
		want.Timer.ScheduleID, want.Timer.Shard = n.Schedule.ID, core.ShardOf(n.Schedule.ID)
		w.same(n.Schedule.Name, want, w.get(n.Schedule.ID))
	}
	w.same("of none", 0, len(w.createMany()))
	due := w.next(all[0].Schedule.ID)
	w.same("the first run's interval begins where the schedule did", all[0].Done, w.run(due.Key).CoversFrom)
}

func testCreateManyTaken(w *world) {
	old := w.add(func(s *core.Schedule) { s.Name = "taken" })
	before := w.get(old)
	all := w.contents(4)
	all[0].Schedule.Name = "taken"
	all[1].Schedule.ID = old
	w.same("made", []uuid.UUID{all[2].Schedule.ID, all[3].Schedule.ID}, w.createMany(all...))
	w.same("the schedule that was there", before, w.get(old))
	w.same("made when sent again", 0, len(w.createMany(all...)))

	twins := w.contents(2)
	twins[1].Schedule.Name = twins[0].Schedule.Name
	w.same("made of two with one name", 1, len(w.createMany(twins...)))

	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(old)))
	again := w.contents(2)
	again[0].Schedule.Name, again[1].Schedule.ID = "taken", old
	w.same("made when the name is free, but not of the deleted id", []uuid.UUID{again[0].Schedule.ID}, w.createMany(again...))

	other := w.contents(1)
	other[0].Schedule.Name = "taken"
	made, err := w.Store.CreateMany(w.ctx, uuid.New(), other)
	w.must(err)
	w.same("made for another tenant", []uuid.UUID{other[0].Schedule.ID}, made)
	_, err = w.Store.Get(w.ctx, w.tenant, other[0].Schedule.ID)
	w.fails("another tenant's schedule", core.ErrNotFound, err)
}

func testCreateManyBad(w *world) {
	for name, change := range map[string]func(*core.Schedule){
		"a name with NUL":    func(s *core.Schedule) { s.Name = "a\x00b" },
		"a payload not JSON": func(s *core.Schedule) { s.Job.Payload = []byte("{") },
		"no attempts":        func(s *core.Schedule) { s.MaxAttempts = 0 },
		"an unknown overlap": func(s *core.Schedule) { s.Overlap = "whim" },
	} {
		all := w.contents(3)
		change(&all[1].Schedule)
		_, err := w.Store.CreateMany(w.ctx, w.tenant, all)
		w.fails(name, core.ErrBadRow, err)
	}
	page, err := w.Store.List(w.ctx, w.tenant, core.ScheduleQuery{Limit: 100})
	w.must(err)
	w.same("schedules", 0, len(page.Items))
}

func testNamed(w *world) {
	a := w.add(func(s *core.Schedule) { s.Name = "a/b ünïcode %" })
	b := w.add(func(s *core.Schedule) { s.Name = "b" })
	gone := w.add(func(s *core.Schedule) { s.Name = "gone" })
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(gone)))
	foreign := w.contents(1)
	foreign[0].Schedule.Name, foreign[0].Schedule.TenantID = "foreign", uuid.New()
	_, err := w.Store.CreateMany(w.ctx, foreign[0].Schedule.TenantID, foreign)
	w.must(err)
	got, err := w.Store.Named(w.ctx, w.tenant, []string{"b", "gone", "a/b ünïcode %", "foreign", "B", ""})
	w.must(err)
	slices.SortFunc(got, func(a, b core.Scheduled) int { return bytes.Compare(a.Schedule.ID[:], b.Schedule.ID[:]) })
	w.same("found", []core.Scheduled{w.get(a), w.get(b)}, got)
	got, err = w.Store.Named(w.ctx, w.tenant, nil)
	w.must(err)
	w.same("found without names", 0, len(got))
}
