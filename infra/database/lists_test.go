package database_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
)

// TestBoundedLookAtRuns: a filter that none of many runs passes ends its look, and
// goes on where it ended.
func TestBoundedLookAtRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	id := w.schedule("@daily", w.now(), nil)
	newest := w.now().Truncate(time.Second)
	const beyond = 5
	w.sql(`INSERT INTO runs (region, schedule_id, scheduled_for, tenant_id, shard, state, cause, queue, fence, max_attempts, queued_at, created_at)
		SELECT $1, $2, $3::TIMESTAMPTZ - n * INTERVAL '1 second', $4, $5, CASE WHEN n % 2500 = 0 OR n = 10004 THEN 'dead' ELSE 'succeeded' END,
		       'schedule', 'test', 1, 1, now(), now()
		FROM generate_series(0, $6::INT4) AS n`, region, id, newest, w.tenant, core.ShardOf(id), core.ScanLimit+beyond-1)
	at := func(n int) time.Time { return newest.Add(-time.Duration(n) * time.Second) }
	look := func(before time.Time, limit int, states ...core.RunState) (slots []time.Time, more bool, last time.Time) {
		page, err := w.db.Runs(w.ctx, w.tenant, id, core.RunQuery{Limit: limit, Before: before, States: states})
		w.must(err)
		for _, r := range page.Items {
			slots = append(slots, r.Key.Slot)
		}
		return slots, page.More, page.Last
	}
	for _, c := range []struct {
		what   string
		before time.Time
		limit  int
		states []core.RunState
		want   []time.Time
		more   bool
		last   time.Time
	}{
		{"nothing", time.Time{}, 3, []core.RunState{core.RunSkipped}, nil, true, at(core.ScanLimit - 1)},
		{"nothing, the rest", at(core.ScanLimit - 1), 3, []core.RunState{core.RunSkipped}, nil, false, time.Time{}},
		{"a full page", time.Time{}, 3, []core.RunState{core.RunDead}, []time.Time{at(0), at(2500), at(5000)}, true, at(5000)},
		{"a page that the look ends", at(5000), 3, []core.RunState{core.RunDead}, []time.Time{at(7500), at(10000), at(10004)}, false, time.Time{}},
		{"a page that the bound ends", at(0), 9, []core.RunState{core.RunDead}, []time.Time{at(2500), at(5000), at(7500), at(10000)}, true, at(core.ScanLimit)},
	} {
		got, more, last := look(c.before, c.limit, c.states...)
		if diff := cmp.Diff(c.want, got); diff != "" || more != c.more || !last.Equal(c.last) {
			t.Errorf("%s: more %t, last %s: %s", c.what, more, last, diff)
		}
	}
}
