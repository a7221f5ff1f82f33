package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// CreateMany implements core.ScheduleStore.
func (s *Store) CreateMany(ctx context.Context, tenant uuid.UUID, all []core.NewSchedule) ([]uuid.UUID, error) {
	now, err := s.begin(ctx, "create schedules")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for i := range all {
		if err := cmp.Or(checkContent(&all[i].Schedule), checkSchedule(&all[i].Schedule)); err != nil {
			return nil, err
		}
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b core.NewSchedule) int { return cmp.Compare(a.Schedule.Name, b.Schedule.Name) })
	taken := map[string]bool{}
	for id := range s.schedules {
		if sch, _, ok := s.living(tenant, id); ok {
			taken[sch.Name] = true
		}
	}
	var made []uuid.UUID
	for _, n := range all {
		c := n.Schedule
		c.TenantID = tenant
		if _, ok := s.schedules[c.ID]; ok || taken[c.Name] {
			continue
		}
		taken[c.Name] = true
		s.put(c, n.NextAt, n.Done, now)
		made = append(made, c.ID)
	}
	return made, nil
}

// CountSchedules implements core.ScheduleStore.
func (s *Store) CountSchedules(ctx context.Context, tenant uuid.UUID, most int) (int, error) {
	_, err := s.begin(ctx, "count schedules")
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := 0
	for id := range s.schedules {
		if _, _, ok := s.living(tenant, id); ok {
			n++
		}
	}
	return min(n, most), nil
}

// Named implements core.ScheduleStore.
func (s *Store) Named(ctx context.Context, tenant uuid.UUID, names []string) ([]core.Scheduled, error) {
	now, err := s.begin(ctx, "find schedules by name")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if err := checkText(names...); err != nil {
		return nil, err
	}
	var out []core.Scheduled
	for id := range s.schedules {
		if sch, t, ok := s.living(tenant, id); ok && slices.Contains(names, sch.Name) {
			out = append(out, s.whole(sch, t, now))
		}
	}
	return out, nil
}
