package storetest

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// list walks through all pages of a query.
func (w *world) list(q core.ScheduleQuery) []core.Scheduled {
	w.Helper()
	var got []core.Scheduled
	for range 100 {
		page, err := w.Store.List(w.ctx, w.tenant, q)
		w.must(err)
		if len(page.Items) > q.Limit {
			w.Fatalf("%d schedules on a page of %d", len(page.Items), q.Limit)
		}
		got = append(got, page.Items...)
		if !page.More {
			return got
		}
		q.After = page.Last
	}
	w.Fatal("the list has no end")
	return nil
}

func testList(w *world) {
	var want []core.Scheduled
	for range 7 {
		id := uuid.New()
		w.add(func(s *core.Schedule) { s.ID = id })
		want = append(want, w.get(id))
	}
	gone := w.add(nil)
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(gone)))
	slices.SortFunc(want, func(a, b core.Scheduled) int { return bytes.Compare(a.Schedule.ID[:], b.Schedule.ID[:]) })
	for _, limit := range []int{1, 3, 6, 7, 8} {
		w.same("schedules", want, w.list(core.ScheduleQuery{Limit: limit}))
	}
}

// testFilters: each filter alone and all together choose what they say.
func testFilters(w *world) {
	names := map[uuid.UUID]string{}
	add := func(name, queue string, labels map[string]string) uuid.UUID {
		id := w.add(func(s *core.Schedule) { s.Name, s.Job.Queue, s.Labels = name, queue, labels })
		names[id] = name
		return id
	}
	add("a1", "mail", nil)
	add("a2", "mail", map[string]string{"team": "x", "env": "test"})
	add("a_%", "mail", map[string]string{"team": "x", "env": ""})
	paused := add("b1", "test", map[string]string{"team": "y", "owner": "Zoë \"q\" \\"})
	over := add("b2", "test", map[string]string{"team": "y"})
	w.must(w.Store.Apply(w.ctx, w.tenant, w.planEdit(paused, func(s *core.Schedule) { s.Paused = true })))
	done := w.planEdit(over, func(s *core.Schedule) {})
	done.MoveTimer, done.NextAt, done.Done = true, core.Forever, w.get(over).Timer.Done
	w.must(w.Store.Apply(w.ctx, w.tenant, done))
	for _, c := range []struct {
		what string
		q    core.ScheduleQuery
		want []string
	}{
		{"none", core.ScheduleQuery{}, []string{"a1", "a2", "a_%", "b1", "b2"}},
		{"active", core.ScheduleQuery{States: []core.ScheduleState{core.ScheduleActive}}, []string{"a1", "a2", "a_%"}},
		{"paused", core.ScheduleQuery{States: []core.ScheduleState{core.SchedulePaused}}, []string{"b1"}},
		{"paused or completed", core.ScheduleQuery{States: []core.ScheduleState{core.SchedulePaused, core.ScheduleCompleted}}, []string{"b1", "b2"}},
		{"queue", core.ScheduleQuery{Queue: "mail"}, []string{"a1", "a2", "a_%"}},
		{"prefix", core.ScheduleQuery{NamePrefix: "a"}, []string{"a1", "a2", "a_%"}},
		{"prefix that looks like a pattern", core.ScheduleQuery{NamePrefix: "a_"}, []string{"a_%"}},
		{"equal", core.ScheduleQuery{Labels: selector(w, "team=x")}, []string{"a2", "a_%"}},
		{"equal to nothing", core.ScheduleQuery{Labels: selector(w, "env=")}, []string{"a_%"}},
		{"quotes", core.ScheduleQuery{Labels: selector(w, "owner=Zoë \"q\" \\")}, []string{"b1"}},
		{"differ", core.ScheduleQuery{Labels: selector(w, "team!=x")}, []string{"a1", "b1", "b2"}},
		{"has", core.ScheduleQuery{Labels: selector(w, "env")}, []string{"a2", "a_%"}},
		{"has not", core.ScheduleQuery{Labels: selector(w, "!team")}, []string{"a1"}},
		{"contradiction", core.ScheduleQuery{Labels: selector(w, "team=x,team=y")}, nil},
		{"several", core.ScheduleQuery{Labels: selector(w, "team=y, !owner"), Queue: "test", NamePrefix: "b"}, []string{"b2"}},
	} {
		for _, limit := range []int{1, 2, 5} {
			c.q.Limit = limit
			var got []string
			for _, s := range w.list(c.q) {
				got = append(got, names[s.Schedule.ID])
			}
			slices.Sort(got)
			w.same("schedules by "+c.what, c.want, got)
		}
	}
}

