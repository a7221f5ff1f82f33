package memory

import (
	"bytes"
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
		since := r.WakeAt
		if r.State == core.RunQueued {
			since = cmp.Or(r.queuedAt, r.CreatedAt)
		}
		if r.TenantID == tenant && !r.State.Final() && since.Before(late) {
			add(kind{r.State, r.Queue}, since)
		}
	}
	var out []core.Overdue
	for _, o := range found {
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b core.Overdue) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(cmp.Or(a.State, "due"), cmp.Or(b.State, "due")), cmp.Compare(a.Queue, b.Queue))
	})
	return out[:min(len(out), 100)], nil
}

// Alerts implements core.ScheduleStore.
func (s *Store) Alerts(ctx context.Context, tenant uuid.UUID) ([]core.Alert, error) {
	if _, err := s.begin(ctx, "look for alerts"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []core.Alert
	for id, a := range s.alerts {
		t, ok := s.timers[id]
		if ok && t.TenantID == tenant && t.FireAt.Equal(a.OpenedAt.Add(parkedBy)) {
			a.Name = s.schedules[id].Name
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b core.Alert) int { return bytes.Compare(a.ScheduleID[:], b.ScheduleID[:]) })
	return out[:min(len(out), 100)], nil
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
