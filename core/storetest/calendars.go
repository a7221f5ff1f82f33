package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

func calendarTests() []test {
	return []test{
		{"calendars are made, replaced and deleted by their versions", testCalendars},
		{"schedules come with the calendars that they name", testSchedulesWithCalendars},
		{"a change of a calendar makes plans void", testRaiseFences},
		{"a slot that a calendar closes is recorded", testClosedSlot},
		{"an edit settles what it owes by the calendars of before", testEditOfCalendars},
	}
}

// putCalendar makes a calendar of the tenant.
func (w *world) putCalendar(name string, c core.CalendarContent) core.Calendar {
	w.Helper()
	made, err := w.Store.PutCalendar(w.ctx, core.Calendar{TenantID: w.tenant, Name: name, CalendarContent: c}, 0)
	w.must(err)
	return made
}

// closedAround returns a calendar that is closed for a while around t.
func closedAround(t time.Time) core.CalendarContent {
	form := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }
	return core.CalendarContent{Ranges: []core.ClosedRange{{From: form(t.Add(-time.Minute)), To: form(t.Add(time.Minute))}}}
}

func testCalendars(w *world) {
	full := core.CalendarContent{
		TimeZone: "Europe/Berlin", Note: "Zoë", Dates: []string{"2026-12-25"}, Ranges: []core.ClosedRange{{From: "2026-12-24", To: "2026-12-26T06:00"}},
		Weekly: []core.ClosedWeekly{{Days: []string{"sat", "sun"}, From: "18:00", To: "24:00"}},
	}
	made := w.putCalendar("b", full)
	w.same("made", core.Calendar{TenantID: w.tenant, Name: "b", CalendarContent: full, Version: 1, CreatedAt: w.now(), UpdatedAt: w.now()}, made)
	_, err := w.Store.PutCalendar(w.ctx, core.Calendar{TenantID: w.tenant, Name: "b"}, 0)
	w.fails("one that is there already", core.ErrChanged, err)
	_, err = w.Store.PutCalendar(w.ctx, core.Calendar{TenantID: w.tenant, Name: "b"}, 2)
	w.fails("another version", core.ErrChanged, err)
	_, err = w.Store.PutCalendar(w.ctx, core.Calendar{TenantID: w.tenant, Name: "c"}, 1)
	w.fails("a version of none", core.ErrChanged, err)
	w.Advance(time.Second)
	replaced, err := w.Store.PutCalendar(w.ctx, core.Calendar{TenantID: w.tenant, Name: "b"}, 1)
	w.must(err)
	w.same("replaced", core.Calendar{TenantID: w.tenant, Name: "b", Version: 2, CreatedAt: made.CreatedAt, UpdatedAt: w.now()}, replaced)
	a := w.putCalendar("a", core.CalendarContent{})
	for _, c := range []struct {
		what  string
		names []string
		want  []core.Calendar
	}{
		{"all", nil, []core.Calendar{a, replaced}}, {"by name", []string{"b", "x"}, []core.Calendar{replaced}}, {"none", []string{}, nil},
	} {
		got, err := w.Store.Calendars(w.ctx, w.tenant, c.names)
		w.must(err)
		w.same(c.what, c.want, got)
	}
	others, err := w.Store.Calendars(w.ctx, uuid.New(), []string{"a"})
	w.must(err)
	w.same("another tenant's", []core.Calendar{}, others)
	w.fails("delete of another tenant", core.ErrChanged, w.Store.DeleteCalendar(w.ctx, uuid.New(), "a", 1))
	w.fails("delete of another version", core.ErrChanged, w.Store.DeleteCalendar(w.ctx, w.tenant, "a", 2))
	w.must(w.Store.DeleteCalendar(w.ctx, w.tenant, "a", 1))
	w.fails("delete again", core.ErrChanged, w.Store.DeleteCalendar(w.ctx, w.tenant, "a", 1))
}

// names returns the names of calendars.
func names(all []core.Closing) []string {
	var out []string
	for _, c := range all {
		out = append(out, c.Name())
	}
	return out
}

