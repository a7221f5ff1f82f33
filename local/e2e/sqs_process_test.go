package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// overSQS seeds 200 due runs and starts a claimer that sends them through SQS to
// executor processes.
func overSQS(t *testing.T) *world {
	w := newWorld(t, dbtest.New(t))
	w.seedDue(200)
	c := w.sqs()
	w.sqsQueue, w.sqsEndpoint = c.config.Queues[queue], c.front.URL
	w.claimer(w.db, w.sender(c), func(c *claimer.Config) { c.DispatchLease = processLease })
	return w
}

// An executor process that holds messages is killed: what it held is run by another.
func TestSQSExecutorKilled(t *testing.T) {
	t.Parallel()
	w := overSQS(t)
	first := w.process(executorRole, jobTimeVariable+"=500ms")
	w.until("the executor is in the middle", func() bool {
		return len(keys(w.wrote(first), "end")) >= 50 && len(interrupted(w)) > 0
	})
	first.kill()
	first.gone()
	broken := interrupted(w)
	second := w.process(executorRole)
	end := w.succeeded(200)
	if len(broken) == 0 || len(keys(w.wrote(first), "begin")) == 200 {
		t.Fatal("the kill came at a moment that proves nothing")
	}
	checkInterrupted(w, end, broken, w.wrote(first), w.wrote(second))
}

// An executor process is frozen past its lease, and thawed when another has done its
// work: each of its attempts finds its context ended because the lease is lost, and
// none of its outcomes is accepted, nor would one be that came all the same.
func TestSQSExecutorFrozen(t *testing.T) {
	t.Parallel()
	w := overSQS(t)
	first := w.process(executorRole, jobTimeVariable+"=10m")
	w.until("the executor holds ten runs", func() bool { return len(interrupted(w)) == 10 && len(keys(w.wrote(first), "begin")) == 10 })
	first.freeze()
	var late []core.Outcome
	for _, r := range w.runs() {
		if r.State == string(core.RunRunning) {
			late = append(late, core.Outcome{Held: core.Held{Key: r.key(), Fence: r.Fence}, State: core.RunDead})
		}
	}
	second := w.process(executorRole)
	end := w.succeeded(200)
	if n := len(keys(w.wrote(first), "lost")); n > 0 {
		t.Fatalf("%d attempts of a frozen process went on", n)
	}
	first.thaw()
	held := keys(w.wrote(first), "begin")
	w.until("each attempt of the thawed executor has found its context ended", func() bool {
		return cmp.Equal(held, keys(w.wrote(first), "lost"))
	})
	w.until("the thawed executor has given up all", func() bool {
		return first.log.count("attempt lost its lease")+first.log.count("outcome refused") == len(held)
	})
	if n := len(keys(w.wrote(first), "recorded")); n > 0 {
		t.Errorf("%d outcomes of the thawed executor were accepted", n)
	}
	got, err := w.db.Finish(w.ctx, late)
	w.must(err)
	if len(got) > 0 {
		t.Errorf("%d late outcomes were accepted", len(got))
	}
	if diff := cmp.Diff(end, w.runs()); diff != "" {
		t.Errorf("runs changed after their end: %s", diff)
	}
	if diff := cmp.Diff(map[int]int{1: 190, 2: 10}, attempts(end)); diff != "" {
		t.Errorf("runs by attempts: %s", diff)
	}
	if diff := cmp.Diff(once(end), keys(w.wrote(second), "recorded")); diff != "" {
		t.Errorf("outcomes of the second executor: %s", diff)
	}
}
