package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Overdue implements core.ScheduleStore.
func (s *Store) Overdue(ctx context.Context, tenant uuid.UUID) ([]core.Overdue, error) {
	now, err := s.begin(ctx, "look for what is overdue")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	type kind struct {
		state core.RunState
		queue string
	}
	found := map[kind]*core.Overdue{}
	add := func(k kind, since time.Time) {
		if found[k] == nil {
			found[k] = &core.Overdue{State: k.state, Queue: k.queue, Since: since}
		}
		found[k].Count++
		if since.Before(found[k].Since) {
			found[k].Since = since
		}
	}
	late := now.Add(-time.Minute)
	for _, t := range s.timers {
		if t.TenantID == tenant && t.FireAt.Before(late) {
			add(kind{}, t.FireAt)
		}
	}
	for _, r := range s.runs {
		if r.TenantID == tenant && !r.State.Final() && r.WakeAt.Before(late) {
			add(kind{r.State, r.Queue}, cmp.Or(r.queuedAt, r.CreatedAt))
		}
	}
	var out []core.Overdue
	for _, o := range found {
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b core.Overdue) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.State, "due"), cmp.Or(b.State, "due")), cmp.Compare(a.Queue, b.Queue))
	})
	return out, nil
}

// Completed implements core.ScheduleStore.
func (s *Store) Completed(ctx context.Context) ([]core.ScheduleRef, error) {
	now, err := s.begin(ctx, "look for what is completed")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	alive := map[uuid.UUID]bool{}
	for k, r := range s.runs {
		if !r.State.Final() {
			alive[k.ScheduleID] = true
		}
	}
	var out []core.ScheduleRef
	for id, t := range s.timers {
		if !t.purgeAt.IsZero() && !t.purgeAt.After(now) && !alive[id] && len(out) < 100 {
			out = append(out, core.ScheduleRef{TenantID: t.TenantID, ID: id})
		}
	}
	return out, nil
}
