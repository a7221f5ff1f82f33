package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// Upcoming returns a schedule with its parsed spec and the time after which its
// slots are still to start, the ones that wait for their spread included;
// core.ErrNotFound.
func (s *Service) Upcoming(ctx context.Context, tenant, id uuid.UUID) (core.Schedule, spec.Spec, time.Time, error) {
	cur, slots, err := s.load(ctx, tenant, id)
	if err != nil {
		return core.Schedule{}, spec.Spec{}, time.Time{}, fmt.Errorf("preview schedule: %w", err)
	}
	from := cur.Now.Add(-cur.Schedule.Offset())
	if done := cur.Timer.Done; done.After(from) {
		from = done
	}
	return cur.Schedule, slots, from, nil
}

// Preview parses what f says about slots without storing anything; its other
// fields are ignored. A zero from becomes the database's time. The schedule it
// returns has the normalized spec and no id.
func (s *Service) Preview(ctx context.Context, f Fields, from time.Time) (core.Schedule, spec.Spec, time.Time, error) {
	var sch core.Schedule
	if from.IsZero() {
		now, err := s.store.Now(ctx)
		if err != nil {
			return sch, spec.Spec{}, from, fmt.Errorf("preview spec: %w", err)
		}
		from = now
	}
	set(f.TimeZone, &sch.TimeZone)
	setSlots(f, &sch)
	if err := checkSlots(&sch); err != nil {
		return sch, spec.Spec{}, from, err
	}
	parsed, err := parse(f, &sch, from)
	return sch, parsed, from, err
}
