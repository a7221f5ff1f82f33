package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

const (
	preloadLimit = 10_000
	pollLimit    = 1000
	// recheck is when a timer that waits for a live run looks again.
	recheck  = 2 * time.Second
	parkedBy = time.Hour
)

// look returns the timers of the marks' shards that are due before now + ahead,
// at most limit of each shard, soonest first.
func (s *Store) look(marks []core.ShardMark, until time.Time, limit int) []*timer {
	shards := map[int16][]*timer{}
	for _, t := range s.timers {
		if t.FireAt.Before(until) {
			shards[t.Shard] = append(shards[t.Shard], t)
		}
	}
	var out []*timer
	for _, m := range marks {
		var due []*timer
		for _, t := range shards[m.Shard] {
			if !t.FireAt.Before(micro(m.Low)) {
				due = append(due, t)
			}
		}
		slices.SortFunc(due, func(a, b *timer) int {
			return cmp.Or(a.FireAt.Compare(b.FireAt), slices.Compare(a.ScheduleID[:], b.ScheduleID[:]))
		})
		out = append(out, due[:min(len(due), limit)]...)
	}
	return out
}

// planning returns a timer with what planning needs of its schedule: neither
// payload nor labels nor dates.
func (s *Store) planning(t *timer, now time.Time) core.Scheduled {
	out := core.Scheduled{Schedule: s.schedules[t.ScheduleID].Schedule, Timer: t.Timer, Now: now}
	out.Calendars = s.closings(&out.Schedule)
	out.Schedule.Labels = nil
	out.Schedule.Job.Payload, out.Schedule.CreatedAt, out.Schedule.UpdatedAt = nil, time.Time{}, time.Time{}
	return out
}

// Preload implements core.TimerStore.
func (s *Store) Preload(ctx context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.Scheduled, time.Time, error) {
	now, err := s.begin(ctx, "preload")
	if err != nil {
		return nil, time.Time{}, err
	}
	defer s.mu.Unlock()
	out := []core.Scheduled{}
	for _, t := range s.look(marks, now.Add(ahead), preloadLimit) {
		out = append(out, s.planning(t, now))
	}
	return out, now, nil
}

// Poll implements core.TimerStore.
func (s *Store) Poll(ctx context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.TimerRef, time.Time, error) {
	now, err := s.begin(ctx, "poll")
	if err != nil {
		return nil, time.Time{}, err
	}
	defer s.mu.Unlock()
	out := []core.TimerRef{}
	for _, t := range s.look(marks, now.Add(ahead), pollLimit) {
		out = append(out, core.TimerRef{Shard: t.Shard, FireAt: t.FireAt, ScheduleID: t.ScheduleID, Fence: t.Fence})
	}
	return out, now, nil
}

// ReadTimers implements core.TimerStore. Like the database it has no time to
// tell when it finds nothing.
func (s *Store) ReadTimers(ctx context.Context, schedules []uuid.UUID) ([]core.Scheduled, time.Time, error) {
	now, err := s.begin(ctx, "read timers")
	if err != nil {
		return nil, time.Time{}, err
	}
	defer s.mu.Unlock()
	out := []core.Scheduled{}
	for _, id := range schedules {
		if t, ok := s.timers[id]; ok {
			out = append(out, s.planning(t, now))
		}
	}
	if len(out) == 0 {
		return out, time.Time{}, nil
	}
	return out, now, nil
}

// Claim implements core.TimerStore. A schedule is named by one move at most.
func (s *Store) Claim(ctx context.Context, shard int16, moves []core.Move, dispatchLease time.Duration) ([]core.Claimed, error) {
	now, err := s.begin(ctx, "claim")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, m := range moves {
		if err := checkRowTexts(m.Rows); err != nil {
			return nil, err
		}
	}
	var valid []core.Move
	for _, m := range moves {
		t, ok := s.timers[m.ScheduleID]
		if !ok || !t.ready(shard, &m, now) {
			continue
		}
		waits := m.OnBusy == core.BusyWait && s.busy(t, false)
		if err := checkRows(m.Rows); err != nil && !waits {
			return nil, err
		}
		valid = append(valid, m)
	}
	out := []core.Claimed{}
	for _, m := range valid {
		out = append(out, s.move(&m, now, dispatchLease)...)
	}
	return out, nil
}

