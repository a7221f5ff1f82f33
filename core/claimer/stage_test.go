package claimer_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
	"github.com/fencepost/fencepost/infra/clock"
)

// stage is a claimer's surroundings: the store in memory, a queue without end,
// and time that a synctest bubble makes.
type stage struct {
	*testing.T
	db     *memory.Store
	began  time.Time
	tenant uuid.UUID
}

func newStage(t *testing.T) *stage {
	return &stage{T: t, db: memory.New("local", clock.System{}), began: time.Now(), tenant: uuid.New()}
}

// at returns how long after the stage's beginning it is.
func (s *stage) at() time.Duration { return time.Since(s.began) }

func (s *stage) until(d time.Duration) { time.Sleep(d - s.at()) }

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// add creates a schedule whose first slot comes at the given time.
func (s *stage) add(text string, first time.Duration, change func(*core.Schedule)) uuid.UUID {
	s.Helper()
	c := core.Schedule{
		Region: "local", TenantID: s.tenant, ID: uuid.New(), Spec: text, Anchor: s.began.Add(first).UTC(), Misfire: core.MisfireRunOnce,
		MisfireGrace: time.Minute, Overlap: core.OverlapAllow, MaxAttempts: 3, Job: core.Job{Queue: "test", Payload: []byte(`{}`)},
	}
	if change != nil {
		change(&c)
	}
	c.Name = c.ID.String()
	next := c.Anchor
	s.must(s.db.Create(s.Context(), c, next, next.Add(-time.Second)))
	return c.ID
}

func (s *stage) get(id uuid.UUID) core.Scheduled {
	s.Helper()
	got, err := s.db.Get(s.Context(), s.tenant, id)
	s.must(err)
	return got
}

// edit raises a schedule's fence and version.
func (s *stage) edit(id uuid.UUID) {
	s.Helper()
	cur := s.get(id)
	slots, err := spec.Load(&cur.Schedule)
	s.must(err)
	next := cur.Schedule
	next.MaxAttempts++
	s.must(s.db.Apply(s.Context(), s.tenant, plan.Edit(&cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: slots})))
}

func (s *stage) runs(id uuid.UUID) []core.Run {
	s.Helper()
	got, err := s.db.Runs(s.Context(), s.tenant, id, core.RunQuery{Limit: 1000})
	s.must(err)
	slices.Reverse(got.Items)
	return got.Items
}

// claim runs a claimer until the returned function is called. Nobody starts the
// runs, which the sweep publishes again after ten minutes only.
func (s *stage) claim(change func(*claimer.Config)) (stop func()) {
	s.Helper()
	config := claimer.Config{
		Store: s.db, Clock: clock.System{}, Owner: "a", Queues: []string{"test"}, Logger: slog.New(slog.DiscardHandler),
		DispatchLease: 10 * time.Minute,
	}
	change(&config)
	c, err := claimer.New(config)
	s.must(err)
	return s.goes(c.Run)
}

// goes runs a loop until the returned function is called.
func (s *stage) goes(loop func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
}

// arrival is a published message and when it was.
type arrival struct {
	Schedule uuid.UUID
	Slot     time.Duration // since the stage's beginning
	At       time.Duration
	Fence    int64
}

// inbox is a publisher that keeps everything.
type inbox struct {
	s   *stage
	mu  sync.Mutex
	got []arrival
}

func (i *inbox) Publish(_ context.Context, _ string, msgs []core.Message) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range msgs {
		i.got = append(i.got, arrival{m.Key.ScheduleID, m.Key.Slot.Sub(i.s.began), i.s.at(), m.Fence})
	}
	return len(msgs), nil
}

func (i *inbox) arrivals() []arrival {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.got)
}

// times returns when messages arrived.
func (i *inbox) times() []time.Duration {
	var out []time.Duration
	for _, a := range i.arrivals() {
		out = append(out, a.At)
	}
	return out
}

// slotsOf returns the slots of a schedule's messages, oldest first.
func (i *inbox) slotsOf(id uuid.UUID) []time.Duration {
	var out []time.Duration
	for _, a := range i.arrivals() {
		if a.Schedule == id {
			out = append(out, a.Slot)
		}
	}
	slices.Sort(out)
	return out
}

// faults is the store with what goes wrong on the way to it and back. Functions
// that are nil change nothing.
type faults struct {
	*memory.Store
	mu       sync.Mutex
	before   func(call string) error         // of every call, before it is carried out
	onClaim  func(moves []core.Move) error   // before a claim is carried out
	answer   func(made []core.Claimed) error // of a claim that was carried out
	hidden   func(schedule uuid.UUID) bool   // timers that looks do not see yet
	calls    map[string]int
	lows     []core.ShardMark // of the last poll
	widePoll []time.Time      // polls without marks
	held     []int16          // shards of the last sweep
}

func (f *faults) call(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[name]++
	if f.before != nil {
		return f.before(name)
	}
	return nil
}

func (f *faults) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[name]
}

func (f *faults) shards() []int16 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held
}

func (f *faults) Preload(ctx context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.Scheduled, time.Time, error) {
	if err := f.call("preload"); err != nil {
		return nil, time.Time{}, err
	}
	got, now, err := f.Store.Preload(ctx, marks, ahead)
	if f.hidden != nil {
		got = slices.DeleteFunc(got, func(s core.Scheduled) bool { return f.hidden(s.Schedule.ID) })
	}
	return got, now, err
}

func (f *faults) Poll(ctx context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.TimerRef, time.Time, error) {
	if err := f.call("poll"); err != nil {
		return nil, time.Time{}, err
	}
	f.mu.Lock()
	f.lows = slices.Clone(marks)
	if marks[0].Low.IsZero() {
		f.widePoll = append(f.widePoll, time.Now())
	}
	f.mu.Unlock()
	got, now, err := f.Store.Poll(ctx, marks, ahead)
	if f.hidden != nil {
		got = slices.DeleteFunc(got, func(r core.TimerRef) bool { return f.hidden(r.ScheduleID) })
	}
	return got, now, err
}

func (f *faults) ReadTimers(ctx context.Context, ids []uuid.UUID) ([]core.Scheduled, time.Time, error) {
	if err := f.call("read timers"); err != nil {
		return nil, time.Time{}, err
	}
	return f.Store.ReadTimers(ctx, ids)
}

func (f *faults) Claim(ctx context.Context, shard int16, moves []core.Move, lease time.Duration) ([]core.Claimed, error) {
	if err := f.call("claim"); err != nil {
		return nil, err
	}
	if f.onClaim != nil {
		if err := f.onClaim(moves); err != nil {
			return nil, err
		}
	}
	made, err := f.Store.Claim(ctx, shard, moves, lease)
	if err == nil && f.answer != nil {
		err = f.answer(made)
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}

func (f *faults) Sweep(ctx context.Context, o core.SweepOptions) ([]core.Swept, time.Time, error) {
	if err := f.call("sweep"); err != nil {
		return nil, time.Time{}, err
	}
	f.mu.Lock()
	f.held = slices.Clone(o.LostIn)
	f.mu.Unlock()
	return f.Store.Sweep(ctx, o)
}

func (f *faults) RenewShards(ctx context.Context, owner string, ttl time.Duration) ([]int16, int, error) {
	if err := f.call("renew"); err != nil {
		return nil, 0, err
	}
	return f.Store.RenewShards(ctx, owner, ttl)
}

func (f *faults) ReleaseShards(ctx context.Context, owner string, shards []int16) error {
	if err := f.call("release"); err != nil {
		return err
	}
	return f.Store.ReleaseShards(ctx, owner, shards)
}
