package core

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// The bounds of calendars.
const (
	// MaxCalendars bounds the calendars of a tenant, MaxCalendarsOfSchedule those
	// that one schedule names.
	MaxCalendars           = 500
	MaxCalendarsOfSchedule = 10
)

// Calendar is a named set of closed times: a slot in one of them is recorded
// instead of run, for every schedule that names the calendar. Times are those of
// the zone's clocks. core/calendar reads and judges it.
type Calendar struct {
	TenantID uuid.UUID
	Name     string
	CalendarContent
	// Version rises with every change, from 1.
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// CalendarContent is what a user sets of a calendar, and the form in which it is
// stored. The zero value is never closed.
type CalendarContent struct {
	TimeZone string `json:"time_zone,omitempty"` // IANA name; empty is UTC
	Note     string `json:"note,omitempty"`      // for people
	// Dates are whole days, such as 2026-12-25.
	Dates []string `json:"dates,omitempty"`
	// Ranges begin with From. A To that is a date is closed as a whole, at one
	// with a time of day the range has ended.
	Ranges []ClosedRange  `json:"ranges,omitempty"`
	Weekly []ClosedWeekly `json:"weekly,omitempty"`
}

// ClosedRange is closed from a date, or a date and time, to another.
type ClosedRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// ClosedWeekly is closed on each of the days, sun to sat, from a time of day to
// another one, which is the next day's if it is not later. Empty times are the
// beginning and the end of the day.
type ClosedWeekly struct {
	Days []string `json:"days"`
	From string   `json:"from,omitempty"`
	To   string   `json:"to,omitempty"`
}

// Closing is a calendar that can be asked. Values are immutable and safe for
// concurrent use.
type Closing interface {
	// Name returns the calendar's name.
	Name() string
	// Closed reports whether t is in a closed time, and until when that answer
	// holds at least; the zero time is for ever.
	Closed(t time.Time) (closed bool, until time.Time)
}

// CalendarStore keeps calendars. Methods obey what is said of all stores.
type CalendarStore interface {
	// Calendars returns those of the named calendars of a tenant that exist, in
	// the order of their names; nil names are all.
	Calendars(ctx context.Context, tenant uuid.UUID, names []string) ([]Calendar, error)
	// PutCalendar makes a calendar that does not exist, of version 1, if expected
	// is 0, and replaces the one of the expected version otherwise. ErrChanged if
	// there is none of that version.
	PutCalendar(ctx context.Context, c Calendar, expected int64) (Calendar, error)
	// DeleteCalendar removes a calendar of the expected version; ErrChanged if
	// there is none, or if a schedule names it.
	DeleteCalendar(ctx context.Context, tenant uuid.UUID, name string, expected int64) error
	// RaiseFences raises the fences of the timers that are due within CalendarReach
	// and whose schedules name a calendar, so that what was planned for them is
	// void. It looks at up to 1,000 of these schedules, in the order of their ids,
	// from behind after on, and returns the last one; uuid.Nil if there was none.
	// It may be sent again.
	RaiseFences(ctx context.Context, tenant uuid.UUID, name string, after uuid.UUID) (uuid.UUID, error)
	// CalendarUsers returns how many schedules name a calendar, and stops at most,
	// which is 1,000 or less.
	CalendarUsers(ctx context.Context, tenant uuid.UUID, name string, most int) (int, error)
}

// CalendarReach is how far ahead of its time a timer may have been planned under
// a calendar that has changed since: longer than claimers hold timers.
const CalendarReach = 5 * time.Minute

// ErrCalendarQuota answers one calendar more than a tenant may have.
var ErrCalendarQuota = &Error{Code: CodeConflict, Kind: "quota_exceeded", Message: "the tenant has as many calendars as it may; delete one that no schedule names"}
