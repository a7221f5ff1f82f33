package executor_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/inprocess"
)

// stage is an executor's surroundings: the store in memory, a queue, and time
// that a synctest bubble makes.
type stage struct {
	*testing.T
	db     *memory.Store
	queue  *inprocess.Queue
	tenant uuid.UUID
	began  time.Time

	mu      sync.Mutex
	reports []executor.Report
}

func bubble(t *testing.T, test func(s *stage)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, err := inprocess.New(inprocess.Config{Queues: []string{"test"}})
		if err != nil {
			t.Fatal(err)
		}
		test(&stage{T: t, db: memory.New("local", clock.System{}), queue: q, tenant: uuid.New(), began: time.Now()})
	})
}

func (s *stage) at() time.Duration { return time.Since(s.began) }

func (s *stage) until(d time.Duration) { time.Sleep(d - s.at()) }

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// ready makes a run that is queued and its message; change may be nil.
func (s *stage) ready(change func(*core.Schedule)) core.Message {
	s.Helper()
	now := time.Now().UTC()
	c := core.Schedule{
		TenantID: s.tenant, ID: uuid.New(), Spec: "at 2001-01-01T00:00:00Z", Misfire: core.MisfireRunOnce, Overlap: core.OverlapSkip,
		Timeout: time.Hour, MaxAttempts: 3, Job: core.Job{Queue: "test", Payload: []byte(`{"n":1}`)},
	}
	if change != nil {
		change(&c)
	}
	c.Name = c.ID.String()
	s.must(s.db.Create(s.Context(), c, core.Forever, now))
	r, err := s.db.Trigger(s.Context(), s.tenant, core.Manual{ScheduleID: c.ID, Fence: 1, Slot: now.Add(time.Microsecond), Within: c.Rules.TotalTimeout})
	s.must(err)
	return core.Message{Key: r.Key, Fence: r.Fence}
}

func (s *stage) publish(ms ...core.Message) {
	s.Helper()
	_, err := s.queue.Publish(s.Context(), "test", ms)
	s.must(err)
}

// give makes a run and publishes it.
func (s *stage) give(change func(*core.Schedule)) core.RunKey {
	s.Helper()
	m := s.ready(change)
	s.publish(m)
	return m.Key
}

func (s *stage) run(k core.RunKey) core.Run {
	s.Helper()
	r, _, err := s.db.Run(s.Context(), s.tenant, k)
	s.must(err)
	return r
}

func (s *stage) failed(k core.RunKey) []core.Attempt {
	s.Helper()
	_, failed, err := s.db.Run(s.Context(), s.tenant, k)
	s.must(err)
	return failed
}

// remove deletes the schedule of a run, which asks the run to end.
func (s *stage) remove(k core.RunKey) {
	s.Helper()
	cur, err := s.db.Get(s.Context(), s.tenant, k.ScheduleID)
	s.must(err)
	s.must(s.db.Delete(s.Context(), s.tenant, core.Edit{
		Version: cur.Schedule.Version, Fence: cur.Timer.Fence, ValidUntil: core.Forever, Schedule: cur.Schedule,
	}))
}

// sweep takes all runs that are due and publishes them.
func (s *stage) sweep() []core.Swept {
	s.Helper()
	var marks []core.ShardMark
	for shard := range int16(core.Shards) {
		marks = append(marks, core.ShardMark{Shard: shard})
	}
	swept, _, err := s.db.Sweep(s.Context(), core.SweepOptions{
		Marks: marks, DispatchLease: time.Minute, MaxDispatchLease: time.Hour, Backoff: core.Backoff{Initial: time.Second, Max: time.Second},
		Queues: []string{"test"}, LostIn: core.AllShards(),
	})
	s.must(err)
	for _, r := range swept {
		if r.State == core.RunQueued {
			s.publish(core.Message{Key: r.Key, Fence: r.Fence})
		}
	}
	return swept
}

// job is a target made of a function.
type job func(ctx context.Context, e core.Execution) (json.RawMessage, error)

func (j job) Execute(ctx context.Context, e core.Execution) (json.RawMessage, error) {
	return j(ctx, e)
}

func (job) Check(json.RawMessage) error { return nil }

// takes is a job that succeeds after d, or ends with its context.
func takes(d time.Duration) job {
	return func(ctx context.Context, _ core.Execution) (json.RawMessage, error) {
		return nil, clock.System{}.Sleep(ctx, d)
	}
}

// execute runs an executor with a lease of 30 s until the returned function is
// called; change may be nil.
func (s *stage) execute(j job, change func(*executor.Config)) (stop func()) {
	s.Helper()
	config := executor.Config{
		Store: s.db, Queue: s.queue, Clock: clock.System{}, Targets: map[string]core.Target{"test": j}, Logger: slog.New(slog.DiscardHandler),
		OnFinish: func(r executor.Report) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reports = append(s.reports, r)
		},
	}
	if change != nil {
		change(&config)
	}
	e, err := executor.New(config)
	s.must(err)
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
}

func (s *stage) reported() []executor.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reports)
}

// faults is the store with what goes wrong on the way to it and back. Functions
// that are nil change nothing; err is of a call that was carried out.
type faults struct {
	*memory.Store
	before   func(call string) error
	beats    func([]core.Beat) []core.Beat
	onFinish func([]core.Outcome) error
	finished func() error
	onNudge  func(ctx context.Context, schedules []uuid.UUID)

	mu    sync.Mutex
	calls map[string][]time.Time
}

func (f *faults) call(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string][]time.Time{}
	}
	f.calls[name] = append(f.calls[name], time.Now())
	if f.before != nil {
		return f.before(name)
	}
	return nil
}

// times returns when a call was made, since the stage's beginning.
func (f *faults) times(s *stage, name string) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []time.Duration
	for _, at := range f.calls[name] {
		out = append(out, at.Sub(s.began))
	}
	return out
}

func (f *faults) Start(ctx context.Context, ds []core.Delivery, lease time.Duration) ([]core.Started, error) {
	if err := f.call("start"); err != nil {
		return nil, err
	}
	return f.Store.Start(ctx, ds, lease)
}

func (f *faults) Heartbeat(ctx context.Context, hs []core.Held, lease time.Duration) ([]core.Beat, error) {
	if err := f.call("heartbeat"); err != nil {
		return nil, err
	}
	got, err := f.Store.Heartbeat(ctx, hs, lease)
	if f.beats != nil {
		got = f.beats(got)
	}
	return got, err
}

func (f *faults) Finish(ctx context.Context, os []core.Outcome) ([]core.Finished, error) {
	if err := f.call("finish"); err != nil {
		return nil, err
	}
	if f.onFinish != nil {
		if err := f.onFinish(os); err != nil {
			return nil, err
		}
	}
	got, err := f.Store.Finish(ctx, os)
	if err == nil && f.finished != nil {
		err = f.finished()
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

// acknowledging is a queue that notes for which runs deliveries were done with.
type acknowledging struct {
	*inprocess.Queue
	mu   sync.Mutex
	done []core.Message
}

func (a *acknowledging) Done(_ context.Context, ds []core.Delivery) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range ds {
		a.done = append(a.done, d.Message)
	}
	return nil
}

func (a *acknowledging) messages() []core.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.done)
}

func (f *faults) Nudge(ctx context.Context, schedules []uuid.UUID) error {
	if err := f.call("nudge"); err != nil {
		return err
	}
	if f.onNudge != nil {
		f.onNudge(ctx, schedules)
	}
	return f.Store.Nudge(ctx, schedules)
}
