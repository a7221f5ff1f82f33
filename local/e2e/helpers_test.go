package e2e_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/core/spec"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

const (
	// patience bounds every wait of a test. Machines that run tests are busy.
	patience = 40 * time.Second
	// never is a lease that no test lives to see the end of: a run that waits
	// for one makes its test fail.
	never = 10 * time.Minute
)

// world is a database with the stages that a test runs on it.
type world struct {
	*testing.T
	ctx    context.Context
	url    string
	db     *database.DB
	watch  *pgxpool.Pool
	tenant uuid.UUID
	log    *journal
	// sqsQueue and sqsEndpoint are where executor processes receive, if not empty.
	sqsQueue, sqsEndpoint string
}

// eachLevel runs a test at both isolation levels, on a database of its own.
func eachLevel(t *testing.T, test func(w *world)) {
	for name, at := range map[string]func(string) string{
		"read_committed": func(url string) string { return url },
		"serializable":   dbtest.Serializable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, at(dbtest.New(t))))
		})
	}
}

// newWorld opens a prepared database.
func newWorld(t *testing.T, url string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, url: url, tenant: uuid.New(), log: &journal{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the stages said:\n%s", w.log.String())
		}
	})
	w.db, w.watch = w.open(url), w.watcher()
	return w
}

// open returns a store with connections of its own, as each process has them.
func (w *world) open(url string) *database.DB {
	w.Helper()
	db, err := database.Open(w.ctx, database.Config{URL: url, Region: region, MaxConns: 5, ClaimPool: true, Logger: quiet()})
	w.must(err)
	w.Cleanup(db.Close)
	return db
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// until polls until the condition holds and fails the test when it does not
// within patience.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-deadline.C:
			w.Fatalf("waited %s in vain: %s\n%s", patience, what, describe(w.runs()))
		}
	}
}

// signal waits until the channel is closed or receives.
func signal[T any](w *world, what string, c <-chan T) (v T) {
	w.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		w.Fatalf("waited %s in vain: %s\n%s", patience, what, describe(w.runs()))
	}
	return v
}

// background runs a stage until the returned function, or the test's end, stops
// it.
func (w *world) background(name string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				w.Errorf("%s: %v", name, err)
			}
		case <-time.After(patience):
			w.Errorf("%s did not end", name)
		}
	})
	w.Cleanup(stop)
	return stop
}

// claimer starts a claimer that publishes to q; change may be nil.
func (w *world) claimer(store claimer.Store, q core.Publisher, change func(*claimer.Config)) (stop func()) {
	w.Helper()
	c := claimer.Config{
		Store: store, Clock: clock.System{}, Owner: uuid.NewString(), Publisher: q, Queues: []string{queue}, Logger: w.logger(),
		DispatchLease: never,
	}
	if change != nil {
		change(&c)
	}
	cl, err := claimer.New(c)
	w.must(err)
	return w.background("claimer", cl.Run)
}

// executor starts an executor that receives from q; change may be nil.
func (w *world) executor(store executor.Store, q core.Consumer, target core.Target, change func(*executor.Config)) (stop func()) {
	w.Helper()
	c := executor.Config{
		Store: store, Queue: q, Clock: clock.System{}, Targets: map[string]core.Target{queue: target}, Logger: w.logger(), Lease: never,
	}
	if change != nil {
		change(&c)
	}
	ex, err := executor.New(c)
	w.must(err)
	return w.background("executor", ex.Run)
}

// service is the API's rules on a store.
func (w *world) service(store core.ScheduleStore) *schedules.Service {
	return schedules.New(store, region, map[string]core.Target{queue: targetFunc(nil)})
}

// seed makes n schedules with the given spec, settled up to done, whose timers
// stand at their first slot after done, be it in the past.
func (w *world) seed(n int, text string, anchor, done time.Time, change func(*core.Schedule)) []uuid.UUID {
	w.Helper()
	ids := make([]uuid.UUID, n)
	var g errgroup.Group
	g.SetLimit(5)
	for i := range ids {
		g.Go(func() error {
			s := core.Schedule{
				Region: region, TenantID: w.tenant, ID: uuid.Must(uuid.NewV7()), Spec: text, Anchor: anchor, Misfire: core.MisfireRunOnce,
				MisfireGrace: time.Minute, Overlap: core.OverlapSkip, MaxAttempts: 5, Job: core.Job{Queue: queue, Payload: []byte(`{}`)},
			}
			if change != nil {
				change(&s)
			}
			s.Name = s.ID.String()
			slots, err := spec.Parse(&s, done)
			if err != nil {
				return err
			}
			s.Spec, s.Anchor = slots.Text, slots.Anchor
			nextAt, _ := plan.First(&s, slots, done)
			ids[i] = s.ID
			return w.db.Create(w.ctx, s, nextAt, done)
		})
	}
	w.must(g.Wait())
	// The store lifts a due time in the past to now; an overdue timer is the
	// work of an outage, which the test does not want to wait for.
	first, err := spec.Parse(&core.Schedule{Spec: text, Anchor: anchor}, done)
	w.must(err)
	w.sql("UPDATE timers SET fire_at = $2 WHERE schedule_id = ANY ($1)", ids, first.Next(done))
	return ids
}

// seedDue makes n schedules of an hour whose first slot is due and returns that
// slot: nothing else comes due while a test runs.
func (w *world) seedDue(n int) ([]uuid.UUID, time.Time) {
	w.Helper()
	due := w.now().Truncate(time.Second).Add(-time.Second)
	return w.seed(n, "every 1h", due, due.Add(-time.Second), nil), due
}

// now returns the database's time.
func (w *world) now() time.Time {
	w.Helper()
	now, err := w.db.Now(w.ctx)
	w.must(err)
	return now
}

// watcher returns connections for looking on. They take no part in the
// serialization of what they look at.
func (w *world) watcher() *pgxpool.Pool {
	w.Helper()
	config, err := pgxpool.ParseConfig(w.url)
	w.must(err)
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "read committed"
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(w.ctx, config)
	w.must(err)
	w.Cleanup(pool.Close)
	return pool
}

// sql runs one statement for its effect, beside the store.
func (w *world) sql(text string, args ...any) {
	w.Helper()
	_, err := w.watch.Exec(w.ctx, text, args...)
	w.must(err)
}

// rows reads one column beside the store.
func rows[T any](w *world, text string, args ...any) []T {
	w.Helper()
	r, err := w.watch.Query(w.ctx, text, args...)
	w.must(err)
	all, err := pgx.CollectRows(r, pgx.RowTo[T])
	w.must(err)
	return all
}

// count counts the rows that a FROM clause finds.
func (w *world) count(from string, args ...any) int {
	w.Helper()
	return rows[int](w, "SELECT count(*) FROM "+from, args...)[0]
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (w *world) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// journal keeps what the stages log, for the report of a test that failed.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

var _ io.Writer = (*journal)(nil)

// Write keeps the first 64 KiB.
func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.text.Len() < 64<<10 {
		j.text.Write(line)
	}
	return len(line), nil
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// said reports whether a stage logged the message.
func (j *journal) said(message string) bool { return j.count(message) > 0 }

// count returns how often.
func (j *journal) count(message string) int { return strings.Count(j.String(), message) }
