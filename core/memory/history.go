package memory

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Runs implements core.ScheduleStore.
func (s *Store) Runs(ctx context.Context, tenant, schedule uuid.UUID, p core.Page) ([]core.Run, error) {
	_, err := s.begin(ctx, "list runs")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	before := micro(p.Before)
	if before.IsZero() {
		before = core.Forever
	}
	out := []core.Run{}
	for k, r := range s.runs {
		if k.ScheduleID == schedule && r.TenantID == tenant && k.Slot.Before(before) {
			out = append(out, r.Run)
		}
	}
	slices.SortFunc(out, func(a, b core.Run) int { return b.Key.Slot.Compare(a.Key.Slot) })
	return out[:min(len(out), p.Limit, 1001)], nil
}

// Run implements core.ScheduleStore.
func (s *Store) Run(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, []core.Attempt, error) {
	_, err := s.begin(ctx, "get run")
	if err != nil {
		return core.Run{}, nil, err
	}
	defer s.mu.Unlock()
	r := s.runs[own(key)]
	if r == nil || r.TenantID != tenant {
		return core.Run{}, nil, core.ErrNotFound
	}
	return r.Run, slices.Clone(r.failed), nil
}
