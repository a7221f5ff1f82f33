package memory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// backfill is a stored backfill with its runs in their order.
type backfill struct {
	core.Backfill
	runs []core.BackfillRun
}

// CreateBackfill implements core.BackfillStore.
func (s *Store) CreateBackfill(ctx context.Context, b core.Backfill, runs []core.BackfillRun) error {
	now, err := s.begin(ctx, "create backfill")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if b.Payload != nil {
		if err := checkJSON(b.Payload); err != nil {
			return err
		}
	}
	if s.backfills[b.ID] != nil {
		return nil
	}
	b.Region, b.State, b.Total, b.Fence, b.CreatedAt, b.Payload = s.region, core.BackfillRunning, len(runs), 1, now, bytes.Clone(b.Payload)
	b.From, b.To = micro(b.From), micro(b.To)
	s.backfills[b.ID] = &backfill{b, slices.Clone(runs)}
	return nil
}

// shown returns a backfill with the states of its live runs.
func (s *Store) shown(b *backfill) core.Backfill {
	out := b.Backfill
	out.Live, out.States, out.Payload = slices.Clone(b.Live), nil, bytes.Clone(b.Payload)
	for _, key := range out.Live {
		var state core.RunState
		if r := s.runs[s.key(b.ScheduleID, key)]; r != nil {
			state = r.State
		}
		out.States = append(out.States, state)
	}
	return out
}

// Backfill implements core.BackfillStore.
func (s *Store) Backfill(ctx context.Context, tenant, id uuid.UUID) (core.Backfill, error) {
	if _, err := s.begin(ctx, "read backfill"); err != nil {
		return core.Backfill{}, err
	}
	defer s.mu.Unlock()
	b := s.backfills[id]
	if b == nil || b.TenantID != tenant {
		return core.Backfill{}, core.ErrNotFound
	}
	return s.shown(b), nil
}

// Backfills implements core.BackfillStore.
func (s *Store) Backfills(ctx context.Context, tenant, schedule uuid.UUID) ([]core.Backfill, error) {
	if _, err := s.begin(ctx, "list backfills"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []core.Backfill{}
	for _, b := range s.backfills {
		if b.TenantID == tenant && b.ScheduleID == schedule {
			out = append(out, s.shown(b))
		}
	}
	slices.SortFunc(out, func(a, b core.Backfill) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	return out[:min(len(out), 100)], nil
}

// CancelBackfill implements core.BackfillStore.
func (s *Store) CancelBackfill(ctx context.Context, tenant, id uuid.UUID) error {
	now, err := s.begin(ctx, "cancel backfill")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if b := s.backfills[id]; b != nil && b.TenantID == tenant && b.State == core.BackfillRunning {
		b.State, b.FinishedAt = core.BackfillCanceled, now
		b.Fence++
	}
	return nil
}

// SlotStates implements core.BackfillStore.
func (s *Store) SlotStates(ctx context.Context, tenant, schedule uuid.UUID, slots []time.Time) ([]core.SlotState, error) {
	if _, err := s.begin(ctx, "read slot states"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []core.SlotState{}
	for _, slot := range slots {
		for k, r := range s.runs {
			if k.ScheduleID == schedule && r.TenantID == tenant && !k.Slot.Before(slot) && k.Slot.Before(slot.Add(time.Millisecond)) {
				out = append(out, core.SlotState{Slot: slot, Key: k.Slot, State: r.State, Cause: r.Cause})
			}
		}
	}
	return out, nil
}

// DueBackfills implements core.BackfillQueue.
func (s *Store) DueBackfills(ctx context.Context, shards []int16) ([]core.DueBackfill, error) {
	if _, err := s.begin(ctx, "read due backfills"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []core.DueBackfill{}
	for _, b := range s.backfills {
		if b.State != core.BackfillRunning || !slices.Contains(shards, core.ShardOf(b.ScheduleID)) {
			continue
		}
		due := core.DueBackfill{Backfill: s.shown(b), Gone: true}
		if sch := s.schedules[b.ScheduleID]; sch != nil {
			due.Queue, due.Within, due.Gone = sch.Job.Queue, sch.Rules.TotalTimeout, sch.deleted
		}
		due.Next = slices.Clone(b.runs[b.Admitted:min(b.Admitted+b.Concurrency, len(b.runs))])
		out = append(out, due)
	}
	slices.SortFunc(out, func(a, b core.DueBackfill) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return out, nil
}

// AdvanceBackfill implements core.BackfillQueue.
func (s *Store) AdvanceBackfill(ctx context.Context, step core.BackfillStep, dispatchLease time.Duration) ([]core.Claimed, error) {
	now, err := s.begin(ctx, "advance backfill")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	made := []core.Claimed{}
	b := s.backfills[step.ID]
	if b == nil || b.Fence != step.Fence || b.State != core.BackfillRunning {
		return made, nil
	}
	b.State, b.Admitted, b.Live = step.State, step.Admitted, slices.Clone(step.Live)
	b.Succeeded, b.Dead, b.Canceled = step.Succeeded, step.Dead, step.Canceled
	b.Fence++
	if b.State != core.BackfillRunning {
		b.FinishedAt = now
	}
	sch, t, ok := s.living(b.TenantID, b.ScheduleID)
	if !ok {
		return made, nil
	}
	for _, r := range step.Admit {
		a := s.admit(t, true, "")
		a.fence, a.wakeIn = t.Fence, dispatchLease
		run := s.add(&a, core.PlannedRow{
			Slot: r.Key, Cause: core.CauseBackfill, Queue: sch.Job.Queue, MaxAttempts: sch.MaxAttempts, Payload: b.Payload, Within: step.Within,
			Elsewhere: step.Elsewhere,
		}, now)
		if run == nil {
			continue
		}
		run.CoversFrom, run.CoversTo = time.Time{}, time.Time{}
		if sch.Overlap != core.OverlapAllow {
			run.CoversFrom, run.CoversTo = r.CoversFrom, r.Key.Truncate(time.Millisecond)
		}
		made = append(made, core.Claimed{Key: run.Key, TenantID: run.TenantID, Fence: run.Fence, State: run.State, Queue: run.Queue})
	}
	return made, nil
}
