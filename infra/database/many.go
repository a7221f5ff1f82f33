package database

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fencepost/fencepost/core"
)

// CreateMany implements core.ScheduleStore.
func (d *DB) CreateMany(ctx context.Context, tenant uuid.UUID, all []core.NewSchedule) ([]uuid.UUID, error) {
	type row struct{ ScheduleID uuid.UUID }
	made, err := query[row](ctx, d, "create_schedules", append([]any{d.region, pgID(tenant)}, newColumns(all)...)...)
	if err != nil {
		return nil, err
	}
	return each(made, func(r row) uuid.UUID { return r.ScheduleID }), nil
}

// newColumns returns new schedules as the arrays that create_schedules takes.
func newColumns(all []core.NewSchedule) []any {
	text := func(of func(*core.Schedule) string) []string {
		return each(all, func(n core.NewSchedule) string { return of(&n.Schedule) })
	}
	return []any{
		each(all, func(n core.NewSchedule) pgtype.UUID { return pgID(n.Schedule.ID) }),
		text(func(s *core.Schedule) string { return s.Name }),
		text(func(s *core.Schedule) string { return s.Spec }),
		text(func(s *core.Schedule) string { return s.TimeZone }),
		each(all, func(n core.NewSchedule) *time.Time { return nullTime(n.Schedule.Anchor) }),
		text(func(s *core.Schedule) string { return s.Job.Queue }),
		text(func(s *core.Schedule) string { return string(s.Job.Payload) }),
		text(func(s *core.Schedule) string { return string(s.Misfire) }),
		each(all, func(n core.NewSchedule) time.Duration { return n.Schedule.MisfireGrace }),
		text(func(s *core.Schedule) string { return string(s.Overlap) }),
		each(all, func(n core.NewSchedule) time.Duration { return n.Schedule.Window }),
		each(all, func(n core.NewSchedule) time.Duration { return n.Schedule.Timeout }),
		each(all, func(n core.NewSchedule) int32 { return int32(n.Schedule.MaxAttempts) }),
		each(all, func(n core.NewSchedule) bool { return n.Schedule.Paused }),
		each(all, func(n core.NewSchedule) *string { return nullText(n.Schedule.DSTGap) }),
		each(all, func(n core.NewSchedule) *string { return nullText(n.Schedule.DSTOverlap) }),
		each(all, func(n core.NewSchedule) bool { return n.Schedule.Exact }),
		each(all, func(n core.NewSchedule) *time.Duration { return nullDuration(n.Schedule.CatchUpWithin) }),
		each(all, func(n core.NewSchedule) int16 { return core.ShardOf(n.Schedule.ID) }),
		each(all, func(n core.NewSchedule) time.Time { return n.NextAt }),
		each(all, func(n core.NewSchedule) time.Time { return n.Done }),
		text(func(s *core.Schedule) string { return writeLabels(s.Labels) }),
		text(func(s *core.Schedule) string { return rulesText(s.Rules) }),
		each(all, func(n core.NewSchedule) *int64 { return n.Schedule.FirstRunsLeft() }),
	}
}

// CountSchedules implements core.ScheduleStore.
func (d *DB) CountSchedules(ctx context.Context, tenant uuid.UUID, most int) (int, error) {
	type row struct{ N int64 }
	rows, err := query[row](ctx, d, "count_schedules", d.region, pgID(tenant), most)
	if err != nil {
		return 0, err
	}
	return int(rows[0].N), nil
}

// Named implements core.ScheduleStore.
func (d *DB) Named(ctx context.Context, tenant uuid.UUID, names []string) ([]core.Scheduled, error) {
	rows, err := query[scheduleRow](ctx, d, "named_schedules", d.region, pgID(tenant), names)
	if err != nil {
		return nil, err
	}
	found := each(rows, func(r scheduleRow) core.Scheduled { return d.whole(&r) })
	return found, d.closings(ctx, found)
}
