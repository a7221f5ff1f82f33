package database_test

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

func manualHoles() []hole {
	return []hole{
		{
			name: "S311_trigger_sent_again", scenario: triggerSentAgain,
			guards: []mutation{{file: "trigger", guard: "AND k.slot IS NOT NULL", instead: "AND false"}},
		},
		{
			name: "S311_trigger_sent_twice_at_once", scenario: triggerSentTwice,
			guards: []mutation{{file: "trigger", guard: "SET slot = $5::TIMESTAMPTZ\n", instead: "SET slot = NULL\n"}},
		},
		{
			name: "H23_redrive_during_claim", scenario: redriveDuringClaim, stall: sleeping("claim", "want", "w"),
			guards: []mutation{{file: "redrive", guard: "END, fence = t.fence + 1", instead: "END"}},
		},
		{
			name: "H23_redrive_of_an_open_interval", scenario: redriveOpenInterval,
			guards: []mutation{{file: "redrive", guard: "CASE WHEN l.last_run = $4::TIMESTAMPTZ THEN NULL ELSE t.open_from END", instead: "t.open_from"}},
		},
		{
			name: "C06_cancel_of_a_run_that_starts", scenario: cancelDuringStart,
			guards: []mutation{{file: "cancel_run", guard: "AND r.state IN ('queued', 'running', 'retrying')\n", instead: "\n"}},
		},
		{
			name: "C06_canceled_run_is_not_started", scenario: startOfACanceledRun,
			guards: []mutation{{file: "cancel_run", guard: "SET state = CASE WHEN r.state = 'running' THEN 'running' ELSE 'canceled' END,", instead: "SET state = r.state,"}},
		},
		{
			name: "C06_asked_to_cancel_is_not_retried", scenario: retryOfACanceledRun,
			guards: []mutation{{file: "cancel_run", guard: "cancel_requested = true,", instead: "cancel_requested = false,"}},
		},
		{
			name: "C06_cancel_while_it_is_started", scenario: cancelWhileStarted,
			stall: stalling("start", "LEFT JOIN schedules AS s ON s.region = $1 AND s.id = u.schedule_id\n"),
			// The state and the fence are enough each.
			guards: []mutation{{file: "start", guard: "(r.state = 'queued' AND r.fence = m.fence AND (", instead: "(r.state <> 'running' AND r.fence <= m.fence + 1 AND ("}},
		},
		{
			name: "C06_cancel_while_it_is_swept", scenario: cancelWhileSwept, stall: sleeping("sweep", "due", "d"),
			guards: []mutation{{file: "sweep", guard: "WHEN r.cancel_requested THEN 'canceled'", instead: "WHEN false THEN 'canceled'"}},
		},
		{
			name: "C06_cancel_while_it_fails", scenario: cancelWhileFailing,
			stall:  stalling("finish", "AS f(schedule_id, scheduled_for, fence, state, reason, delay_ms, result, error, credit)\n"),
			guards: []mutation{{file: "finish", guard: "WHEN r.cancel_requested THEN 'canceled'", instead: "WHEN false THEN 'canceled'"}},
		},
	}
}

// stalling makes what ends with from arrive late, as sleeping does.
func stalling(file, from string) *mutation {
	return &mutation{file: file, guard: from, instead: from + "CROSS JOIN (SELECT pg_sleep(0.4)) AS stall\n"}
}

func requestFor(text string) core.Request {
	return core.Request{Key: sha256.Sum256([]byte(text)), Body: sha256.Sum256([]byte("body"))}
}

// dead makes a manual run of a schedule and lets it die.
func (w *world) dead(id uuid.UUID) core.RunKey {
	w.Helper()
	r, err := w.service().Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
	w.must(err)
	w.finish(held(w.start(core.Delivery{Message: core.Message{Key: r.Key, Fence: r.Fence}, Token: uuid.New()}, time.Minute)[0]), core.RunDead)
	return r.Key
}

// redriveDuringClaim: claim takes its snapshot, in which the last run is dead, a
// redrive is admitted, the claim goes on with what it read.
func redriveDuringClaim(w *world) string {
	id := w.overdue(nil)
	key := w.dead(id)
	m := w.move(id, w.now())
	var wg sync.WaitGroup
	wg.Go(func() { w.claim(id, m) })
	w.waitAsleep()
	_, err := w.service().Redrive(w.ctx, w.tenant, key)
	w.must(err)
	wg.Wait()
	if n := w.live(id); n != 1 {
		return fmt.Sprintf("C10: %d runs are alive under overlap skip", n)
	}
	return ""
}

// redriveOpenInterval: the timer kept where the dead run's interval begins, since
// its history was to go; the run is redriven after all, and succeeds.
func redriveOpenInterval(w *world) string {
	id := w.overdue(nil)
	first := w.claimNow(id)
	w.finish(held(w.start(core.Delivery{Message: core.Message{Key: first.Key, Fence: first.Fence}, Token: uuid.New()}, time.Minute)[0]), core.RunDead)
	w.sql("UPDATE timers AS t SET open_from = r.covers_from FROM runs AS r WHERE r.schedule_id = t.schedule_id AND r.scheduled_for = t.last_run AND t.schedule_id = $1", id)
	r, err := w.service().Redrive(w.ctx, w.tenant, first.Key)
	w.must(err)
	w.finish(held(w.start(core.Delivery{Message: core.Message{Key: r.Key, Fence: r.Fence}, Token: uuid.New()}, time.Minute)[0]), core.RunSucceeded)
	next, err := w.service().Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
	w.must(err)
	if !next.CoversFrom.Equal(r.CoversTo) {
		return fmt.Sprintf("covered intervals: one ends at %s, the next begins at %s", r.CoversTo, next.CoversFrom)
	}
	return ""
}

