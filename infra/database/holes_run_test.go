package database_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func runHoles() []hole {
	const own = "OR r.state = 'running' AND r.fence = m.fence + 1 AND r.holder = m.token"
	return []hole{
		{
			name: "H01_start_sent_again", scenario: startSentAgain,
			guards: []mutation{
				{file: "start", guard: own, instead: ""},
				{file: "start", guard: "CASE WHEN r.state = 'running' OR m.gone OR (r.late_at < now() OR r.expires_at <= now()) OR m.queue <> r.queue THEN r.attempt ELSE", instead: "CASE WHEN m.gone OR m.queue <> r.queue THEN r.attempt ELSE"},
			},
		},
		{
			name: "H01_message_doubled", scenario: messageDoubled,
			guards: []mutation{{file: "start", guard: " AND r.holder = m.token", instead: ""}},
		},
		{
			name: "H13_heartbeat_during_sweep", scenario: heartbeatDuringSweep, stall: sleeping("sweep", "due", "d"),
			guards: []mutation{{file: "sweep", guard: "AND r.state = l.state AND r.fence = l.fence AND r.wake_at <= now()", instead: "AND r.state = l.state AND r.fence = l.fence"}},
		},
		{
			name: "H13_fence_rises_with_the_holder", scenario: fenceRisesWithHolder,
			guards: []mutation{{file: "sweep", guard: "r.fence ELSE r.fence + 1 END", instead: "r.fence ELSE r.fence END"}},
		},
		{
			name: "H14_backlog", scenario: backlog,
			guards: []mutation{
				{file: "sweep", guard: "fence = CASE WHEN r.state = 'dead' OR r.state = 'queued' AND (r.late_at < now() OR r.expires_at <= now()) IS NOT TRUE THEN", instead: "fence = CASE WHEN false THEN"},
				{file: "sweep", guard: "now() - r.queued_at", instead: "now() - r.scheduled_for"},
				{file: "sweep", guard: "GREATEST($6::INTERVAL, now() - r.queued_at)", instead: "$6::INTERVAL"},
			},
		},
		{
			name: "H15_claim_of_unknown_outcome", scenario: claimUnknown,
			guards: []mutation{{file: "read_claimed", guard: "r.fence = k.fence", instead: "r.fence = k.fence + 1"}},
		},
		{
			name: "H16_dead_letter_after_the_last_attempt", scenario: deadLetter,
			guards: []mutation{
				{file: "finish", guard: "WHEN r.attempt - LEAST(r.credits + f.credit, 3) >= r.max_attempts THEN 'dead'", instead: "WHEN false THEN 'dead'"},
				{file: "sweep", guard: "WHEN r.attempt - r.credits >= r.max_attempts THEN 'dead'", instead: "WHEN false THEN 'dead'"},
			},
		},
		{
			name: "C06_stale_finish", scenario: staleFinish,
			guards: []mutation{{file: "finish", guard: "AND r.fence = f.fence AND r.state = 'running'", instead: "AND r.state = 'running'"}},
		},
		{
			name: "C06_stale_heartbeat", scenario: staleHeartbeat,
			guards: []mutation{{file: "heartbeat", guard: "AND r.fence = h.fence AND r.state = 'running'", instead: "AND r.state = 'running'"}},
		},
		{name: "S31_queue_changed_before_start", scenario: queueChanged},
		{name: "S311_finish_sent_again", scenario: finishSentAgain, guards: []mutation{{file: "read_finished", guard: "WHERE r.region = $1 AND", instead: "WHERE r.region = $1 AND false AND"}}},
	}
}

// claimed makes a schedule and returns the run of its due slot.
func (w *world) claimed(change func(*core.Schedule)) core.Claimed {
	w.Helper()
	return w.claimNow(w.overdue(change))
}

