package memory

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Redrive implements core.ScheduleStore.
func (s *Store) Redrive(ctx context.Context, tenant uuid.UUID, d core.Redrive) error {
	now, err := s.begin(ctx, "redrive")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	sch, t, ok := s.living(tenant, d.Key.ScheduleID)
	r := s.runs[own(d.Key)]
	last := ok && t.LastRun.Equal(d.Key.Slot)
	switch {
	case !ok || t.Fence != d.Fence || r == nil:
		return core.ErrChanged
	case r.State != core.RunDead:
		return core.ErrRunNotDead
	case !last && sch.Overlap != core.OverlapAllow:
		return core.ErrSuperseded
	}
	if last {
		t.openFrom = time.Time{}
	}
	t.Fence++
	r.State, r.Reason, r.Queue, r.Fence = core.RunQueued, "", sch.Job.Queue, t.Fence*runFenceFactor
	r.MaxAttempts = r.Attempt - r.credits + sch.MaxAttempts
	r.losses, r.holder, r.CancelRequested = 0, uuid.Nil, false
	r.WakeAt, r.queuedAt, r.lateAt, r.FinishedAt = now, now, time.Time{}, time.Time{}
	r.expiresAt = time.Time{}
	if d.Within > 0 {
		r.expiresAt = after(now, d.Within)
	}
	return nil
}