// move carries out one move whose timer is as the plan expects it.
func (s *Store) move(m *core.Move, now time.Time, dispatchLease time.Duration) []core.Claimed {
	t := s.timers[m.ScheduleID]
	a := s.admit(t, m.OnBusy == core.BusyAllow, core.ReasonOverlap)
	a.wakeIn = dispatchLease
	t.Fence = a.fence
	if t.Parked = a.busy && m.OnBusy == core.BusyWait; t.Parked {
		t.FireAt, t.purgeAt = now.Add(recheck), time.Time{}
		return nil
	}
	t.FireAt, t.Done = later(micro(m.NextAt), now), micro(m.Done)
	if !a.busy && !m.LastRun.IsZero() {
		t.LastRun, t.openFrom = micro(m.LastRun), time.Time{}
	}
	if !a.busy {
		t.use(m.Runs())
	}
	t.complete(now, &m.Keep)
	var out []core.Claimed
	for _, p := range m.Rows {
		if r := s.add(&a, p, now); r != nil {
			out = append(out, core.Claimed{Key: r.Key, TenantID: r.TenantID, Fence: r.Fence, State: r.State, Queue: r.Queue})
		}
	}
	return out
}

// ReadClaimed implements core.TimerStore.
func (s *Store) ReadClaimed(ctx context.Context, moves []core.Move) ([]core.Claimed, error) {
	_, err := s.begin(ctx, "read claimed")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []core.Claimed{}
	for _, m := range moves {
		for _, p := range m.Rows {
			r := s.runs[s.key(m.ScheduleID, p.Slot)]
			if r != nil && r.State == core.RunQueued && r.Fence == (m.Fence+1)*runFenceFactor {
				out = append(out, core.Claimed{Key: r.Key, TenantID: r.TenantID, Fence: r.Fence, State: r.State, Queue: r.Queue})
			}
		}
	}
	return out, nil
}

// CancelPrevious implements core.TimerStore.
func (s *Store) CancelPrevious(ctx context.Context, shard int16, moves []core.Move) ([]core.Claimed, error) {
	now, err := s.begin(ctx, "cancel previous")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []core.Claimed{}
	for _, m := range moves {
		t, ok := s.timers[m.ScheduleID]
		if !ok || !t.ready(shard, &m, now) || !s.busy(t, false) || s.last(t).CancelRequested {
			continue
		}
		r := s.last(t)
		r.cancel(core.ReasonReplaced, now)
		out = append(out, core.Claimed{Key: r.Key, TenantID: r.TenantID, Fence: r.Fence, State: r.State, Queue: r.Queue})
	}
	return out, nil
}

// ready reports whether a move may be carried out now.
func (t *timer) ready(shard int16, m *core.Move, now time.Time) bool {
	return t.Shard == shard && t.FireAt.Equal(micro(m.FireAt)) && t.Fence == m.Fence && !t.FireAt.After(now) &&
		!micro(m.ValidFrom).After(now) && now.Before(micro(m.ValidUntil))
}

// use counts runs against the timer's limit, whose last one is the end.
func (t *timer) use(runs int) {
	if t.RunsLeft == nil {
		return
	}
	left := *t.RunsLeft - int64(runs)
	t.RunsLeft = &left
	if left <= 0 {
		t.FireAt = core.Forever
	}
}

// complete notes until when a schedule that will not fire again stays; for ever
// without keep.
func (t *timer) complete(now time.Time, keep *time.Duration) {
	t.purgeAt = time.Time{}
	if keep != nil && !t.FireAt.Before(core.Forever) {
		t.purgeAt = after(now, *keep)
	}
}

// Park implements core.TimerStore. Alert returns what it was told.
func (s *Store) Park(ctx context.Context, shard int16, m core.Move, alert string) error {
	now, err := s.begin(ctx, "park")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := checkText(alert); err != nil {
		return err
	}
	t, ok := s.timers[m.ScheduleID]
	if ok && t.Shard == shard && t.FireAt.Equal(micro(m.FireAt)) && t.Fence == m.Fence {
		t.FireAt = now.Add(parkedBy)
		t.Fence++
		s.alerts[m.ScheduleID] = core.Alert{ScheduleID: m.ScheduleID, Kind: core.AlertClaimRefused, Detail: alert, OpenedAt: now}
	}
	return nil
}

// Alert returns the text of the newest alert that Park opened for the schedule,
// "" if there is none.
func (s *Store) Alert(schedule uuid.UUID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alerts[schedule].Detail
}