func selector(w *world, text string) core.Selector {
	s, err := core.ParseSelector(text)
	w.must(err)
	return s
}

func testLabels(w *world) {
	labels := map[string]string{"team": "x", "owner": "Zoë"}
	id := w.add(func(s *core.Schedule) { s.Labels = labels })
	before := w.get(id)
	w.same("labels", labels, before.Schedule.Labels)
	w.must(w.Store.Apply(w.ctx, w.tenant, w.planEdit(id, func(s *core.Schedule) { s.Labels = map[string]string{"env": "test"} })))
	after := w.get(id)
	w.same("labels replaced", map[string]string{"env": "test"}, after.Schedule.Labels)
	w.same("version", before.Schedule.Version+1, after.Schedule.Version)
	w.same("fire at", before.Timer.FireAt, after.Timer.FireAt)
	w.must(w.Store.Apply(w.ctx, w.tenant, w.planEdit(id, func(s *core.Schedule) { s.Labels = nil })))
	w.same("no labels", 0, len(w.get(id).Schedule.Labels))
}

func testLastState(w *world) {
	id := w.add(nil)
	w.same("state without a run", core.RunState(""), w.get(id).LastState)
	s := w.begin(id)
	state := func() []core.RunState {
		named, err := w.Store.Named(w.ctx, w.tenant, []string{w.get(id).Schedule.Name})
		w.must(err)
		filtered := w.list(core.ScheduleQuery{Limit: 10, NamePrefix: w.get(id).Schedule.Name})
		return []core.RunState{w.get(id).LastState, named[0].LastState, w.list(core.ScheduleQuery{Limit: 10})[0].LastState, filtered[0].LastState}
	}
	w.same("state of the run", []core.RunState{"running", "running", "running", "running"}, state())
	w.end(s, core.RunDead)
	w.same("state of the ended run", []core.RunState{"dead", "dead", "dead", "dead"}, state())
}

func testRuns(w *world) {
	id := w.add(nil)
	var want []core.Run
	for i := range 5 {
		s := w.begin(id)
		w.end(s, []core.RunState{core.RunDead, core.RunSucceeded}[i%2])
		want = append([]core.Run{w.run(s.Key)}, want...)
	}
	walk := func(q core.RunQuery) (got []core.Run) {
		for range 100 {
			page, err := w.Store.Runs(w.ctx, w.tenant, id, q)
			w.must(err)
			got = append(got, page.Items...)
			if len(page.Items) > q.Limit || !page.More {
				return got
			}
			q.Before = page.Last
		}
		w.Fatal("the list has no end")
		return nil
	}
	for _, limit := range []int{1, 2, 4, 5, 6} {
		w.same("runs", want, walk(core.RunQuery{Limit: limit}))
		w.same("dead runs", []core.Run{want[0], want[2], want[4]}, walk(core.RunQuery{Limit: limit, States: []core.RunState{core.RunDead}}))
		w.same("runs of an hour", want[1:3], walk(core.RunQuery{Limit: limit, From: want[2].Key.Slot, Before: want[0].Key.Slot}))
		w.same("dead runs of an hour", want[2:3], walk(core.RunQuery{
			Limit: limit, From: want[2].Key.Slot, Before: want[0].Key.Slot, States: []core.RunState{core.RunDead, core.RunQueued},
		}))
		w.same("no run", 0, len(walk(core.RunQuery{Limit: limit, States: []core.RunState{core.RunSkipped}})))
	}
	_, _, err := w.Store.Run(w.ctx, w.tenant, core.RunKey{Region: w.Region, ScheduleID: id, Slot: want[0].Key.Slot.Add(time.Second)})
	w.fails("a slot without a run", core.ErrNotFound, err)
	_, _, err = w.Store.Run(w.ctx, w.tenant, core.RunKey{Region: "elsewhere", ScheduleID: id, Slot: want[0].Key.Slot})
	w.fails("a run of another region", core.ErrNotFound, err)
}
