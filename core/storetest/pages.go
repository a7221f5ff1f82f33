package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func pageTests() []test {
	return []test{
		{"C11: schedules that stay are on one page each, whatever comes and goes", testSchedulesInMotion},
		{"C11: runs that stay are on one page each, whatever comes and goes", testRunsInMotion},
		{"bug-h53: runs of one millisecond are on one page each", testRunsOfOneMillisecond},
		{"one look at schedules is bounded, and goes on where it ended", testBoundedLook},
	}
}

// testSchedulesInMotion claims, creates and deletes between the pages.
func testSchedulesInMotion(w *world) {
	tag := func(s *core.Schedule) { s.ID, s.Labels = uuid.New(), map[string]string{"team": "x"} }
	busy := w.add(tag)
	want := []string{busy.String()}
	for range 8 {
		want = append(want, w.add(tag).String())
	}
	slices.Sort(want)
	for _, q := range []core.ScheduleQuery{
		{}, {Queue: queue}, {States: []core.ScheduleState{core.ScheduleActive}}, {Labels: selector(w, "team=x,!gone")},
	} {
		for _, limit := range []int{1, 2, 5} {
			var others []uuid.UUID
			for range 10 {
				others = append(others, w.add(tag))
			}
			var got []string
			q.Limit, q.After = limit, uuid.UUID{}
			for more := true; more; {
				page, err := w.Store.List(w.ctx, w.tenant, q)
				w.must(err)
				for _, found := range page.Items {
					got = append(got, found.Schedule.ID.String())
				}
				more, q.After = page.More, page.Last
				if len(others) > 0 { // at random places, before the position and behind it
					w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(others[0])))
					others = others[1:]
					w.add(tag)
					w.end(w.begin(busy), core.RunSucceeded)
				}
			}
			w.onceEach(fmt.Sprintf("schedules by %d of %+v", q.Limit, q), want, got)
			for _, other := range w.list(core.ScheduleQuery{Limit: 1000}) {
				if id := other.Schedule.ID; !slices.Contains(want, id.String()) {
					w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(id)))
				}
			}
		}
	}
}

// onceEach wants got to be sorted without doubles and to have all of want.
func (w *world) onceEach(what string, want, got []string) {
	w.Helper()
	once := slices.Compact(slices.Sorted(slices.Values(got)))
	w.same(what+" in order, once", once, got)
	w.same(what, want, slices.DeleteFunc(once, func(id string) bool { return !slices.Contains(want, id) }))
}

// testRunsInMotion claims, starts and ends runs between the pages.
func testRunsInMotion(w *world) {
	id := w.add(func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	other := w.add(func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	var running []core.Started
	for i := range 16 {
		running = append(running, w.begin(id))
		if i%2 == 0 {
			w.end(running[0], core.RunDead)
			running = running[1:]
		}
	}
	var all, dead []string
	for _, r := range w.runs(id) {
		all = append(all, text(r.Key))
		if r.State == core.RunDead {
			dead = append(dead, text(r.Key))
		}
	}
	for _, c := range []struct {
		want   []string
		states []core.RunState
	}{{all, nil}, {dead, []core.RunState{core.RunDead, core.RunCanceled}}} {
		for _, limit := range []int{1, 2, 5} {
			var got []string
			q := core.RunQuery{Limit: limit, States: c.states}
			for more := true; more; {
				page, err := w.Store.Runs(w.ctx, w.tenant, id, q)
				w.must(err)
				for _, r := range page.Items {
					got = append(got, text(r.Key))
				}
				more, q.Before = page.More, page.Last
				w.begin(id)
				w.trigger(other)
				if len(running) > 0 {
					w.end(running[0], core.RunDead)
					running = running[1:]
				}
			}
			slices.Reverse(got)
			w.onceEach(fmt.Sprintf("runs by %d in %v", limit, c.states), c.want, got)
		}
	}
}

// text sorts as the slots do.
func text(k core.RunKey) string { return k.Slot.Format("2006-01-02T15:04:05.000000") }

// testRunsOfOneMillisecond: what a page goes on behind is the whole of what the
// list is sorted by.
func testRunsOfOneMillisecond(w *world) {
	id := w.add(func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	at := w.manual()
	var want []string
	for _, micros := range []int{3, 1, 4, 0, 2} { // made in another order than that of their slots
		m := core.Manual{ScheduleID: id, Fence: w.get(id).Timer.Fence, Slot: at.Add(time.Duration(micros) * time.Microsecond)}
		r, err := w.Store.Trigger(w.ctx, w.tenant, m)
		w.must(err)
		want = append(want, text(r.Key))
	}
	slices.Sort(want)
	for _, states := range [][]core.RunState{nil, {core.RunQueued}} {
		var got []string
		q := core.RunQuery{Limit: 2, States: states}
		for more := true; more && len(got) < 10; {
			page, err := w.Store.Runs(w.ctx, w.tenant, id, q)
			w.must(err)
			for _, r := range page.Items {
				got = append(got, text(r.Key))
			}
			more, q.Before = page.More, page.Last
		}
		slices.Reverse(got)
		w.same("runs", want, got)
	}
}

// testBoundedLook fills more than one look with what no filter wants.
func testBoundedLook(w *world) {
	var rare []uuid.UUID
	model := w.contents(1)[0]
	for range core.ScanLimit/1000 + 1 {
		many := make([]core.NewSchedule, 1000)
		for i := range many {
			many[i] = model
			id, err := uuid.NewV7()
			w.must(err)
			many[i].Schedule.ID, many[i].Schedule.Name = id, id.String()
		}
		many[999].Schedule.Labels = map[string]string{"rare": "yes"}
		rare = append(rare, many[999].Schedule.ID)
		w.createMany(many...)
	}
	q := core.ScheduleQuery{Limit: 3, Labels: selector(w, "!rare,none")}
	page, err := w.Store.List(w.ctx, w.tenant, q)
	w.must(err)
	w.same("the first look at nothing", core.SchedulePage{More: true, Last: rare[core.ScanLimit/1000-1]}, page)
	q.After = page.Last
	page, err = w.Store.List(w.ctx, w.tenant, q)
	w.must(err)
	w.same("the last look at nothing", false, page.More)

	q = core.ScheduleQuery{Limit: 20, Labels: selector(w, "rare")}
	page, err = w.Store.List(w.ctx, w.tenant, q)
	w.must(err)
	w.same("a page that the look ends", core.ScanLimit/1000, len(page.Items))
	w.same("where it ended", rare[core.ScanLimit/1000-1], page.Last)
	var got []uuid.UUID
	for _, found := range w.list(q) {
		got = append(got, found.Schedule.ID)
	}
	w.same("what is rare", rare, got)
	q.Limit = 3
	got = nil
	for _, found := range w.list(q) {
		got = append(got, found.Schedule.ID)
	}
	w.same("what is rare, on full pages", rare, got)
}
