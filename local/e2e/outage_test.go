package e2e_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/core"
)

// The database throws everybody out and takes nobody in for 3 seconds. Claimer
// and executor try on, a job that ends meanwhile is recorded afterwards, and
// every slot has its row.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(w *world) {
		job := w.seed(1, "every 1h", w.now().Truncate(time.Second), w.now().Add(-time.Second), nil)[0]
		first := w.now().Truncate(time.Second)
		w.seed(10, "every 1s", first, first.Add(-time.Second), nil)
		leave := make(chan struct{})
		box, done := newMailbox(w), &tally{then: func(ctx context.Context, e core.Execution) error {
			if e.Key.ScheduleID != job {
				return nil
			}
			select {
			case <-leave:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}}
		stopClaimer := w.claimer(w.open(w.url), box, nil)
		stopExecutor := w.executor(w.open(w.url), box, done, nil)
		const ofSeconds = "runs AS r JOIN schedules AS s ON s.id = r.schedule_id WHERE s.spec = 'every 1s' AND r.state = 'succeeded'"
		w.until("the schedules fire and the job is under way", func() bool {
			return w.count(ofSeconds) >= 20 && w.count("runs WHERE state = 'running' AND schedule_id = $1", job) == 1
		})

		admin := w.closeDatabase()
		began := time.Now()
		close(leave)
		w.until("the claimer has noticed, and 3 seconds are over", func() bool {
			return w.log.said("claimer round") && time.Since(began) > 3*time.Second
		})
		admin("ALTER DATABASE %s ALLOW_CONNECTIONS true")

		back := w.now()
		w.until("the schedules fire again", func() bool { return w.count(ofSeconds+" AND r.scheduled_for > $1", back) >= 20 })
		stopClaimer()
		w.until("all runs have ended", func() bool { return w.count("runs WHERE wake_at IS NOT NULL") == 0 })
		stopExecutor()
		end := w.runs()
		for _, r := range end {
			if r.Attempt > 1 || r.State == string(core.RunDead) {
				w.Errorf("the outage cost an attempt: %+v", r)
			}
		}
		if diff := cmp.Diff(once(end), done.executions()); diff != "" {
			w.Errorf("executions: %s", diff)
		}
		w.noGaps()
	})
}

// closeDatabase ends all sessions of the world's database and forbids new ones.
// The returned function runs a statement about the database from outside.
func (w *world) closeDatabase() func(statement string) {
	w.Helper()
	address, err := url.Parse(w.url)
	w.must(err)
	name := address.Path[1:]
	address.Path = "/postgres"
	conn, err := pgx.Connect(w.ctx, address.String())
	w.must(err)
	w.Cleanup(func() { _ = conn.Close(context.WithoutCancel(w.ctx)) })
	run := func(statement string) {
		w.Helper()
		_, err := conn.Exec(w.ctx, fmt.Sprintf(statement, pgx.Identifier{name}.Sanitize()))
		w.must(err)
	}
	run("ALTER DATABASE %s ALLOW_CONNECTIONS false")
	_, err = conn.Exec(w.ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
	w.must(err)
	return run
}