// startSentAgain: start commits, the answer is lost, the same delivery is sent
// again.
func startSentAgain(w *world) string {
	d := delivery(w.claimed(nil))
	first := w.start(d, time.Minute)
	again := w.start(d, time.Minute)
	if len(again) != 1 {
		return "C9: a start sent again does not recognize its row; nobody runs it"
	}
	if again[0].Attempt != 1 || again[0].Fence != first[0].Fence {
		return fmt.Sprintf("C7: a start sent again burnt an attempt: attempt %d", again[0].Attempt)
	}
	return ""
}

// messageDoubled: two deliveries of one message.
func messageDoubled(w *world) string {
	c := w.claimed(nil)
	w.start(delivery(c), time.Minute)
	if again := w.start(delivery(c), time.Minute); len(again) != 0 {
		return "C5: two deliveries of one message both got the run"
	}
	return ""
}

// heartbeatDuringSweep: the sweep reads a run as expired, its heartbeat comes,
// the sweep goes on.
func heartbeatDuringSweep(w *world) string {
	c := w.claimed(nil)
	st := w.start(delivery(c), time.Minute)[0]
	w.expire()
	var wg sync.WaitGroup
	wg.Go(func() { w.sweep() })
	w.waitAsleep()
	beats, err := w.db.Heartbeat(w.ctx, []core.Held{held(st)}, time.Minute)
	w.must(err)
	wg.Wait()
	if got := w.run(c.Key); len(beats) == 1 && got.Fence != st.Fence {
		return "C5: the sweep took a run from a holder whose heartbeat had been answered"
	}
	return ""
}

// fenceRisesWithHolder: what the sweep takes from its holder must refuse that
// holder's late finish.
func fenceRisesWithHolder(w *world) string {
	c := w.claimed(nil)
	old := w.start(delivery(c), time.Minute)[0]
	w.expire()
	sw := w.sweep()
	if len(sw) != 1 || sw[0].State != core.RunQueued {
		return fmt.Sprintf("the sweep answered %+v", sw)
	}
	next := w.start(core.Delivery{Message: core.Message{Key: c.Key, Fence: sw[0].Fence}, Token: uuid.New()}, time.Minute)
	if len(next) != 1 || next[0].Attempt != 2 || next[0].Fence <= old.Fence+1 {
		return fmt.Sprintf("C5: the next holder got %+v after fence %d", next, old.Fence)
	}
	return ""
}

// backlog: messages wait in the queue for longer than the dispatch lease.
func backlog(w *world) string {
	c := w.claimed(nil)
	w.sql("UPDATE runs SET queued_at = now() - INTERVAL '100 seconds' WHERE wake_at IS NOT NULL")
	w.expire()
	if sw := w.sweep(); len(sw) != 1 {
		return fmt.Sprintf("the sweep answered %+v", sw)
	}
	gap := value[float64](w, "SELECT extract(epoch FROM wake_at - now())::FLOAT8 FROM runs WHERE wake_at IS NOT NULL")
	if gap < 90 || gap > 101 {
		return fmt.Sprintf("C9: after 100 s in the queue the gap is %.0f s, want as long again", gap)
	}
	if st := w.start(delivery(c), time.Minute); len(st) != 1 {
		return "C9: the first copy of a message is stale after the sweep; a long backlog makes no progress"
	}
	return oldSlot(w)
}

// oldSlot: a run of a month-old slot is published again as soon as any other.
func oldSlot(w *world) string {
	at := w.now().Truncate(time.Second).AddDate(0, 0, -29)
	id := w.schedule("at "+at.Format(time.RFC3339), at.Add(-time.Second), nil)
	w.claimNow(id)
	w.expire()
	w.sweep()
	gap := value[float64](w, "SELECT extract(epoch FROM wake_at - now())::FLOAT8 FROM runs WHERE schedule_id = $1 AND wake_at IS NOT NULL", id)
	if gap > 31 {
		return fmt.Sprintf("C9: the lost message of an old slot is sent again after %.0f s only", gap)
	}
	return ""
}

