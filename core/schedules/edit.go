package schedules

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Create stores a new schedule and returns it as stored. The errors name the
// field; nothing is stored then.
func (s *Service) Create(ctx context.Context, tenant uuid.UUID, f Fields) (core.Scheduled, error) {
	return core.Scheduled{}, errors.New("not yet")
}

// Edit changes the given fields of a schedule, settling the slots owed so far.
func (s *Service) Edit(ctx context.Context, tenant, id uuid.UUID, f Fields) (core.Scheduled, error) {
	return core.Scheduled{}, errors.New("not yet")
}

// Pause stops new runs; those claimed before go on. Pausing twice is no error.
func (s *Service) Pause(ctx context.Context, tenant, id uuid.UUID) (core.Scheduled, error) {
	return core.Scheduled{}, errors.New("not yet")
}

// Resume lets the schedule fire again from its next slot; the slots that passed
// meanwhile are recorded in one skipped row. Resuming twice is no error.
func (s *Service) Resume(ctx context.Context, tenant, id uuid.UUID) (core.Scheduled, error) {
	return core.Scheduled{}, errors.New("not yet")
}

// Delete removes a schedule; its history stays until it expires.
func (s *Service) Delete(ctx context.Context, tenant, id uuid.UUID) error {
	return errors.New("not yet")
}

// Trigger makes a manual run at once; core.ErrRunLive while a run is alive and
// overlap is not allow.
func (s *Service) Trigger(ctx context.Context, tenant, id uuid.UUID) (core.Run, error) {
	return core.Run{}, errors.New("not yet")
}
