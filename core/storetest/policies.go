package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
)

func policyTests() []test {
	return []test{
		{"a slot that waits for a run does so in its timer", testQueueOne},
		{"a nudge lets what waits for a run come at once", testNudge},
		{"start tells which runs slots may wait for", testAwaited},
		{"cancel_previous ends the run that the newest slot meets", testCancelPrevious},
		{"missed slots of run_all run one at a time, in order", testRunAll},
		{"missed slots of run_all run side by side where overlap is allow", testRunAllBeside},
		{"a limit of runs counts what runs and ends with it", testMaxRuns},
		{"a run that is too late ends at its start and in the sweep", testLateRuns},
		{"a slot can have a payload of its own", testSlotPayload},
		{"a pause with an end is over by itself", testPauseUntil},
		{"completed schedules are told when their time is over", testCompleted},
		{"rules are stored whole", testRules},
		{"the row of a slot is found between runs that somebody asked for", testSlotRow},
	}
}

// states returns the states of a schedule's runs with their reasons, oldest slot
// first.
func (w *world) states(s core.Scheduled) []string {
	w.Helper()
	var out []string
	for _, r := range w.runs(s.Schedule.ID) {
		text := string(r.State)
		if r.Reason != "" {
			text += " " + string(r.Reason)
		}
		out = append(out, text)
	}
	return out
}

// step claims what is due of a schedule, as a claimer does.
func (w *world) step(s core.Scheduled) core.Scheduled {
	w.Helper()
	cur := w.get(s.Schedule.ID)
	m := plan.Move(&cur.Schedule, &cur.Timer, w.slots(&cur.Schedule), w.now())
	if m.CancelLive {
		_, err := w.Store.CancelPrevious(w.ctx, cur.Timer.Shard, []core.Move{m})
		w.must(err)
	}
	_, err := w.Store.Claim(w.ctx, cur.Timer.Shard, []core.Move{m}, lease)
	w.must(err)
	return w.get(s.Schedule.ID)
}

// minutely makes a schedule of each minute and waits for its first slot.
func (w *world) minutely(change func(*core.Schedule)) core.Scheduled {
	w.Helper()
	id := w.add(func(s *core.Schedule) {
		s.Spec, s.TimeZone, s.Anchor = "* * * * *", "", time.Time{}
		if change != nil {
			change(s)
		}
	})
	s := w.get(id)
	w.to(s.Timer.FireAt)
	return s
}

// oldest starts the oldest queued run and ends it.
func (w *world) oldest(s core.Scheduled, state core.RunState) {
	w.Helper()
	for _, r := range w.runs(s.Schedule.ID) {
		if r.State == core.RunQueued {
			w.end(w.start(message(core.Claimed{Key: r.Key, Fence: r.Fence}))[0], state)
			return
		}
	}
	w.Fatal("no run is queued")
}

func testQueueOne(w *world) {
	s := w.minutely(func(s *core.Schedule) { s.Overlap, s.Misfire = core.OverlapQueueOne, core.MisfireSkip })
	s = w.step(s)
	w.to(s.Timer.FireAt)
	done := s.Timer.Done
	s = w.step(s)
	w.same("parked", true, s.Timer.Parked)
	w.same("settled mark while it waits", done, s.Timer.Done)
	w.Advance(3 * time.Minute) // beyond every grace: what waits is no misfire
	s = w.step(s)
	w.same("states while it waits", []string{"queued"}, w.states(s))
	w.oldest(s, core.RunSucceeded)
	w.to(s.Timer.FireAt)
	s = w.step(s)
	w.same("parked after", false, s.Timer.Parked)
	w.same("states", []string{"succeeded", "queued", "skipped overlap"}, w.states(s))
	w.same("covered from", done, w.runs(s.Schedule.ID)[1].CoversFrom)
}

