package memory

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// List implements core.ScheduleStore.
func (s *Store) List(ctx context.Context, tenant uuid.UUID, q core.ScheduleQuery) (core.SchedulePage, error) {
	now, err := s.begin(ctx, "list schedules")
	if err != nil {
		return core.SchedulePage{}, err
	}
	defer s.mu.Unlock()
	var ids []uuid.UUID
	for id := range s.schedules {
		if _, _, ok := s.living(tenant, id); ok && slices.Compare(id[:], q.After[:]) > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	var page core.SchedulePage
	for i, id := range ids {
		sch, t, _ := s.living(tenant, id)
		found := s.whole(sch, t, now)
		wanted := q.Chooses(&found)
		if i == core.ScanLimit || wanted && len(page.Items) == q.Limit {
			page.More = true
			break
		}
		if wanted {
			page.Items = append(page.Items, found)
		}
		page.Last = id
	}
	return page, nil
}

// Runs implements core.ScheduleStore.
func (s *Store) Runs(ctx context.Context, tenant, schedule uuid.UUID, q core.RunQuery) (core.RunPage, error) {
	_, err := s.begin(ctx, "list runs")
	if err != nil {
		return core.RunPage{}, err
	}
	defer s.mu.Unlock()
	before, from := micro(q.Before), micro(q.From)
	if before.IsZero() {
		before = core.Forever
	}
	var all []core.Run
	for k, r := range s.runs {
		if k.ScheduleID == schedule && r.TenantID == tenant && k.Slot.Before(before) && !k.Slot.Before(from) {
			all = append(all, r.Run)
		}
	}
	slices.SortFunc(all, func(a, b core.Run) int { return b.Key.Slot.Compare(a.Key.Slot) })
	var page core.RunPage
	for i, r := range all {
		wanted := len(q.States) == 0 || slices.Contains(q.States, r.State)
		if i == core.ScanLimit || wanted && len(page.Items) == q.Limit {
			page.More = true
			break
		}
		if wanted {
			r.Payload = nil
			page.Items = append(page.Items, r)
		}
		page.Last = r.Key.Slot
	}
	return page, nil
}

// SlotRow implements core.ScheduleStore.
func (s *Store) SlotRow(ctx context.Context, tenant, schedule uuid.UUID, from time.Time) (*core.Run, error) {
	if _, err := s.begin(ctx, "read slot row"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var first *core.Run
	for k, r := range s.runs {
		if k.ScheduleID != schedule || r.TenantID != tenant || k.Slot.Before(from) || r.Cause != core.CauseSchedule && r.Cause != core.CauseCatchUp {
			continue
		}
		if first == nil || k.Slot.Before(first.Key.Slot) {
			found := r.Run
			found.Payload, found.Result = nil, nil
			first = &found
		}
	}
	return first, nil
}
