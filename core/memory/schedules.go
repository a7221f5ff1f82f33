package memory

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Now implements core.ScheduleStore.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	now, err := s.begin(ctx, "read the time")
	if err != nil {
		return time.Time{}, err
	}
	defer s.mu.Unlock()
	return now, nil
}

// Create implements core.ScheduleStore.
func (s *Store) Create(ctx context.Context, c core.Schedule, nextAt, done time.Time) error {
	now, err := s.begin(ctx, "create schedule")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := cmp.Or(checkContent(&c), checkSchedule(&c)); err != nil {
		return err
	}
	if _, ok := s.schedules[c.ID]; ok {
		return nil
	}
	if s.nameTaken(&c) {
		return core.ErrNameTaken
	}
	s.put(c, nextAt, done, now)
	return nil
}

// put stores a new schedule with its timer.
func (s *Store) put(c core.Schedule, nextAt, done, now time.Time) {
	c = stored(c)
	c.Region, c.Version, c.CreatedAt, c.UpdatedAt = s.region, 1, now, now
	s.schedules[c.ID] = &schedule{Schedule: c}
	s.timers[c.ID] = &timer{
		Timer: core.Timer{
			Region: s.region, Shard: core.ShardOf(c.ID), ScheduleID: c.ID, TenantID: c.TenantID, FireAt: later(micro(nextAt), now),
			Fence: 1, Done: micro(done), RunsLeft: c.FirstRunsLeft(),
		},
		openFrom: micro(done),
	}
}

// stored returns a schedule that shares nothing with the caller's.
func stored(c core.Schedule) core.Schedule {
	c.Job.Payload = bytes.Clone(c.Job.Payload)
	c.Labels = maps.Clone(c.Labels)
	if len(c.Labels) == 0 {
		c.Labels = nil
	}
	c.Anchor = micro(c.Anchor)
	c.Rules.Exceptions, c.Rules.Calendars = slices.Clone(c.Rules.Exceptions), slices.Clone(c.Rules.Calendars)
	return c
}

// nameTaken reports whether another living schedule of the tenant has the name.
func (s *Store) nameTaken(c *core.Schedule) bool {
	for _, o := range s.schedules {
		if !o.deleted && o.ID != c.ID && o.TenantID == c.TenantID && o.Name == c.Name {
			return true
		}
	}
	return false
}

func (s *Store) whole(sch *schedule, t *timer, now time.Time) core.Scheduled {
	out := core.Scheduled{Schedule: stored(sch.Schedule), Timer: t.Timer, Now: now, Calendars: s.closings(&sch.Schedule)}
	if p := s.last(t); p != nil {
		out.LastState = p.State
	}
	return out
}

// Get implements core.ScheduleStore.
func (s *Store) Get(ctx context.Context, tenant, id uuid.UUID) (core.Scheduled, error) {
	now, err := s.begin(ctx, "get schedule")
	if err != nil {
		return core.Scheduled{}, err
	}
	defer s.mu.Unlock()
	sch, t, ok := s.living(tenant, id)
	if !ok {
		return core.Scheduled{}, core.ErrNotFound
	}
	return s.whole(sch, t, now), nil
}

// guarded returns what an edit is about, if it is as the edit's plan expects.
func (s *Store) guarded(tenant uuid.UUID, e *core.Edit, now time.Time) (*schedule, *timer, bool) {
	sch, t, ok := s.living(tenant, e.Schedule.ID)
	return sch, t, ok && sch.Version == e.Version && t.Fence == e.Fence && now.Before(micro(e.ValidUntil))
}

// Apply implements core.ScheduleStore.
func (s *Store) Apply(ctx context.Context, tenant uuid.UUID, e core.Edit) error {
	now, err := s.begin(ctx, "apply edit")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := cmp.Or(checkContent(&e.Schedule), checkRowTexts(e.Settle)); err != nil {
		return err
	}
	sch, t, ok := s.guarded(tenant, &e, now)
	if !ok {
		return core.ErrChanged
	}
	next := stored(e.Schedule)
	next.Region, next.TenantID, next.Version = sch.Region, sch.TenantID, sch.Version+1
	next.CreatedAt, next.UpdatedAt = sch.CreatedAt, now
	if err := cmp.Or(checkSchedule(&next), checkRows(e.Settle)); err != nil {
		return err
	}
	if s.nameTaken(&next) {
		return core.ErrNameTaken
	}
	a := s.admit(t, e.OnBusy == core.BusyAllow, core.ReasonEdited)
	sch.Schedule = next
	t.Fence = a.fence
	if e.MoveTimer {
		t.FireAt, t.Done, t.Parked = later(micro(e.NextAt), now), micro(e.Done), false
	}
	t.RunsLeft = e.RunsLeft
	if !a.busy && !e.LastRun.IsZero() {
		t.use(1)
	}
	if e.MoveTimer || !t.purgeAt.IsZero() {
		t.complete(now, e.Keep)
	}
	if !a.busy && !e.LastRun.IsZero() {
		t.LastRun, t.openFrom = micro(e.LastRun), time.Time{}
	}
	for _, p := range e.Settle {
		s.add(&a, p, now)
	}
	return nil
}

// Delete implements core.ScheduleStore.
func (s *Store) Delete(ctx context.Context, tenant uuid.UUID, e core.Edit) error {
	now, err := s.begin(ctx, "delete schedule")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := checkRowTexts(e.Settle); err != nil {
		return err
	}
	sch, t, ok := s.guarded(tenant, &e, now)
	if !ok {
		return core.ErrChanged
	}
	if err := checkRows(e.Settle); err != nil {
		return err
	}
	sch.deleted, sch.UpdatedAt = true, now
	sch.Version++
	delete(s.timers, sch.ID)
	a := s.admit(t, true, "")
	for _, p := range e.Settle {
		p.Skipped = true // nothing of a deleted schedule runs
		s.add(&a, p, now)
	}
	for k, r := range s.runs {
		if k.ScheduleID == sch.ID && !r.State.Final() {
			r.cancel(core.ReasonDeleted, now)
		}
	}
	return nil
}

// cancel ends a waiting run and asks a running one to end.
func (r *run) cancel(why core.Reason, now time.Time) {
	r.Reason, r.CancelRequested = why, true
	if r.State == core.RunRunning {
		return
	}
	r.State, r.WakeAt, r.FinishedAt = core.RunCanceled, time.Time{}, now
	r.Fence++
}