func testNudge(w *world) {
	queueing := func(s *core.Schedule) { s.Overlap = core.OverlapQueueOne }
	idle, s, other := w.get(w.add(nil)), w.get(w.add(queueing)), w.get(w.add(queueing))
	for range 2 {
		w.to(s.Timer.FireAt)
		s, other = w.step(s), w.step(other)
	}
	w.same("both wait", []bool{true, true}, []bool{s.Timer.Parked, other.Timer.Parked})
	gone := w.add(nil)
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(gone)))
	w.Advance(time.Second)
	early := w.move(s)
	w.must(w.Store.Nudge(w.ctx, []uuid.UUID{idle.Schedule.ID, s.Schedule.ID, gone, uuid.New(), s.Schedule.ID}))
	want := s.Timer
	want.FireAt, want.Fence = w.now(), want.Fence+1
	w.same("a timer that waits", want, w.get(s.Schedule.ID).Timer)
	w.same("a timer that does not wait", idle.Timer, w.get(idle.Schedule.ID).Timer)
	w.same("another's timer that waits", other.Timer, w.get(other.Schedule.ID).Timer)
	w.must(w.Store.Nudge(w.ctx, []uuid.UUID{s.Schedule.ID}))
	w.must(w.Store.Nudge(w.ctx, nil))
	w.same("a timer that is due already", want, w.get(s.Schedule.ID).Timer)

	w.oldest(s, core.RunSucceeded)
	w.Advance(2 * time.Second)
	w.same("rows of a claim of the old fence", 0, len(w.claim(early)))
	s = w.step(s)
	w.same("states", []string{"succeeded", "queued"}, w.states(s))
	w.same("waits", false, s.Timer.Parked)
}

func testAwaited(w *world) {
	for _, misfire := range []core.Misfire{core.MisfireRunOnce, core.MisfireSkip, core.MisfireRunAll} {
		want := map[core.Overlap]bool{
			core.OverlapSkip: misfire == core.MisfireRunAll, core.OverlapAllow: false, core.OverlapQueueOne: true, core.OverlapCancelPrevious: true,
		}
		for overlap, awaited := range want {
			s := w.begin(w.add(func(s *core.Schedule) { s.Misfire, s.Overlap = misfire, overlap }))
			w.same(string(misfire)+" and "+string(overlap), awaited, s.Awaited)
		}
	}
}

func testCancelPrevious(w *world) {
	s := w.minutely(func(s *core.Schedule) { s.Overlap = core.OverlapCancelPrevious })
	s = w.step(s)
	w.to(s.Timer.FireAt)
	s = w.step(s)
	w.same("a waiting run ends at once", []string{"canceled replaced", "queued"}, w.states(s))
	runs := w.runs(s.Schedule.ID)
	st := w.start(message(core.Claimed{Key: runs[1].Key, Fence: runs[1].Fence}))[0]
	w.to(s.Timer.FireAt)
	s = w.step(s)
	w.same("a running one is asked", []string{"canceled replaced", "running replaced"}, w.states(s))
	w.same("parked", true, s.Timer.Parked)
	beats, err := w.Store.Heartbeat(w.ctx, []core.Held{{Key: st.Key, Fence: st.Fence}}, lease)
	w.must(err)
	w.same("the holder is told", true, beats[0].CancelRequested)
	w.finish(core.Outcome{Held: core.Held{Key: st.Key, Fence: st.Fence}, State: core.RunCanceled})
	w.to(s.Timer.FireAt)
	s = w.step(s)
	w.same("then the newest runs", []string{"canceled replaced", "canceled replaced", "queued"}, w.states(s))
	early := w.move(s)
	early.CancelLive = true
	got, err := w.Store.CancelPrevious(w.ctx, s.Timer.Shard, []core.Move{early})
	w.must(err)
	w.same("canceled for a slot that has not come", 0, len(got))
	w.same("states after that", []string{"canceled replaced", "canceled replaced", "queued"}, w.states(s))
}

// move plans the claim of a schedule's next slot, ahead of its time.
func (w *world) move(s core.Scheduled) core.Move {
	w.Helper()
	return plan.Move(&s.Schedule, &s.Timer, w.slots(&s.Schedule), s.Timer.FireAt)
}

func testRunAll(w *world) {
	s := w.minutely(func(s *core.Schedule) { s.Misfire, s.Rules.MisfireCap = core.MisfireRunAll, 3 })
	w.Advance(5*time.Minute + 30*time.Second) // six slots are missed, the newest is on time
	want := []string{"skipped misfire", "queued"}
	s = w.step(w.step(s))
	w.same("the oldest of three", want, w.states(s))
	s = w.step(s)
	w.same("waits", true, s.Timer.Parked)
	for range 2 {
		w.oldest(s, core.RunSucceeded)
		w.to(s.Timer.FireAt)
		s = w.step(s)
	}
	w.same("all three", []string{"skipped misfire", "succeeded", "succeeded", "queued"}, w.states(s))
	w.same("slots of the row", int64(3), w.runs(s.Schedule.ID)[0].RangeCount)
}

