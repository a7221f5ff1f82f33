package storetest

import (
	"time"

	"github.com/fencepost/fencepost/core"
)

func retryTests() []test {
	return []test{
		{"start tells how its schedule retries", testStartTellsRetry},
		{"a run that took too long in all is dead", testTotalTimeout},
		{"time for all attempts ends a run that waits to be tried again", testTotalTimeoutOfRetries},
		{"time for all attempts ends a run whose holder is gone", testTotalTimeoutOfLost},
		{"a manual run has the time for all attempts, too", testTotalTimeoutOfManual},
		{"attempts that were handed back do not count, up to a bound", testHandBack},
	}
}

func withTotal(d time.Duration) func(*core.Schedule) {
	return func(s *core.Schedule) { s.Rules.TotalTimeout = d }
}

func testStartTellsRetry(w *world) {
	want := core.Retry{InitialDelay: time.Second, MaxDelay: time.Minute, Multiplier: 1.5, Jitter: core.JitterFull}
	s := w.begin(w.add(func(s *core.Schedule) { s.Rules.Retry, s.Rules.TotalTimeout = want, time.Hour }))
	left := time.Hour
	w.same("retry", want, s.Retry)
	w.same("left", &left, s.Left)
	plain := w.begin(w.add(nil))
	w.same("no retry", core.Retry{}, plain.Retry)
	w.same("no end", (*time.Duration)(nil), plain.Left)
}

func testTotalTimeout(w *world) {
	id := w.add(withTotal(10 * time.Minute))
	c := w.next(id)
	w.Advance(10 * time.Minute)
	got := w.start(message(c))
	if len(got) != 1 || got[0].State != core.RunDead {
		w.Fatalf("start answered %+v, want one dead", got)
	}
	r := w.run(c.Key)
	w.same("dead", []any{core.RunDead, core.ReasonTotal, 0, w.now(), w.now()}, []any{r.State, r.Reason, r.Attempt, r.WakeAt, r.FinishedAt})
	// The sweep finds one that nobody starts.
	waiting := w.next(id)
	w.Advance(9 * time.Minute)
	w.same("in time", core.RunQueued, w.sweep(sweepOptions())[1].State) // the dead one was told of first
	w.Advance(20 * time.Minute)
	w.same("swept", core.RunDead, w.sweep(sweepOptions())[0].State)
	w.same("reason", core.ReasonTotal, w.run(waiting.Key).Reason)
	w.same("stale", []core.Started{}, w.start(message(waiting)))
}

func testTotalTimeoutOfRetries(w *world) {
	id := w.add(withTotal(time.Minute))
	s := w.begin(id)
	w.Advance(40 * time.Second)
	w.end(s, core.RunRetrying) // ten seconds later
	w.same("goes on", core.RunRetrying, w.run(s.Key).State)
	w.Advance(10 * time.Second)
	w.sweep(sweepOptions())
	again := w.start(core.Delivery{Message: core.Message{Key: s.Key, Fence: w.run(s.Key).Fence}, Token: message(core.Claimed{}).Token})[0]
	left := 10 * time.Second
	w.same("left", &left, again.Left)
	w.end(again, core.RunRetrying)
	r := w.run(s.Key)
	w.same("no third attempt", []any{core.RunDead, core.ReasonTotal, 2, w.now()}, []any{r.State, r.Reason, r.Attempt, r.WakeAt})
	w.same("failed", 2, len(w.failed(s.Key)))
}

func testTotalTimeoutOfLost(w *world) {
	s := w.begin(w.add(withTotal(30 * time.Second)))
	w.Advance(lease)
	w.same("swept", core.RunDead, w.sweep(sweepOptions())[0].State)
	r := w.run(s.Key)
	w.same("dead", []any{core.ReasonTotal, s.Fence + 1, 1}, []any{r.Reason, r.Fence, len(w.failed(s.Key))})
	w.same("refused", []core.Finished{}, w.finish(core.Outcome{Held: held(s), State: core.RunSucceeded}))
}

func testTotalTimeoutOfManual(w *world) {
	id := w.add(withTotal(time.Minute))
	cur := w.get(id)
	r, err := w.Store.Trigger(w.ctx, w.tenant, core.Manual{
		ScheduleID: id, Fence: cur.Timer.Fence, Slot: w.now().Truncate(time.Millisecond).Add(time.Microsecond), Within: time.Minute,
	})
	w.must(err)
	w.Advance(time.Minute)
	w.same("swept", core.RunDead, w.sweep(sweepOptions())[0].State)
	w.same("reason", core.ReasonTotal, w.run(r.Key).Reason)
}

func testHandBack(w *world) {
	s := w.begin(w.add(func(s *core.Schedule) { s.MaxAttempts = 2 }))
	for n := 1; ; n++ {
		o := core.Outcome{Held: held(s), State: core.RunRetrying, Reason: core.ReasonExhausted, Error: "handed back", HandedBack: true}
		w.same("accepted", 1, len(w.finish(o)))
		r := w.run(s.Key)
		w.same("attempt", n, r.Attempt)
		if r.State == core.RunDead {
			w.same("attempts until it was dead", 2+core.MaxHandBacks, n)
			return
		}
		w.same("waits for nothing", w.now(), r.WakeAt)
		w.sweep(sweepOptions())
		s = w.start(core.Delivery{Message: core.Message{Key: s.Key, Fence: w.run(s.Key).Fence}, Token: message(core.Claimed{}).Token})[0]
	}
}