// triggerSentAgain: a trigger commits, its answer is lost, and the write itself is
// sent again under the same key, with what is known of the timer by then.
func triggerSentAgain(w *world) string {
	id := w.schedule("@yearly", w.now(), func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	r := requestFor("again")
	_, err := w.db.Reserve(w.ctx, w.tenant, r)
	w.must(err)
	for i := range 2 {
		cur := w.get(id)
		slot := cur.Now.Truncate(time.Millisecond).Add(time.Duration(i+1) * time.Microsecond)
		_, err := w.db.Trigger(w.ctx, w.tenant, core.Manual{ScheduleID: id, Fence: cur.Timer.Fence, Slot: slot, Key: r.Key[:]})
		if i == 0 {
			w.must(err)
		}
	}
	if n := len(w.runs(id)); n != 1 {
		return fmt.Sprintf("C4: one request made %d runs", n)
	}
	return ""
}

// triggerSentTwice: an impatient client sends a request again while the first is
// under way.
func triggerSentTwice(w *world) string {
	id := w.schedule("@yearly", w.now(), func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	r := requestFor("twice")
	keys := make([]core.RunKey, 4)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			got, err := w.service().Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{Request: &r})
			if err != nil {
				w.Errorf("trigger: %v", err)
			}
			keys[i] = got.Key
		})
	}
	wg.Wait()
	if n := len(w.runs(id)); n != 1 {
		return fmt.Sprintf("C4: one request made %d runs", n)
	}
	for _, k := range keys {
		if k != keys[0] {
			return "the same request was answered with different runs"
		}
	}
	return ""
}

// cancelDuringStart: a run ends while somebody cancels it; what is final stays.
func cancelDuringStart(w *world) string {
	c := w.claimed(nil)
	st := w.start(delivery(c), time.Minute)[0]
	w.finish(held(st), core.RunSucceeded)
	_, err := w.db.CancelRun(w.ctx, w.tenant, c.Key)
	if got := w.run(c.Key); got.State != core.RunSucceeded || err == nil {
		return fmt.Sprintf("a run that had succeeded is %s after a cancel: %v", got.State, err)
	}
	return ""
}

// startOfACanceledRun: the message of a canceled run is read late.
func startOfACanceledRun(w *world) string {
	c := w.claimed(nil)
	_, err := w.db.CancelRun(w.ctx, w.tenant, c.Key)
	if err != nil {
		return fmt.Sprintf("the cancel was refused: %v", err)
	}
	if got := w.start(delivery(c), time.Minute); len(got) != 0 {
		return "a canceled run was started"
	}
	return ""
}

// retryOfACanceledRun: a running run is asked to end, fails, and is not tried
// again.
func retryOfACanceledRun(w *world) string {
	c := w.claimed(nil)
	st := w.start(delivery(c), time.Minute)[0]
	_, err := w.db.CancelRun(w.ctx, w.tenant, c.Key)
	w.must(err)
	beats, err := w.db.Heartbeat(w.ctx, []core.Held{held(st)}, time.Minute)
	w.must(err)
	w.finish(held(st), core.RunRetrying)
	if got := w.run(c.Key); len(beats) != 1 || !beats[0].CancelRequested || got.State != core.RunCanceled || got.Reason != core.ReasonRequested {
		return fmt.Sprintf("a run that was asked to end is %s, %s; its holder was told: %+v", got.State, got.Reason, beats)
	}
	return ""
}

// cancelWhileStarted: start has taken its snapshot, cancel ends the run and is
// answered, start goes on.
func cancelWhileStarted(w *world) string {
	c := w.claimed(nil)
	var started []core.Started
	var wg sync.WaitGroup
	wg.Go(func() { started = w.start(delivery(c), time.Minute) })
	w.waitAsleep()
	got, err := w.db.CancelRun(w.ctx, w.tenant, c.Key)
	w.must(err)
	wg.Wait()
	if now := w.run(c.Key); len(started) > 0 || now.State != got.State {
		return fmt.Sprintf("a run whose cancel was answered with %s was started, and is %s", got.State, now.State)
	}
	return ""
}

// cancelWhileSwept: the sweep reads a run whose lease has ended, a cancel is asked
// for and answered, the sweep goes on.
func cancelWhileSwept(w *world) string {
	c := w.claimed(nil)
	w.start(delivery(c), time.Minute)
	w.expire()
	var swept error
	var wg sync.WaitGroup
	wg.Go(func() { _, swept = w.trySweep() })
	w.waitAsleep()
	_, err := w.db.CancelRun(w.ctx, w.tenant, c.Key)
	w.must(err)
	wg.Wait()
	if got := w.run(c.Key); swept != nil || got.State != core.RunCanceled || got.Reason != core.ReasonRequested {
		return fmt.Sprintf("a run that was asked to end and lost its holder is %s, %s: %v", got.State, got.Reason, swept)
	}
	return ""
}

// cancelWhileFailing: an attempt's failure is on its way while a cancel is asked
// for and answered.
func cancelWhileFailing(w *world) string {
	c := w.claimed(nil)
	st := w.start(delivery(c), time.Minute)[0]
	var finished error
	var wg sync.WaitGroup
	wg.Go(func() { _, finished = w.tryFinish(held(st), core.RunRetrying) })
	w.waitAsleep()
	_, err := w.db.CancelRun(w.ctx, w.tenant, c.Key)
	w.must(err)
	wg.Wait()
	if got := w.run(c.Key); finished != nil || got.State != core.RunCanceled || got.Reason != core.ReasonRequested {
		return fmt.Sprintf("a run that was asked to end and failed is %s, %s: %v", got.State, got.Reason, finished)
	}
	return ""
}
