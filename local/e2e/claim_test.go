package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
)

// raceClaimers starts claimers that all work on all shards, in small batches,
// and returns what each of them published.
func raceClaimers(w *world, n int, publishTo func(i int) *mailbox) (stop func()) {
	shards := make([]int16, core.Shards)
	for i := range shards {
		shards[i] = int16(i)
	}
	var stops []func()
	for i := range n {
		stops = append(stops, w.claimer(w.open(w.url), publishTo(i), func(c *claimer.Config) {
			c.Shards, c.Batch = shards, 10
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// Four claimers race for a hundred due schedules: each is claimed by one of
// them, and its timer stands at the next slot already.
func TestRacingClaimers(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(w *world) {
		due := w.now().Truncate(time.Second).Add(-time.Second)
		ids := w.seed(100, "every 1m", due, due.Add(-time.Second), nil)
		boxes := []*mailbox{newMailbox(w), newMailbox(w), newMailbox(w), newMailbox(w)}
		stop := raceClaimers(w, len(boxes), func(i int) *mailbox { return boxes[i] })
		w.until("100 messages are published", func() bool {
			n := 0
			for _, b := range boxes {
				n += len(b.published())
			}
			return n >= 100
		})
		stop()

		claimed := map[uuid.UUID]int{}
		for _, b := range boxes {
			for _, m := range b.published() {
				claimed[m.Key.ScheduleID]++
			}
		}
		want := map[uuid.UUID]int{}
		for _, id := range ids {
			want[id] = 1
		}
		if diff := cmp.Diff(want, claimed); diff != "" {
			w.Errorf("claims of each schedule: %s", diff)
		}
		if n := w.count("runs WHERE state = 'queued' AND scheduled_for = $1", due); n != 100 || w.count("runs") != 100 {
			w.Errorf("there are %d runs for the slot and %d in all, want 100 of both", n, w.count("runs"))
		}
		if n := w.count("timers WHERE fire_at = $1 AND done = $2", due.Add(time.Minute), due); n != 100 {
			w.Errorf("%d timers stand at their next slot, want 100", n)
		}
	})
}

// A hundred runs are started and their holder falls silent: they are queued
// again, another executor takes them, and the first one's outcome is refused.
func TestSilentHolder(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(w *world) {
		w.seedDue(100)
		box := newMailbox(w)
		raceClaimers(w, 4, func(int) *mailbox { return box })
		first := startAll(w, box, 100, 2*time.Second)
		second := startAll(w, box, 100, never)

		for key, a := range first {
			if b := second[key]; a.Attempt != 1 || b.Attempt != 2 || b.Fence <= a.Fence {
				w.Errorf("run %s: attempt %d with fence %d, then attempt %d with fence %d", key.ID(), a.Attempt, a.Fence, b.Attempt, b.Fence)
			}
		}
		late := finishAll(w, first)
		if diff := cmp.Diff(0, len(late)); diff != "" {
			w.Errorf("outcomes of the holder that fell silent were accepted: %s", diff)
		}
		if got := finishAll(w, second); len(got) != 100 {
			w.Errorf("%d outcomes of the new holder were accepted, want 100", len(got))
		}
		if n := w.count("runs WHERE state = 'succeeded' AND attempt = 2"); n != 100 || w.count("runs") != 100 {
			w.Errorf("%d of %d runs succeeded by their second attempt, want 100 of 100", n, w.count("runs"))
		}
		if n := w.count("attempts WHERE attempt = 1 AND error = 'heartbeats stopped'"); n != 100 || w.count("attempts") != 100 {
			w.Errorf("%d of %d failed attempts tell of the silence, want 100 of 100", n, w.count("attempts"))
		}
	})
}

// startAll receives n messages and starts their runs, as an executor would.
func startAll(w *world, box *mailbox, n int, lease time.Duration) map[core.RunKey]core.Started {
	w.Helper()
	w.until(fmt.Sprintf("%d messages wait", n), func() bool { return box.Len(queue) >= n })
	ds, err := box.Receive(w.ctx, queue, n)
	w.must(err)
	started, err := w.db.Start(w.ctx, ds, lease)
	w.must(err)
	out := map[core.RunKey]core.Started{}
	for _, s := range started {
		out[s.Key] = s
	}
	if len(out) != n {
		w.Fatalf("%d of %d messages started a run", len(out), n)
	}
	return out
}

// finishAll reports success for all and returns what was accepted.
func finishAll(w *world, held map[core.RunKey]core.Started) []core.Finished {
	w.Helper()
	var os []core.Outcome
	for key, s := range held {
		os = append(os, core.Outcome{Held: core.Held{Key: key, Fence: s.Fence}, State: core.RunSucceeded})
	}
	got, err := w.db.Finish(w.ctx, os)
	w.must(err)
	return got
}

// A schedule of a minute was left alone for 10 minutes and 30 seconds: one run, which is
// on time, is on the newest of the slots, and one row tells of the rest.
func TestOverdueSchedule(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(w *world) {
		now := w.now().Truncate(time.Second)
		oldest := now.Add(-10*time.Minute - 30*time.Second)
		newest := oldest.Add(10 * time.Minute)
		id := w.seed(1, "every 1m", oldest, oldest.Add(-time.Second), nil)[0]
		box := newMailbox(w)
		done := &tally{}
		w.claimer(w.db, box, nil)
		w.executor(w.db, box, done, nil)
		w.until("the run has succeeded", func() bool { return w.count("runs WHERE state = 'succeeded'") == 1 })

		got := w.runs()
		for i := range got {
			got[i].Fence, got[i].WakeAt, got[i].StartedAt = 0, nil, nil
		}
		want := []run{
			{ScheduleID: id, ScheduledFor: newest.Add(-time.Minute), State: "skipped", Cause: "schedule", Reason: "misfire", RangeFrom: &oldest, RangeCount: 10},
			{ScheduleID: id, ScheduledFor: newest, State: "succeeded", Cause: "schedule", Attempt: 1},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("runs: %s", diff)
		}
		if diff := cmp.Diff(once(got), done.executions()); diff != "" {
			w.Errorf("executions: %s", diff)
		}
		if next := rows[time.Time](w, "SELECT fire_at FROM timers")[0]; !next.Equal(newest.Add(time.Minute)) {
			w.Errorf("the next slot is %s, want %s, within a minute ahead", next, newest.Add(time.Minute))
		}
	})
}
