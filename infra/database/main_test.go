package database_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/core/spec"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

const region = "local"

func TestMain(m *testing.M) {
	os.Exit(dbtest.Main(m, func(ctx context.Context, url string) error {
		if _, err := database.Migrate(ctx, url, region, quiet()); err != nil {
			return err
		}
		db, err := database.Open(ctx, database.Config{URL: url, Region: region})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.EnsurePartitions(ctx)
	}))
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// world is a database of a test's own with what the tests do to it.
type world struct {
	*testing.T
	ctx    context.Context
	url    string
	db     *database.DB
	tenant uuid.UUID
	// rewrite is what this world's statements went through, for stores that a
	// test opens beside db.
	rewrite func(name, text string) string
}

// mutation takes one guard out of a statement.
type mutation struct {
	file, guard, instead string
	// and is a second guard of the same statement that goes with it: each is
	// enough alone.
	and *mutation
}

func (m mutation) rewrite(t testing.TB) func(name, text string) string {
	return func(name, text string) string {
		if name != m.file {
			return text
		}
		if !strings.Contains(text, m.guard) {
			t.Errorf("statement %s has no %q to take out", m.file, m.guard)
		}
		text = strings.ReplaceAll(text, m.guard, m.instead)
		if m.and != nil {
			return m.and.rewrite(t)(name, text)
		}
		return text
	}
}

// newWorld opens a fresh database; rewrite may be nil.
func newWorld(t *testing.T, serializable bool, rewrite func(name, text string) string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, url: dbtest.New(t), tenant: uuid.New(), rewrite: rewrite}
	if serializable {
		w.url = dbtest.Serializable(w.url)
	}
	db, err := database.Open(ctx, database.Config{URL: w.url, Region: region, MaxConns: 8, ClaimPool: true, Rewrite: rewrite, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w.db = db
	return w
}

// eachLevel runs a test at both isolation levels.
func eachLevel(t *testing.T, test func(t *testing.T, w *world)) {
	for name, serializable := range map[string]bool{"read_committed": false, "serializable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, serializable, nil))
		})
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// sql runs one statement for its effect, beside the store.
func (w *world) sql(text string, args ...any) {
	w.Helper()
	conn, err := pgx.Connect(w.ctx, w.url)
	w.must(err)
	defer conn.Close(w.ctx)
	_, err = conn.Exec(w.ctx, text, args...)
	w.must(err)
}

// value reads one value beside the store.
func value[T any](w *world, text string, args ...any) T {
	w.Helper()
	conn, err := pgx.Connect(w.ctx, w.url)
	w.must(err)
	defer conn.Close(w.ctx)
	var v T
	for range 20 { // at SERIALIZABLE a read can be refused too
		var refused *pgconn.PgError
		if err = conn.QueryRow(w.ctx, text, args...).Scan(&v); !errors.As(err, &refused) || refused.Code != "40001" {
			break
		}
	}
	w.must(err)
	return v
}

func (w *world) now() time.Time {
	w.Helper()
	now, err := w.db.Now(w.ctx)
	w.must(err)
	return now
}

// schedule makes a schedule settled up to done and returns its id. Its timer
// fires at the first slot after done, in the past if done is.
func (w *world) schedule(text string, done time.Time, change func(*core.Schedule)) uuid.UUID {
	w.Helper()
	id, err := uuid.NewV7()
	w.must(err)
	s := core.Schedule{
		Region: region, TenantID: w.tenant, ID: id, Name: id.String(), Spec: text, Misfire: core.MisfireRunOnce,
		MisfireGrace: time.Minute, Overlap: core.OverlapSkip, Timeout: time.Minute, MaxAttempts: 5,
		Job: core.Job{Queue: "test", Payload: []byte(`{"n":1}`)},
	}
	if change != nil {
		change(&s)
	}
	slots, err := spec.Parse(&s, done)
	w.must(err)
	s.Spec, s.Anchor = slots.Text, slots.Anchor
	nextAt, _ := plan.First(&s, slots, done)
	w.must(w.db.Create(w.ctx, s, nextAt, done))
	// The store moves due times up to now; a test needs them where they were.
	w.sql("UPDATE timers SET fire_at = $2 WHERE schedule_id = $1", id, nextAt)
	return id
}

// overdue makes an hourly schedule with two slots due, an hour and a half minute
// and a half minute ago, so that no slot comes while a test runs.
func (w *world) overdue(change func(*core.Schedule)) uuid.UUID {
	w.Helper()
	newest := w.now().Truncate(time.Second).Add(-30 * time.Second)
	return w.schedule("every 1h", newest.Add(-time.Hour-time.Second), func(s *core.Schedule) {
		s.Anchor = newest
		if change != nil {
			change(s)
		}
	})
}

// get reads a schedule with its timer.
func (w *world) get(id uuid.UUID) core.Scheduled {
	w.Helper()
	s, err := w.db.Get(w.ctx, w.tenant, id)
	w.must(err)
	return s
}

func (w *world) slots(s *core.Schedule) spec.Spec {
	w.Helper()
	parsed, err := spec.Load(s)
	w.must(err)
	return parsed
}

// move plans the claim of a schedule as of now.
func (w *world) move(id uuid.UUID, now time.Time) core.Move {
	w.Helper()
	s := w.get(id)
	return plan.Move(&s.Schedule, &s.Timer, w.slots(&s.Schedule), now)
}

// claim claims one schedule by the given move.
func (w *world) claim(id uuid.UUID, m core.Move) []core.Claimed {
	w.Helper()
	got, err := w.db.Claim(w.ctx, core.ShardOf(id), []core.Move{m}, 30*time.Second)
	w.must(err)
	return got
}

// claimSoon is claimNow for a schedule whose plans are void within a second.
func (w *world) claimSoon(id uuid.UUID) core.Claimed {
	w.Helper()
	for range 50 {
		for _, c := range w.claim(id, w.move(id, w.now())) {
			if c.State == core.RunQueued {
				return c
			}
		}
	}
	w.Fatal("no claim made a run")
	return core.Claimed{}
}

// waitFor polls until ok, for ten seconds at most.
func (w *world) waitFor(what string, ok func() bool) {
	w.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.Fatalf("waited ten seconds for %s", what)
}

// waitDue waits until a schedule's timer is due by the database's clock.
func (w *world) waitDue(id uuid.UUID) {
	w.Helper()
	w.waitFor("the timer to be due", func() bool { s := w.get(id); return !s.Timer.FireAt.After(s.Now) })
}

// waitAsleep waits until a statement of this test's database sleeps, as
// sleeping made it: its snapshot is taken and nothing is locked.
func (w *world) waitAsleep() {
	w.Helper()
	w.waitFor("a statement asleep", func() bool {
		return value[int](w, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'") > 0
	})
}

// claimNow plans and claims a schedule that is due and returns its run.
func (w *world) claimNow(id uuid.UUID) core.Claimed {
	w.Helper()
	for _, c := range w.claim(id, w.move(id, w.now())) {
		if c.State == core.RunQueued {
			return c
		}
	}
	w.Fatal("the claim made no run")
	return core.Claimed{}
}

func delivery(c core.Claimed) core.Delivery {
	return core.Delivery{Message: core.Message{Key: c.Key, Fence: c.Fence}, Token: uuid.New()}
}

func (w *world) start(d core.Delivery, lease time.Duration) []core.Started {
	w.Helper()
	got, err := w.db.Start(w.ctx, []core.Delivery{d}, lease)
	w.must(err)
	return got
}

func (w *world) tryFinish(h core.Held, state core.RunState) ([]core.Finished, error) {
	return w.db.Finish(w.ctx, []core.Outcome{{Held: h, State: state, Reason: core.ReasonExhausted, Error: "it failed"}})
}

func (w *world) finish(h core.Held, state core.RunState) []core.Finished {
	w.Helper()
	got, err := w.tryFinish(h, state)
	w.must(err)
	return got
}

func held(s core.Started) core.Held { return core.Held{Key: s.Key, Fence: s.Fence} }

func allShards() []core.ShardMark {
	out := make([]core.ShardMark, core.Shards)
	for i := range out {
		out[i].Shard = int16(i)
	}
	return out
}

func (w *world) sweep() []core.Swept {
	w.Helper()
	got, err := w.trySweep()
	w.must(err)
	return got
}

func (w *world) trySweep() ([]core.Swept, error) {
	got, _, err := w.db.Sweep(w.ctx, core.SweepOptions{
		Marks: allShards(), DispatchLease: 30 * time.Second, MaxDispatchLease: 10 * time.Minute,
		Backoff: core.Backoff{Initial: 10 * time.Second, Max: time.Hour}, Queues: []string{"test"}, LostIn: core.AllShards(),
	})
	return got, err
}

// expire ends the leases of all live runs.
func (w *world) expire() {
	w.Helper()
	w.sql("UPDATE runs SET wake_at = now() - INTERVAL '1 millisecond' WHERE wake_at IS NOT NULL")
}

func (w *world) run(key core.RunKey) core.Run {
	w.Helper()
	r, _, err := w.db.Run(w.ctx, w.tenant, key)
	w.must(err)
	return r
}

func (w *world) runs(id uuid.UUID) []core.Run {
	w.Helper()
	r, err := w.db.Runs(w.ctx, w.tenant, id, core.RunQuery{Limit: 1000})
	w.must(err)
	return r.Items
}

func (w *world) service() *schedules.Service {
	return schedules.New(w.db, region, map[string]core.Target{"test": testTarget{}})
}

// testTarget takes every payload; the store's tests execute none.
type testTarget struct{ core.Target }

func (testTarget) Check(json.RawMessage) error { return nil }

func ptr[T any](v T) *T { return &v }

func describe(rs []core.Run) string {
	var b strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&b, "%s %s %s %s fence %d attempt %d range %s+%d\n", r.Key.Slot.Format(time.RFC3339Nano), r.State, r.Cause, r.Reason, r.Fence, r.Attempt,
			r.RangeFrom.Format(time.RFC3339), r.RangeCount)
	}
	return b.String()
}
