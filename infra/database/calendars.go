package database

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/calendar"
)

type calendarRow struct {
	TenantID  uuid.UUID
	Name      string
	Content   []byte
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

func (r *calendarRow) calendar() (core.Calendar, error) {
	c := core.Calendar{TenantID: r.TenantID, Name: r.Name, Version: r.Version, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC()}
	if err := json.Unmarshal(r.Content, &c.CalendarContent); err != nil {
		return c, fmt.Errorf("read calendar %s: %w", r.Name, err)
	}
	return c, nil
}

// calendars runs a statement that returns calendars.
func (d *DB) calendars(ctx context.Context, name string, args ...any) ([]core.Calendar, error) {
	rows, err := query[calendarRow](ctx, d, name, args...)
	if err != nil {
		return nil, err
	}
	out := make([]core.Calendar, len(rows))
	for i := range rows {
		if out[i], err = rows[i].calendar(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Calendars implements core.CalendarStore.
func (d *DB) Calendars(ctx context.Context, tenant uuid.UUID, names []string) ([]core.Calendar, error) {
	if names == nil {
		return d.calendars(ctx, "list_calendars", d.region, pgID(tenant))
	}
	return d.calendars(ctx, "calendars_of", d.region, each(names, func(string) pgtype.UUID { return pgID(tenant) }), names)
}

// PutCalendar implements core.CalendarStore.
func (d *DB) PutCalendar(ctx context.Context, c core.Calendar, expected int64) (core.Calendar, error) {
	content, err := json.Marshal(c.CalendarContent)
	if err != nil {
		return core.Calendar{}, fmt.Errorf("write calendar: %w", err)
	}
	args := []any{d.region, pgID(c.TenantID), c.Name, string(content)}
	var made []core.Calendar
	if expected == 0 {
		made, err = d.calendars(ctx, "create_calendar", args...)
	} else {
		made, err = d.calendars(ctx, "replace_calendar", append(args, expected)...)
	}
	switch {
	case err != nil:
		return core.Calendar{}, err
	case len(made) == 0:
		return core.Calendar{}, core.ErrChanged
	}
	return made[0], nil
}

// DeleteCalendar implements core.CalendarStore.
func (d *DB) DeleteCalendar(ctx context.Context, tenant uuid.UUID, name string, expected int64) error {
	type row struct{ Name string }
	gone, err := query[row](ctx, d, "delete_calendar", d.region, pgID(tenant), name, expected)
	if err == nil && len(gone) == 0 {
		return core.ErrChanged
	}
	return err
}

// CalendarUsers implements core.CalendarStore.
func (d *DB) CalendarUsers(ctx context.Context, tenant uuid.UUID, name string, most int) (int, error) {
	type row struct{ N int64 }
	rows, err := query[row](ctx, d, "calendar_users", d.region, pgID(tenant), name, most)
	if err != nil {
		return 0, err
	}
	return int(rows[0].N), nil
}

// RaiseFences implements core.CalendarStore.
func (d *DB) RaiseFences(ctx context.Context, tenant uuid.UUID, name string, after uuid.UUID) (uuid.UUID, error) {
	type row struct{ ID uuid.UUID }
	rows, err := query[row](ctx, d, "raise_fences", d.region, pgID(tenant), name, pgID(after))
	if err != nil || len(rows) == 0 {
		return uuid.Nil, err
	}
	return rows[0].ID, nil
}

// closings reads the calendars that schedules name, if any does, and gives them to
// those; one that cannot be read is left out. It is a statement of its own: what it
// reads may be newer than the schedules, and never older.
func (d *DB) closings(ctx context.Context, all []core.Scheduled) error {
	type key struct {
		tenant uuid.UUID
		name   string
	}
	known := map[key]core.Closing{}
	var tenants []pgtype.UUID
	var names []string
	for i := range all {
		for _, name := range all[i].Schedule.Rules.Calendars {
			k := key{all[i].Schedule.TenantID, name}
			if _, ok := known[k]; !ok {
				known[k] = nil
				tenants, names = append(tenants, pgID(k.tenant)), append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	rows, err := query[calendarRow](ctx, d, "calendars_of", d.region, tenants, names)
	if err != nil {
		return err
	}
	for i := range rows {
		c, err := rows[i].calendar()
		if err != nil {
			continue // as good as missing, for those schedules that name it
		}
		if closing, err := calendar.New(c.Name, c.CalendarContent); err == nil {
			known[key{c.TenantID, c.Name}] = closing
		}
	}
	for i := range all {
		for _, name := range all[i].Schedule.Rules.Calendars {
			if c := known[key{all[i].Schedule.TenantID, name}]; c != nil {
				all[i].Calendars = append(all[i].Calendars, c)
			}
		}
	}
	return nil
}
