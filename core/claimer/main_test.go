package claimer_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/infra/clock"
)

// store keeps the timers of one shard in memory, with the limits of the real
// store's looks. Its clock is the process's. The functions, if not nil, stand
// between a call and its answer.
type store struct {
	claimer.Store // nil: what is not overridden is not called
	mu            sync.Mutex
	timers        map[uuid.UUID]core.Scheduled
	runs          map[core.RunKey]core.Claimed

	onLook        func() error
	onClaim       func() error // after the claim has been carried out
	onReadClaimed func() error
}

func newStore() *store {
	return &store{timers: map[uuid.UUID]core.Scheduled{}, runs: map[core.RunKey]core.Claimed{}}
}

func (*store) LimitedQueues(context.Context) ([]string, error) { return nil, nil }

// add makes n schedules of an hour whose first slot is due.
func (s *store) add(n int, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		id := uuid.New()
		s.timers[id] = core.Scheduled{
			Schedule: core.Schedule{
				ID: id, Spec: "every 1h", Anchor: due.UTC(), Overlap: core.OverlapSkip, MisfireGrace: time.Minute, MaxAttempts: 1,
				Job: core.Job{Queue: "test"},
			},
			Timer: core.Timer{ScheduleID: id, FireAt: due.UTC(), Fence: 1, Done: due.UTC().Add(-time.Second)},
		}
	}
}

func (s *store) look(marks []core.ShardMark, ahead time.Duration, limit int) ([]core.Scheduled, time.Time, error) {
	now := time.Now()
	if s.onLook != nil {
		if err := s.onLook(); err != nil {
			return nil, time.Time{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.Scheduled
	for _, t := range s.timers {
		if !t.Timer.FireAt.Before(marks[0].Low) && t.Timer.FireAt.Before(now.Add(ahead)) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b core.Scheduled) int {
		return cmp.Or(a.Timer.FireAt.Compare(b.Timer.FireAt), cmp.Compare(a.Schedule.ID.String(), b.Schedule.ID.String()))
	})
	return out[:min(len(out), limit)], now, nil
}

func (s *store) Preload(_ context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.Scheduled, time.Time, error) {
	return s.look(marks, ahead, 10_000)
}

func (s *store) Poll(_ context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.TimerRef, time.Time, error) {
	found, now, err := s.look(marks, ahead, 1000)
	out := make([]core.TimerRef, len(found))
	for i, f := range found {
		out[i] = core.TimerRef{FireAt: f.Timer.FireAt, ScheduleID: f.Schedule.ID, Fence: f.Timer.Fence}
	}
	return out, now, err
}

func (s *store) ReadTimers(_ context.Context, ids []uuid.UUID) ([]core.Scheduled, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.Scheduled
	for _, id := range ids {
		if t, ok := s.timers[id]; ok {
			out = append(out, t)
		}
	}
	return out, time.Now(), nil
}

func (s *store) Claim(ctx context.Context, _ int16, moves []core.Move, _ time.Duration) ([]core.Claimed, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	claimed := s.carryOut(moves)
	if s.onClaim != nil {
		if err := s.onClaim(); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil { // the answer is lost with the connection
		return nil, core.ErrUnknownOutcome
	}
	return claimed, nil
}

func (s *store) carryOut(moves []core.Move) []core.Claimed {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.Claimed
	for _, m := range moves {
		t := s.timers[m.ScheduleID]
		if t.Timer.Fence != m.Fence || !t.Timer.FireAt.Equal(m.FireAt) || time.Now().Before(m.FireAt) {
			continue
		}
		t.Timer.Fence, t.Timer.FireAt, t.Timer.Done = m.Fence+1, m.NextAt, m.Done
		s.timers[m.ScheduleID] = t
		for _, r := range m.Rows {
			c := core.Claimed{Key: core.RunKey{ScheduleID: m.ScheduleID, Slot: r.Slot}, Fence: m.Fence + 1, State: core.RunQueued, Queue: r.Queue}
			s.runs[c.Key] = c
			out = append(out, c)
		}
	}
	return out
}

func (s *store) ReadClaimed(_ context.Context, moves []core.Move) ([]core.Claimed, error) {
	if s.onReadClaimed != nil {
		if err := s.onReadClaimed(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.Claimed
	for _, m := range moves {
		if c, ok := s.runs[core.RunKey{ScheduleID: m.ScheduleID, Slot: m.LastRun}]; ok {
			out = append(out, c)
		}
	}
	return out, nil
}

func (s *store) Sweep(context.Context, core.SweepOptions) ([]core.Swept, time.Time, error) {
	return nil, time.Now(), nil
}

func (s *store) DueBackfills(context.Context, []int16) ([]core.DueBackfill, error) { return nil, nil }

// published counts how often each run was published.
type published struct {
	mu   sync.Mutex
	runs map[core.RunKey]int
}

func (p *published) Publish(_ context.Context, _ string, msgs []core.Message) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = map[core.RunKey]int{}
	}
	for _, m := range msgs {
		p.runs[m.Key]++
	}
	return len(msgs), nil
}

func (p *published) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.runs)
}

// run starts a claimer of one shard; change may be nil. The returned function
// stops it.
func run(t *testing.T, s *store, to core.Publisher, change func(*claimer.Config)) (stop func()) {
	t.Helper()
	config := claimer.Config{
		Store: s, Clock: clock.System{}, Owner: "test", Publisher: to, Queues: []string{"test"}, Shards: []int16{0},
		Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&config)
	}
	c, err := claimer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
