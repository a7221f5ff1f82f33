package database_test

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
)

// TestLife follows one run from its timer to its end.
func TestLife(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, w *world) {
		now := w.now()
		id := w.overdue(nil)
		c := w.claimNow(id)
		st := w.start(delivery(c), 30*time.Second)
		if len(st) != 1 || st[0].Attempt != 1 || st[0].Fence != c.Fence+1 || string(st[0].Payload) != `{"n": 1}` {
			t.Fatalf("start answered %+v", st)
		}
		beats, err := w.db.Heartbeat(w.ctx, []core.Held{held(st[0])}, 30*time.Second)
		w.must(err)
		if len(beats) != 1 || beats[0].CancelRequested {
			t.Fatalf("heartbeat answered %+v", beats)
		}
		fin := w.finish(held(st[0]), core.RunSucceeded)
		if len(fin) != 1 || fin[0].State != core.RunSucceeded {
			t.Fatalf("finish answered %+v", fin)
		}
		if again := w.finish(held(st[0]), core.RunSucceeded); len(again) != 1 {
			t.Fatalf("finish sent again answered %+v, want success", again)
		}
		got := w.get(id)
		if !got.Timer.FireAt.After(now) || got.Timer.Fence != 2 {
			t.Errorf("timer is %+v, want it ahead of %s with fence 2", got.Timer, now)
		}
		found, at, err := w.db.Preload(w.ctx, allShards(), 2*time.Hour)
		w.must(err)
		if len(found) != 1 || at.IsZero() || found[0].Schedule.Spec != "every 1h" {
			t.Errorf("preload found %+v", found)
		}
		refs, _, err := w.db.Poll(w.ctx, allShards(), 2*time.Hour)
		w.must(err)
		if len(refs) != 1 || refs[0].ScheduleID != id {
			t.Errorf("poll found %+v", refs)
		}
		t.Log("\n" + describe(w.runs(id)))
	})
}
