package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/inprocess"
)

// targetFunc is a target that a test writes on the spot.
type targetFunc func(ctx context.Context, e core.Execution) error

// Execute calls the function.
func (f targetFunc) Execute(ctx context.Context, e core.Execution) (json.RawMessage, error) {
	return nil, f(ctx, e)
}

// Check takes every payload.
func (targetFunc) Check(json.RawMessage) error { return nil }

// tally is a target that counts how often each run is executed, and does
// nothing else unless then is set.
type tally struct {
	then targetFunc
	mu   sync.Mutex
	runs map[core.RunKey]int
}

// Execute counts.
func (c *tally) Execute(ctx context.Context, e core.Execution) (json.RawMessage, error) {
	c.mu.Lock()
	if c.runs == nil {
		c.runs = map[core.RunKey]int{}
	}
	c.runs[e.Key]++
	c.mu.Unlock()
	if c.then == nil {
		return nil, nil
	}
	return nil, c.then(ctx, e)
}

// Check takes every payload.
func (*tally) Check(json.RawMessage) error { return nil }

// executions returns how often each run was executed.
func (c *tally) executions() map[core.RunKey]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.runs)
}

// once returns what executions returns when each of the runs that came to an
// end by themselves was executed once.
func once(runs []run) map[core.RunKey]int {
	out := map[core.RunKey]int{}
	for _, r := range runs {
		if r.State == string(core.RunSucceeded) {
			out[r.key()] = 1
		}
	}
	return out
}

// run is a row of runs as a test looks at it.
type run struct {
	ScheduleID   uuid.UUID
	ScheduledFor time.Time
	State        string
	Cause        string
	Reason       string
	RangeFrom    *time.Time
	RangeCount   int
	Fence        int64
	Attempt      int
	WakeAt       *time.Time
	StartedAt    *time.Time
}

func (r run) key() core.RunKey {
	return core.RunKey{Region: region, ScheduleID: r.ScheduleID, Slot: r.ScheduledFor.UTC()}
}

// runs reads all runs, by schedule and slot.
func (w *world) runs() []run {
	w.Helper()
	r, err := w.watch.Query(w.ctx, `SELECT schedule_id, scheduled_for, state, cause, COALESCE(reason, '') AS reason, range_from,
		COALESCE(range_count, 0) AS range_count, fence, attempt, wake_at, started_at FROM runs ORDER BY schedule_id, scheduled_for`)
	w.must(err)
	all, err := pgx.CollectRows(r, pgx.RowToStructByName[run])
	w.must(err)
	return all
}

// succeeded waits until there are n runs and all of them have succeeded.
func (w *world) succeeded(n int) []run {
	w.Helper()
	var all []run
	w.until(fmt.Sprintf("%d runs have succeeded", n), func() bool {
		all = w.runs()
		ended := 0
		for _, r := range all {
			if r.State == string(core.RunSucceeded) {
				ended++
			}
		}
		return len(all) >= n && ended == len(all)
	})
	if len(all) != n {
		w.Fatalf("there are %d runs, want %d\n%s", len(all), n, describe(all))
	}
	return all
}

// attempts groups runs by how many attempts they took.
func attempts(runs []run) map[int]int {
	out := map[int]int{}
	for _, r := range runs {
		out[r.Attempt]++
	}
	return out
}

func describe(runs []run) string {
	var b strings.Builder
	for _, r := range runs[:min(len(runs), 50)] {
		fmt.Fprintf(&b, "%s %s %s %s %s fence %d attempt %d\n", r.ScheduleID, r.ScheduledFor.Format(time.RFC3339Nano), r.State, r.Cause, r.Reason,
			r.Fence, r.Attempt)
	}
	fmt.Fprintf(&b, "%d runs in all\n", len(runs))
	return b.String()
}

// mailbox is the queue of one process, which remembers what was published.
type mailbox struct {
	*inprocess.Queue
	mu    sync.Mutex
	taken []core.Message
}

func newMailbox(w *world) *mailbox {
	w.Helper()
	q, err := inprocess.New(inprocess.Config{Queues: []string{queue}})
	w.must(err)
	return &mailbox{Queue: q}
}

// Publish publishes and remembers.
func (q *mailbox) Publish(ctx context.Context, name string, msgs []core.Message) (int, error) {
	n, err := q.Queue.Publish(ctx, name, msgs)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = append(q.taken, msgs[:n]...)
	return n, err
}

// published returns all messages that were ever published.
func (q *mailbox) published() []core.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.taken)
}

// settled is how far a timer has settled its schedule's slots.
type settled struct {
	ScheduleID uuid.UUID
	Done       time.Time
}

// settled reads how far all timers have.
func (w *world) settled() []settled {
	w.Helper()
	r, err := w.watch.Query(w.ctx, "SELECT schedule_id, done FROM timers")
	w.must(err)
	all, err := pgx.CollectRows(r, pgx.RowToStructByName[settled])
	w.must(err)
	return all
}