// claimUnknown: a claim commits and its answer is lost: its runs are found by
// the fence that only it could have given.
func claimUnknown(w *world) string {
	id := w.overdue(nil)
	m := w.move(id, w.now())
	made := w.claim(id, m)
	if again := w.claim(id, m); len(again) != 0 {
		return "C4: a claim sent again made rows again"
	}
	got, err := w.db.ReadClaimed(w.ctx, []core.Move{m})
	w.must(err)
	if len(got) != 1 || got[0].Fence != made[0].Fence {
		return "C12: the runs of a claim of unknown outcome are not found; they wait for the dispatch lease"
	}
	return ""
}

// deadLetter: attempts that count, crashes included, never exceed the maximum.
func deadLetter(w *world) string {
	for _, how := range []string{"failed", "lost"} {
		c := w.claimed(func(s *core.Schedule) { s.MaxAttempts = 2 })
		m := core.Message{Key: c.Key, Fence: c.Fence}
		for attempt := 1; attempt <= 2; attempt++ {
			st := w.start(core.Delivery{Message: m, Token: uuid.New()}, time.Minute)
			if len(st) != 1 || st[0].Attempt != attempt {
				return fmt.Sprintf("attempt %d started as %+v", attempt, st)
			}
			if how == "failed" {
				if _, err := w.tryFinish(held(st[0]), core.RunRetrying); err != nil {
					return fmt.Sprintf("C7: the end of an attempt was refused: %v", err)
				}
			}
			w.expire()
			swept, err := w.trySweep()
			if err != nil {
				return fmt.Sprintf("C7: the sweep was refused: %v", err)
			}
			for _, s := range swept {
				m.Fence = s.Fence
			}
		}
		got := w.run(c.Key)
		if got.State != core.RunDead {
			return fmt.Sprintf("C7: after its last attempt the %s run is %s", how, got.State)
		}
	}
	return ""
}

// taken starts a run, lets its lease end and starts it for somebody else.
func (w *world) taken() (old, current core.Started) {
	w.Helper()
	c := w.claimed(nil)
	old = w.start(delivery(c), time.Minute)[0]
	w.expire()
	fence := w.sweep()[0].Fence
	current = w.start(core.Delivery{Message: core.Message{Key: c.Key, Fence: fence}, Token: uuid.New()}, time.Minute)[0]
	return old, current
}

func staleFinish(w *world) string {
	old, current := w.taken()
	if got := w.finish(held(old), core.RunSucceeded); len(got) != 0 {
		return "C6: the finish of a holder that had lost its lease was accepted"
	}
	if got := w.finish(held(current), core.RunSucceeded); len(got) != 1 {
		return "the finish of the current holder was refused"
	}
	return ""
}

func staleHeartbeat(w *world) string {
	old, _ := w.taken()
	beats, err := w.db.Heartbeat(w.ctx, []core.Held{held(old)}, time.Minute)
	w.must(err)
	if len(beats) != 0 {
		return "C6: the heartbeat of a holder that had lost its lease was accepted"
	}
	return ""
}

// queueChanged: the schedule names another queue by the time of the start.
func queueChanged(w *world) string {
	c := w.claimed(nil)
	w.sql("UPDATE schedules SET queue = 'other' WHERE id = $1", c.Key.ScheduleID)
	for _, s := range w.start(delivery(c), time.Minute) {
		if s.State == core.RunRunning {
			return "a run was started from a queue that its schedule left"
		}
	}
	if r := w.run(c.Key); r.State != core.RunQueued || r.Queue != "other" || r.Attempt != 0 {
		return "the run did not move to the other queue: " + describe([]core.Run{r})
	}
	return ""
}

// finishSentAgain: a finish commits and its answer is lost; it is sent again.
func finishSentAgain(w *world) string {
	for _, state := range []core.RunState{core.RunSucceeded, core.RunRetrying, core.RunDead} {
		st := w.start(delivery(w.claimed(nil)), time.Minute)[0]
		w.finish(held(st), state)
		if again := w.finish(held(st), state); len(again) != 1 || again[0].State != state {
			return fmt.Sprintf("a finish as %s sent again answered %+v", state, again)
		}
	}
	return ""
}
