package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
)

// Claimer and executor share nothing but the database: each of 200 due slots is
// executed once.
func TestProcesses(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(w *world) {
		w.seedDue(200)
		w.process(claimerRole)
		ex := w.process(executorRole)
		end := w.succeeded(200)
		if diff := cmp.Diff(map[int]int{1: 200}, attempts(end)); diff != "" {
			w.Errorf("runs by attempts: %s", diff)
		}
		lines := w.wrote(ex)
		if diff := cmp.Diff(once(end), keys(lines, "begin")); diff != "" {
			w.Errorf("executions that began: %s", diff)
		}
		if diff := cmp.Diff(once(end), keys(lines, "end")); diff != "" {
			w.Errorf("executions that ended: %s", diff)
		}
	})
}

// An executor is killed in the middle of 200 runs and another takes its place:
// the interrupted runs end by their second attempt, all others by their first,
// executed once.
func TestKilledExecutor(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(w *world) {
		w.seedDue(200)
		w.process(claimerRole)
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
			w.Fatal("the kill came at a moment that proves nothing")
		}
		checkInterrupted(w, end, broken, w.wrote(first), w.wrote(second))
	})
}

// interrupted returns the runs that are running.
func interrupted(w *world) map[core.RunKey]bool {
	w.Helper()
	out := map[core.RunKey]bool{}
	for _, r := range w.runs() {
		if r.State == string(core.RunRunning) {
			out[r.key()] = true
		}
	}
	return out
}

// checkInterrupted checks that the runs which were running at a kill ended by
// their second attempt, and all others were executed once, before or after it.
func checkInterrupted(w *world, end []run, broken map[core.RunKey]bool, before, after map[entry]int) {
	w.Helper()
	want := map[core.RunKey]int{}
	for _, r := range end {
		key := r.key()
		if broken[key] {
			if r.Attempt != 2 || after[entry{"begin", key}] != 1 {
				w.Errorf("the interrupted run %s ended by attempt %d and began %d times after the kill", key.ID(), r.Attempt, after[entry{"begin", key}])
			}
			continue
		}
		want[key] = 1
		if r.Attempt != 1 {
			w.Errorf("run %s, which was not interrupted, took %d attempts", key.ID(), r.Attempt)
		}
	}
	got := map[core.RunKey]int{}
	for _, lines := range []map[entry]int{before, after} {
		for key, n := range keys(lines, "end") {
			if !broken[key] {
				got[key] += n
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("executions of the runs that were not interrupted: %s", diff)
	}
}
