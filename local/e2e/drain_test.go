package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/database/dbtest"
	"github.com/fencepost/fencepost/infra/inprocess"
)

const (
	drainRuns      = 100_000
	drainSchedules = 1000
	drainSlice     = 10_000
)

// BenchmarkDrain executes 100,000 queued runs that do nothing, and has the bare
// start and finish statements do the same, by batches of the same sizes on as many
// connections: what an executor costs beside its statements. The two take turns by
// 10,000 runs of their own, since the machine has other work.
//
//	go test ./local/e2e -run '^$' -bench Drain -benchtime 1x
func BenchmarkDrain(b *testing.B) {
	for b.Loop() {
		d := newDrain(b)
		sizes := &batches{Store: d.db}
		ours, theirs := d.load(0), d.load(1)
		execute := d.executor(sizes)
		var full, bare time.Duration
		for at := 0; at < drainRuns; at += drainSlice {
			full += execute(ours[at : at+drainSlice])
			starts, finishes := sizes.mean()
			bare += d.statements(theirs[at:at+drainSlice], starts, finishes)
		}
		starts, finishes := sizes.mean()
		b.ReportMetric(float64(starts), "runs/start")
		b.ReportMetric(float64(finishes), "runs/finish")
		b.ReportMetric(drainRuns/full.Seconds(), "runs/s")
		b.ReportMetric(drainRuns/bare.Seconds(), "bare-runs/s")
		b.ReportMetric(bare.Seconds()/full.Seconds(), "ratio")
	}
}

// drain is a database with schedules whose runs are drained.
type drain struct {
	*testing.B
	ctx  context.Context
	db   *database.DB
	conn *pgx.Conn
}

func newDrain(b *testing.B) *drain {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	b.Cleanup(cancel)
	url := dbtest.New(b)
	db, err := database.Open(ctx, database.Config{URL: url, Region: region, MaxConns: 5, Logger: quiet()})
	d := &drain{b, ctx, db, nil}
	d.must(err)
	b.Cleanup(db.Close)
	d.conn, err = pgx.Connect(ctx, url)
	d.must(err)
	b.Cleanup(func() { _ = d.conn.Close(context.WithoutCancel(ctx)) })
	tenant := uuid.New()
	var all []core.NewSchedule
	for range drainSchedules {
		s := core.Schedule{
			Region: region, TenantID: tenant, ID: uuid.Must(uuid.NewV7()), Spec: "every 1h", Misfire: core.MisfireRunOnce, MisfireGrace: time.Minute,
			Overlap: core.OverlapAllow, MaxAttempts: 3, Timeout: time.Minute, Job: core.Job{Queue: queue, Payload: []byte(`{}`)},
		}
		s.Name = s.ID.String()
		all = append(all, core.NewSchedule{Schedule: s, NextAt: core.Forever, Done: time.Unix(0, 0).UTC()})
	}
	_, err = db.CreateMany(ctx, tenant, all)
	d.must(err)
	return d
}

func (d *drain) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// load makes queued runs of the schedules, in a day of their own, and returns their
// messages.
func (d *drain) load(day int) []core.Message {
	d.Helper()
	rows, err := d.conn.Query(d.ctx, `INSERT INTO runs (region, schedule_id, scheduled_for, tenant_id, shard, state, cause, queue, fence, max_attempts,
			wake_at, queued_at, created_at)
		SELECT $1, s.id, date_trunc('day', now()) - make_interval(days => $2) + make_interval(secs => n), s.tenant_id, 0, 'queued', 'schedule', s.queue,
			65536, 3, now() + INTERVAL '1 hour', now(), now()
		FROM generate_series(1, $3) AS n, schedules AS s
		RETURNING schedule_id, scheduled_for`, region, day, drainRuns/drainSchedules)
	d.must(err)
	msgs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (core.Message, error) {
		m := core.Message{Key: core.RunKey{Region: region}, Fence: 65536}
		err := row.Scan(&m.Key.ScheduleID, &m.Key.Slot)
		return m, err
	})
	d.must(err)
	_, err = d.conn.Exec(d.ctx, "VACUUM ANALYZE runs")
	d.must(err)
	_, err = d.conn.Exec(d.ctx, "CHECKPOINT")
	d.must(err)
	return msgs
}

