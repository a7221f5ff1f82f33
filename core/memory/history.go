package memory

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

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
