package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/calendar"
)

type calendarKey struct {
	tenant uuid.UUID
	name   string
}

// Calendars implements core.CalendarStore.
func (s *Store) Calendars(ctx context.Context, tenant uuid.UUID, names []string) ([]core.Calendar, error) {
	if _, err := s.begin(ctx, "list calendars"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []core.Calendar{}
	for k, c := range s.calendars {
		if k.tenant == tenant && (names == nil || slices.Contains(names, k.name)) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b core.Calendar) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// PutCalendar implements core.CalendarStore.
func (s *Store) PutCalendar(ctx context.Context, c core.Calendar, expected int64) (core.Calendar, error) {
	now, err := s.begin(ctx, "put calendar")
	if err != nil {
		return core.Calendar{}, err
	}
	defer s.mu.Unlock()
	k := calendarKey{c.TenantID, c.Name}
	old, ok := s.calendars[k]
	if ok != (expected != 0) || ok && old.Version != expected {
		return core.Calendar{}, core.ErrChanged
	}
	c.Version, c.CreatedAt, c.UpdatedAt = expected+1, now, now
	if ok {
		c.CreatedAt = old.CreatedAt
	}
	s.calendars[k] = c
	return c, nil
}

// DeleteCalendar implements core.CalendarStore.
func (s *Store) DeleteCalendar(ctx context.Context, tenant uuid.UUID, name string, expected int64) error {
	if _, err := s.begin(ctx, "delete calendar"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	k := calendarKey{tenant, name}
	if c, ok := s.calendars[k]; !ok || c.Version != expected || len(s.calendarUsers(k)) > 0 {
		return core.ErrChanged
	}
	delete(s.calendars, k)
	return nil
}

// calendarUsers returns the schedules that name a calendar, in order.
func (s *Store) calendarUsers(k calendarKey) []uuid.UUID {
	var ids []uuid.UUID
	for id, sch := range s.schedules {
		if !sch.deleted && sch.TenantID == k.tenant && slices.Contains(sch.Rules.Calendars, k.name) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// CalendarUsers implements core.CalendarStore.
func (s *Store) CalendarUsers(ctx context.Context, tenant uuid.UUID, name string, most int) (int, error) {
	if _, err := s.begin(ctx, "count calendar users"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	return min(len(s.calendarUsers(calendarKey{tenant, name})), most), nil
}

// raiseAtOnce bounds the schedules that one call of RaiseFences looks at.
const raiseAtOnce = 1000

// RaiseFences implements core.CalendarStore.
func (s *Store) RaiseFences(ctx context.Context, tenant uuid.UUID, name string, after uuid.UUID) (uuid.UUID, error) {
	now, err := s.begin(ctx, "raise fences")
	if err != nil {
		return uuid.Nil, err
	}
	defer s.mu.Unlock()
	last, n := uuid.Nil, 0
	for _, id := range s.calendarUsers(calendarKey{tenant, name}) {
		if slices.Compare(id[:], after[:]) <= 0 || n == raiseAtOnce {
			continue
		}
		last, n = id, n+1
		if t := s.timers[id]; t != nil && t.FireAt.Before(now.Add(core.CalendarReach)) {
			t.Fence++
		}
	}
	return last, nil
}

// closings returns the calendars that a schedule names and that exist.
func (s *Store) closings(sch *core.Schedule) []core.Closing {
	var out []core.Closing
	for _, name := range sch.Rules.Calendars {
		c, ok := s.calendars[calendarKey{sch.TenantID, name}]
		if !ok {
			continue
		}
		if closing, err := calendar.New(name, c.CalendarContent); err == nil {
			out = append(out, closing)
		}
	}
	return out
}