func testRunAllBeside(w *world) {
	s := w.minutely(func(s *core.Schedule) { s.Misfire, s.Overlap = core.MisfireRunAll, core.OverlapAllow })
	w.Advance(3 * time.Minute)
	cur := w.get(s.Schedule.ID)
	m := plan.Move(&cur.Schedule, &cur.Timer, w.slots(&cur.Schedule), w.now())
	claimed, err := w.Store.Claim(w.ctx, cur.Timer.Shard, []core.Move{m}, lease)
	w.must(err)
	w.same("claimed", 4, len(claimed))
	found, err := w.Store.ReadClaimed(w.ctx, []core.Move{m})
	w.must(err)
	w.same("found after an unknown outcome", 4, len(found))
	w.same("states", []string{"queued", "queued", "queued", "queued"}, w.states(cur))
}

func testMaxRuns(w *world) {
	s := w.minutely(func(s *core.Schedule) { s.Rules.MaxRuns = 2 })
	w.same("runs left", int64(2), *s.Timer.RunsLeft)
	s = w.step(s)
	w.to(s.Timer.FireAt)
	s = w.step(s) // meets the first, which is alive
	w.same("runs left after a skipped slot", int64(1), *s.Timer.RunsLeft)
	w.same("state", core.ScheduleActive, s.State())
	w.oldest(s, core.RunSucceeded)
	w.to(s.Timer.FireAt)
	s = w.step(s)
	w.same("runs left at the end", int64(0), *s.Timer.RunsLeft)
	w.same("state at the end", core.ScheduleCompleted, s.State())
	w.Advance(time.Hour)
	more := w.planEdit(s.Schedule.ID, func(s *core.Schedule) { s.Rules.MaxRuns = 3 })
	w.must(w.Store.Apply(w.ctx, w.tenant, more))
	s = w.get(s.Schedule.ID)
	w.same("runs left after an edit", int64(1), *s.Timer.RunsLeft)
	w.same("state after an edit", core.ScheduleActive, s.State())
	w.same("states", []string{"succeeded", "skipped overlap", "queued"}, w.states(s))
}

func testLateRuns(w *world) {
	within := func(s *core.Schedule) { s.CatchUpWithin, s.Overlap = 10*time.Minute, core.OverlapAllow }
	s := w.minutely(within)
	s = w.step(s)
	w.to(s.Timer.FireAt)
	s = w.step(s)
	runs := w.runs(s.Schedule.ID)
	w.to(runs[0].Key.Slot.Add(10*time.Minute + time.Second))
	got := w.start(message(core.Claimed{Key: runs[0].Key, Fence: runs[0].Fence}))
	w.same("state at the start", core.RunCanceled, got[0].State)
	w.to(runs[1].Key.Slot.Add(10*time.Minute + time.Second))
	w.sweep(core.SweepOptions{Marks: allShards(), DispatchLease: lease, MaxDispatchLease: time.Hour, Queues: []string{queue}})
	w.same("states", []string{"canceled late", "canceled late"}, w.states(s))
	for _, r := range w.runs(s.Schedule.ID) {
		w.same("attempts", 0, r.Attempt)
		w.same("wakes", time.Time{}, r.WakeAt)
	}
}

func testSlotPayload(w *world) {
	id := w.add(func(s *core.Schedule) { s.Spec, s.TimeZone, s.Anchor = "* * * * *", "", time.Time{} })
	before := w.get(id)
	slot := w.slots(&before.Schedule).Next(w.now())
	w.must(w.Store.Apply(w.ctx, w.tenant, w.planEdit(id, func(s *core.Schedule) {
		s.Rules.Exceptions = []core.Exception{{Slot: slot, Payload: []byte(`{"n": 9}`)}}
	})))
	w.to(slot)
	s := w.step(w.get(id))
	r := w.runs(s.Schedule.ID)[0]
	w.same("payload at the start", `{"n": 9}`, string(w.start(message(core.Claimed{Key: r.Key, Fence: r.Fence}))[0].Payload))
}