// executor starts an executor, and returns what has it drain messages and returns
// how long that took.
func (d *drain) executor(store executor.Store) func([]core.Message) time.Duration {
	d.Helper()
	q, err := inprocess.New(inprocess.Config{Queues: []string{queue}, Capacity: drainSlice})
	d.must(err)
	var left sync.WaitGroup
	ex, err := executor.New(executor.Config{
		Store: store, Queue: q, Clock: clock.System{}, Logger: quiet(), OnFinish: func(executor.Report) { left.Done() },
		Targets: map[string]core.Target{queue: targetFunc(func(context.Context, core.Execution) error { return nil })},
	})
	d.must(err)
	ctx, stop := context.WithCancel(d.ctx)
	ended := make(chan error, 1)
	go func() { ended <- ex.Run(ctx) }()
	d.Cleanup(func() {
		stop()
		d.must(<-ended)
	})
	return func(msgs []core.Message) time.Duration {
		left.Add(len(msgs))
		began := time.Now()
		if n, err := q.Publish(d.ctx, queue, msgs); n < len(msgs) {
			d.Fatalf("%d messages were published: %v", n, err)
		}
		left.Wait()
		return time.Since(began)
	}
}

// statements starts and finishes the runs of the messages without an executor: one
// loop of each, the second behind the first.
func (d *drain) statements(msgs []core.Message, starts, finishes int) time.Duration {
	d.Helper()
	ds := make([]core.Delivery, len(msgs))
	for i, m := range msgs {
		ds[i] = core.Delivery{Message: m, Token: uuid.New()}
	}
	outcomes := make(chan core.Outcome, len(msgs))
	failed := make(chan error, 1)
	began := time.Now()
	go func() {
		defer close(outcomes)
		for len(ds) > 0 {
			n := min(starts, len(ds))
			got, err := d.db.Start(d.ctx, ds[:n], 30*time.Second)
			if err != nil || len(got) != n {
				failed <- fmt.Errorf("started %d of %d: %w", len(got), n, err)
				return
			}
			for _, s := range got {
				outcomes <- core.Outcome{Held: core.Held{Key: s.Key, Fence: s.Fence}, State: core.RunSucceeded}
			}
			ds = ds[n:]
		}
	}()
	done := 0
	var batch []core.Outcome
	flush := func() {
		got, err := d.db.Finish(d.ctx, batch)
		d.must(err)
		done += len(got)
		batch = batch[:0]
	}
	for o := range outcomes {
		if batch = append(batch, o); len(batch) == finishes {
			flush()
		}
	}
	if len(batch) > 0 {
		flush()
	}
	took := time.Since(began)
	if done != len(msgs) {
		d.Fatalf("%d of %d runs were finished: %v", done, len(msgs), <-failed)
	}
	return took
}

// batches is a store that counts the batches of an executor.
type batches struct {
	executor.Store
	mu                              sync.Mutex
	starts, started, ends, recorded int
}

func (b *batches) Start(ctx context.Context, ds []core.Delivery, lease time.Duration) ([]core.Started, error) {
	b.mu.Lock()
	b.starts, b.started = b.starts+1, b.started+len(ds)
	b.mu.Unlock()
	return b.Store.Start(ctx, ds, lease)
}

func (b *batches) Finish(ctx context.Context, os []core.Outcome) ([]core.Finished, error) {
	b.mu.Lock()
	b.ends, b.recorded = b.ends+1, b.recorded+len(os)
	b.mu.Unlock()
	return b.Store.Finish(ctx, os)
}

// mean returns how many runs a start and a finish had.
func (b *batches) mean() (start, finish int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(1, b.started/max(1, b.starts)), max(1, b.recorded/max(1, b.ends))
}
