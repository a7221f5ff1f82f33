package database

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// List implements core.ScheduleStore.
func (d *DB) List(ctx context.Context, tenant uuid.UUID, q core.ScheduleQuery) (core.SchedulePage, error) {
	if filters(&q) {
		return d.filterSchedules(ctx, tenant, q)
	}
	rows, err := query[scheduleRow](ctx, d, "list_schedules", d.region, pgID(tenant), pgID(q.After), q.Limit+1)
	if err != nil {
		return core.SchedulePage{}, err
	}
	page := core.SchedulePage{Items: each(rows[:min(len(rows), q.Limit)], func(r scheduleRow) core.Scheduled { return d.whole(&r) })}
	if len(rows) > q.Limit {
		page.More, page.Last = true, page.Items[q.Limit-1].Schedule.ID
	}
	return page, d.closings(ctx, page.Items)
}

func filters(q *core.ScheduleQuery) bool {
	l := &q.Labels
	return len(q.States) > 0 || q.Queue != "" || q.NamePrefix != "" || len(l.Equal)+len(l.Differ)+len(l.Has)+len(l.HasNot) > 0
}

// filterSchedules finds the ids first: what one call looks at is much more than
// what it returns.
func (d *DB) filterSchedules(ctx context.Context, tenant uuid.UUID, q core.ScheduleQuery) (core.SchedulePage, error) {
	type row struct {
		ID   uuid.UUID
		Edge bool
	}
	var states []string
	for _, s := range q.States {
		states = append(states, string(s))
	}
	l := &q.Labels
	found, err := query[row](ctx, d, "filter_schedules", d.region, pgID(tenant), pgID(q.After), q.Limit+1, states, q.Queue, q.NamePrefix,
		writeLabels(l.Equal), each(l.Differ, func(p core.Label) string { return writeLabels(map[string]string{p.Key: p.Value}) }),
		nonNil(l.Has), nonNil(l.HasNot))
	if err != nil {
		return core.SchedulePage{}, err
	}
	var page core.SchedulePage
	var ids []uuid.UUID
	for _, r := range found {
		if r.Edge {
			page.More, page.Last = true, r.ID
		} else {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) > q.Limit {
		ids = ids[:q.Limit]
		page.More, page.Last = true, ids[q.Limit-1]
	}
	if len(ids) == 0 {
		return page, nil
	}
	rows, err := query[scheduleRow](ctx, d, "schedules_by_id", d.region, pgID(tenant), each(ids, pgID))
	if err != nil {
		return core.SchedulePage{}, err
	}
	for i := range rows {
		// It may have changed since it was found.
		if found := d.whole(&rows[i]); q.Chooses(&found) {
			page.Items = append(page.Items, found)
		}
	}
	return page, d.closings(ctx, page.Items)
}

// nonNil returns texts as an array that is not NULL.
func nonNil(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

// Runs implements core.ScheduleStore.
func (d *DB) Runs(ctx context.Context, tenant, schedule uuid.UUID, q core.RunQuery) (core.RunPage, error) {
	if q.Before.IsZero() {
		q.Before = core.Forever
	}
	if q.From.IsZero() {
		q.From = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC) // before any slot
	}
	if len(q.States) > 0 {
		return d.filterRuns(ctx, tenant, schedule, q)
	}
	rows, err := query[runRow](ctx, d, "list_runs", d.region, pgID(tenant), pgID(schedule), q.Before, q.Limit+1, q.From)
	if err != nil {
		return core.RunPage{}, err
	}
	page := core.RunPage{Items: each(rows[:min(len(rows), q.Limit)], d.run)}
	if len(rows) > q.Limit {
		page.More, page.Last = true, page.Items[q.Limit-1].Key.Slot
	}
	return page, nil
}

// SlotRow implements core.ScheduleStore.
func (d *DB) SlotRow(ctx context.Context, tenant, schedule uuid.UUID, from time.Time) (*core.Run, error) {
	rows, err := query[runRow](ctx, d, "slot_row", d.region, pgID(tenant), pgID(schedule), from)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	run := d.run(rows[0])
	return &run, nil
}

func (d *DB) filterRuns(ctx context.Context, tenant, schedule uuid.UUID, q core.RunQuery) (core.RunPage, error) {
	type row struct {
		ScheduledFor time.Time
		Edge         bool
	}
	found, err := query[row](ctx, d, "filter_runs", d.region, pgID(tenant), pgID(schedule), q.From, q.Before,
		each(q.States, func(s core.RunState) string { return string(s) }), q.Limit+1)
	if err != nil {
		return core.RunPage{}, err
	}
	var page core.RunPage
	var slots []time.Time
	for _, r := range found {
		if r.Edge {
			page.More, page.Last = true, r.ScheduledFor.UTC()
		} else {
			slots = append(slots, r.ScheduledFor)
		}
	}
	if len(slots) > q.Limit {
		slots = slots[:q.Limit]
		page.More, page.Last = true, slots[q.Limit-1].UTC()
	}
	if len(slots) == 0 {
		return page, nil
	}
	rows, err := query[runRow](ctx, d, "runs_by_slot", d.region, pgID(tenant), pgID(schedule), slots)
	if err != nil {
		return core.RunPage{}, err
	}
	for _, r := range rows {
		// It may have changed since it was found.
		if found := d.run(r); slices.Contains(q.States, found.State) {
			page.Items = append(page.Items, found)
		}
	}
	slices.SortFunc(page.Items, func(a, b core.Run) int { return b.Key.Slot.Compare(a.Key.Slot) })
	return page, nil
}