func testPauseUntil(w *world) {
	s := w.minutely(nil)
	until := w.now().Add(5*time.Minute + 30*time.Second)
	cur := w.get(s.Schedule.ID)
	w.must(w.Store.Apply(w.ctx, w.tenant, plan.Pause(&cur, w.slots(&cur.Schedule), until, "moving")))
	s = w.get(s.Schedule.ID)
	w.same("state", core.SchedulePaused, s.State())
	w.same("listed as paused", 1, len(w.list(core.ScheduleQuery{Limit: 10, States: []core.ScheduleState{core.SchedulePaused}})))
	w.to(s.Timer.FireAt)
	s = w.step(s)
	w.same("state after", core.ScheduleActive, s.State())
	w.same("listed as active", 1, len(w.list(core.ScheduleQuery{Limit: 10, States: []core.ScheduleState{core.ScheduleActive}})))
	w.same("states", []string{"skipped paused", "queued"}, w.states(s))
	w.same("slots of the pause", int64(6), w.runs(s.Schedule.ID)[0].RangeCount)
}

func testCompleted(w *world) {
	look := func() int {
		got, err := w.Store.Completed(w.ctx)
		w.must(err)
		return len(got)
	}
	kept := w.minutely(func(s *core.Schedule) { s.Rules.MaxRuns, s.Rules.KeepCompleted = 1, time.Hour })
	gone := w.minutely(func(s *core.Schedule) { s.Rules.MaxRuns, s.Rules.DeleteAfterCompletion = 1, true })
	w.to(gone.Timer.FireAt)
	kept, gone = w.step(kept), w.step(gone)
	w.same("while their runs are alive", 0, look())
	w.oldest(kept, core.RunSucceeded)
	w.oldest(gone, core.RunSucceeded)
	w.same("the one that is to go at once", 1, look())
	w.Advance(time.Hour)
	w.same("both", 2, look())
	w.must(w.Store.Apply(w.ctx, w.tenant, w.planEdit(kept.Schedule.ID, func(s *core.Schedule) { s.Rules.MaxRuns = 5 })))
	w.same("one that goes on", 1, look())
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(gone.Schedule.ID)))
	w.same("none", 0, look())
}

func testRules(w *world) {
	at := w.now().Truncate(time.Second)
	want := core.Rules{
		MisfireCap: 7, StartsAt: at, EndsAt: at.Add(time.Hour), MaxRuns: 3, KeepCompleted: time.Minute, DeleteAfterCompletion: true,
		PausedUntil: at, PauseNote: "Zoë",
		Exceptions: []core.Exception{{Slot: at, Skip: true, Note: "x"}, {Slot: at.Add(time.Minute), MoveTo: at.Add(2 * time.Minute), Payload: []byte(`{"a": 1}`)}},
	}
	id := w.add(func(s *core.Schedule) { s.Rules = want })
	w.same("rules", want, w.get(id).Schedule.Rules)
	w.must(w.Store.Apply(w.ctx, w.tenant, w.planEdit(id, func(s *core.Schedule) { s.Rules = core.Rules{} })))
	w.same("no rules", core.Rules{}, w.get(id).Schedule.Rules)
}

func testSlotRow(w *world) {
	id := w.add(func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	find := func(from time.Time) (row core.Run) {
		w.Helper()
		got, err := w.Store.SlotRow(w.ctx, w.tenant, id, from)
		w.must(err)
		if got != nil {
			row = *got
		}
		return row
	}
	w.same("of none", core.Run{}, find(w.now()))
	began := w.now()
	for range 3 {
		_, err := w.ask(id, nil, "")
		w.must(err)
		w.Advance(time.Second)
	}
	w.Advance(4 * time.Hour)
	m := w.due(id)
	w.same("rows", 2, len(w.claim(m)))
	_, err := w.ask(id, nil, "")
	w.must(err)
	missed, run := w.run(core.RunKey{Region: w.Region, ScheduleID: id, Slot: m.Rows[0].Slot}), w.run(core.RunKey{Region: w.Region, ScheduleID: id, Slot: m.Rows[1].Slot})
	w.same("a range", missed, find(began))
	w.same("of a slot inside", missed, find(missed.RangeFrom))
	w.same("of its last slot", missed, find(missed.Key.Slot))
	w.same("after it", run, find(missed.Key.Slot.Add(time.Microsecond)))
	w.same("after all", core.Run{}, find(run.Key.Slot.Add(time.Microsecond)))
	got, err := w.Store.SlotRow(w.ctx, uuid.New(), id, began)
	w.must(err)
	w.same("of another tenant", (*core.Run)(nil), got)
}