func testSchedulesWithCalendars(w *world) {
	w.putCalendar("a", core.CalendarContent{Dates: []string{"2026-12-25"}})
	w.putCalendar("b", core.CalendarContent{})
	id := w.add(func(s *core.Schedule) { s.Rules.Calendars = []string{"a", "b", "missing"} })
	plain := w.add(nil)
	cur := w.get(id)
	w.same("read", []string{"a", "b"}, names(cur.Calendars))
	w.same("missing", "missing", cur.MissingCalendar())
	w.same("without", []string(nil), names(w.get(plain).Calendars))
	if closed, _ := cur.Calendars[0].Closed(time.Date(2026, 12, 25, 9, 0, 0, 0, time.UTC)); !closed {
		w.Error("the calendar that came is not closed on its date")
	}
	timers, _, err := w.Store.ReadTimers(w.ctx, []uuid.UUID{id})
	w.must(err)
	w.same("timers", []string{"a", "b"}, names(timers[0].Calendars))
	loaded, _, err := w.Store.Preload(w.ctx, allShards(), 2*time.Hour)
	w.must(err)
	for _, s := range loaded {
		if s.Schedule.ID == id {
			w.same("preload", []string{"a", "b"}, names(s.Calendars))
		}
	}
	w.same("preloaded", 2, len(loaded))
	named, err := w.Store.Named(w.ctx, w.tenant, []string{cur.Schedule.Name})
	w.must(err)
	w.same("by name", []string{"a", "b"}, names(named[0].Calendars))
	for _, q := range []core.ScheduleQuery{{Limit: 10}, {Limit: 10, Queue: queue}} {
		page, err := w.Store.List(w.ctx, w.tenant, q)
		w.must(err)
		w.same("list", []string{"a", "b"}, names(page.Items[0].Calendars))
	}
	n, err := w.Store.CalendarUsers(w.ctx, w.tenant, "a", 10)
	w.must(err)
	w.same("users", 1, n)
	w.fails("delete of one in use", core.ErrChanged, w.Store.DeleteCalendar(w.ctx, w.tenant, "a", 1))
	w.must(w.Store.Delete(w.ctx, w.tenant, w.planDelete(id)))
	w.must(w.Store.DeleteCalendar(w.ctx, w.tenant, "a", 1))
}

func (w *world) planDelete(id uuid.UUID) core.Edit {
	w.Helper()
	cur := w.get(id)
	return plan.Delete(&cur, w.slots(&cur.Schedule))
}

func testRaiseFences(w *world) {
	w.putCalendar("a", core.CalendarContent{})
	use := func(s *core.Schedule) { s.Rules.Calendars = []string{"a"} }
	due, later, other := w.add(use), w.add(func(s *core.Schedule) {
		use(s)
		s.Spec, s.Anchor = "every 24h", s.Anchor.Add(12*time.Hour)
	}), w.add(func(s *core.Schedule) { s.Rules.Calendars = []string{"b"} })
	m := w.due(due)
	last, n := uuid.Nil, 0
	for {
		next, err := w.Store.RaiseFences(w.ctx, w.tenant, "a", last)
		w.must(err)
		if next == uuid.Nil {
			break
		}
		if n++; n > 2 || next == last {
			w.Fatal("the walk over the schedules does not end")
		}
		last = next
	}
	w.same("last", later, last)
	w.same("void", []core.Claimed(nil), w.claim(m))
	w.same("fences", []int64{2, 1, 1}, []int64{w.get(due).Timer.Fence, w.get(later).Timer.Fence, w.get(other).Timer.Fence})
	after := w.get(due).Timer
	w.same("done and time", []time.Time{m.FireAt, w.get(due).Schedule.Anchor}, []time.Time{after.FireAt, after.FireAt})
	w.same("planned anew", 1, len(w.claim(w.due(due))))
	_, err := w.Store.RaiseFences(w.ctx, uuid.New(), "a", uuid.Nil)
	w.must(err)
	w.same("another tenant's", int64(3), w.get(due).Timer.Fence)
}

func testClosedSlot(w *world) {
	slot := w.now().Truncate(time.Second).Add(time.Hour)
	w.putCalendar("a", closedAround(slot))
	id := w.add(func(s *core.Schedule) { s.Rules.Calendars = []string{"a"} })
	w.to(slot)
	cur := w.get(id)
	slots, err := spec.Of(&cur)
	w.must(err)
	w.same("no run", 1, len(w.claim(plan.Move(&cur.Schedule, &cur.Timer, slots, cur.Now))))
	w.same("recorded", []string{"skipped blackout"}, w.states(cur))
	w.same("the next one runs", core.RunQueued, w.next(id).State)
}

func testEditOfCalendars(w *world) {
	slot := w.now().Truncate(time.Second).Add(time.Hour)
	w.putCalendar("a", closedAround(slot))
	id := w.add(func(s *core.Schedule) { s.Rules.Calendars = []string{"a"} })
	w.to(slot.Add(10 * time.Second))
	cur := w.get(id)
	slots, err := spec.Of(&cur)
	w.must(err)
	next := cur.Schedule
	next.Rules.Calendars = nil
	e := plan.Edit(&cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: slots.Under(nil)})
	w.must(w.Store.Apply(w.ctx, w.tenant, e))
	w.same("owed", []string{"skipped blackout"}, w.states(cur))
	w.same("no calendars", []string(nil), names(w.get(id).Calendars))
}
