package schedules

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// errNoLimit answers what is about a limit that does not exist.
var errNoLimit = &core.Error{Code: core.CodeNotFound, Kind: "not_found", Message: "the queue has no limit of yours"}

// QueueLimits returns the limits of a tenant and those of all tenants, by queue.
func (s *Service) QueueLimits(ctx context.Context, tenant uuid.UUID) ([]core.Limit, error) {
	all, err := s.store.Limits(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list limits: %w", err)
	}
	return all, nil
}

// LimitQueue lets n runs of a tenant be running at once in a queue, and returns the
// limit. Runs that are running go on. It may be sent again.
func (s *Service) LimitQueue(ctx context.Context, tenant uuid.UUID, queue string, n int) (core.Limit, error) {
	if _, ok := s.targets[queue]; !ok {
		return core.Limit{}, core.Invalid("queue", "is not one that this installation serves; %s", s.known)
	}
	l := core.Limit{Queue: queue, TenantID: tenant, Concurrency: n}
	if err := l.Check(); err != nil {
		return core.Limit{}, err
	}
	if err := s.store.SetLimit(ctx, l); err != nil {
		return core.Limit{}, fmt.Errorf("limit queue: %w", err)
	}
	all, err := s.QueueLimits(ctx, tenant)
	for _, found := range all {
		if found.Queue == queue && found.TenantID == tenant {
			l = found
		}
	}
	return l, err
}

// UnlimitQueue ends a tenant's limit of a queue.
func (s *Service) UnlimitQueue(ctx context.Context, tenant uuid.UUID, queue string) error {
	switch err := s.store.DropLimit(ctx, queue, tenant); {
	case errors.Is(err, core.ErrNotFound):
		return errNoLimit
	case err != nil:
		return fmt.Errorf("unlimit queue: %w", err)
	}
	return nil
}
