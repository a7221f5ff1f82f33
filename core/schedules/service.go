package schedules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
)

// Service is safe for concurrent use.
type Service struct {
	store   core.ScheduleStore
	region  string
	targets map[string]core.Target
	known   string // names the targets, for messages
	match   Match
	// quota, which may be nil, and minInterval are the limits of each tenant.
	quota       *quota
	minInterval time.Duration
}

// New returns a service on store. Schedules live in region; targets are the
// queues that a job may name, with what executes them. New keeps the map and
// does not change it.
func New(store core.ScheduleStore, region string, targets map[string]core.Target) *Service {
	names := slices.Sorted(maps.Keys(targets))
	return &Service{store: store, region: region, targets: targets, known: "known are " + strings.Join(names, ", ")}
}

// maxRounds bounds how often an edit is planned anew because its row changed
// between the read and the write.
const maxRounds = 20

// Get returns one schedule; core.ErrNotFound.
func (s *Service) Get(ctx context.Context, tenant, id uuid.UUID) (core.Scheduled, error) {
	return s.store.Get(ctx, tenant, id)
}

// Run returns one run with its failed attempts; core.ErrNotFound.
func (s *Service) Run(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, []core.Attempt, error) {
	return s.store.Run(ctx, tenant, key)
}

// Overdue returns what of the tenant has waited for more than a minute.
func (s *Service) Overdue(ctx context.Context, tenant uuid.UUID) ([]core.Overdue, error) {
	return s.store.Overdue(ctx, tenant)
}

// Alerts returns the alerts of the tenant that still need somebody.
func (s *Service) Alerts(ctx context.Context, tenant uuid.UUID) ([]core.Alert, error) {
	return s.store.Alerts(ctx, tenant)
}

// DeleteCompleted deletes schedules that have been completed for as long as they
// are to stay, up to 100, and returns how many. One that somebody edits meanwhile
// stays. Any number of processes may call it.
func (s *Service) DeleteCompleted(ctx context.Context) (int, error) {
	found, err := s.store.Completed(ctx)
	if err != nil {
		return 0, fmt.Errorf("delete completed schedules: %w", err)
	}
	n := 0
	for _, ref := range found {
		cur, slots, err := s.load(ctx, ref.TenantID, ref.ID)
		if err == nil && (cur.State() != core.ScheduleCompleted || cur.LastRunLive()) {
			continue
		}
		if err == nil {
			err = s.store.Delete(ctx, ref.TenantID, plan.Delete(&cur, slots))
		}
		switch {
		case err == nil:
			n++
		case !errors.Is(err, core.ErrChanged) && !errors.Is(err, core.ErrNotFound):
			return n, fmt.Errorf("delete completed schedules: %w", err)
		}
	}
	return n, nil
}
