package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/calendar"
)

// ErrCalendarInUse answers the deletion of a calendar that schedules name.
var ErrCalendarInUse = &core.Error{Code: core.CodeConflict, Kind: "calendar_in_use", Message: "schedules name this calendar"}

// errNoCalendar answers what is about a calendar that does not exist.
var errNoCalendar = &core.Error{Code: core.CodeNotFound, Kind: "not_found", Message: "no such calendar"}

// Calendars returns the calendars of a tenant, in the order of their names.
func (s *Service) Calendars(ctx context.Context, tenant uuid.UUID) ([]core.Calendar, error) {
	all, err := s.store.Calendars(ctx, tenant, nil)
	if err != nil {
		return nil, fmt.Errorf("list calendars: %w", err)
	}
	return all, nil
}

// Calendar returns one calendar; core.ErrNotFound.
func (s *Service) Calendar(ctx context.Context, tenant uuid.UUID, name string) (core.Calendar, error) {
	if calendar.CheckName("name", name) != nil {
		return core.Calendar{}, errNoCalendar
	}
	found, err := s.store.Calendars(ctx, tenant, []string{name})
	switch {
	case err != nil:
		return core.Calendar{}, fmt.Errorf("get calendar: %w", err)
	case len(found) == 0:
		return core.Calendar{}, errNoCalendar
	}
	return found[0], nil
}

// PutCalendar makes the calendar of a name what is given, whether it exists or not.
// Equal content makes no version. When it returns, no slot is claimed any more by
// what was closed before. It may be sent again. A dry run stores nothing and returns
// what would be there.
func (s *Service) PutCalendar(ctx context.Context, tenant uuid.UUID, name string, content core.CalendarContent, dryRun bool) (core.Calendar, Outcome, error) {
	if err := calendar.CheckName("name", name); err != nil {
		return core.Calendar{}, "", err
	}
	if _, err := calendar.New(name, content); err != nil {
		return core.Calendar{}, "", err
	}
	c, outcome, err := s.storeCalendar(ctx, tenant, name, content, dryRun)
	switch {
	case err != nil:
		return core.Calendar{}, "", fmt.Errorf("put calendar: %w", err)
	case dryRun:
		return c, outcome, nil
	}
	// Unchanged content may be that of a request which broke off here.
	if err := s.raiseFences(ctx, tenant, name); err != nil {
		return core.Calendar{}, "", fmt.Errorf("put calendar: %w", err)
	}
	return c, outcome, nil
}

func (s *Service) storeCalendar(ctx context.Context, tenant uuid.UUID, name string, content core.CalendarContent, dryRun bool) (core.Calendar, Outcome, error) {
	for range maxRounds {
		cur, err := s.Calendar(ctx, tenant, name)
		outcome := Replaced
		switch {
		case err == nil:
			if sameCalendar(cur.CalendarContent, content) {
				outcome = Unchanged
			}
			err = s.match.meets(cur.Version, outcome == Unchanged)
		case errors.Is(err, errNoCalendar):
			outcome, err = Created, s.checkNewCalendar(ctx, tenant)
		}
		if err != nil || outcome == Unchanged {
			return cur, outcome, err
		}
		next := core.Calendar{TenantID: tenant, Name: name, CalendarContent: content}
		if dryRun {
			next.Version, next.CreatedAt, next.UpdatedAt = cur.Version+1, cur.CreatedAt, cur.UpdatedAt
			return next, outcome, nil
		}
		made, err := s.store.PutCalendar(ctx, next, cur.Version)
		switch {
		case err == nil:
			return made, outcome, nil
		case !errors.Is(err, core.ErrChanged) && !errors.Is(err, core.ErrUnknownOutcome): // the next look tells
			return cur, "", refusedCalendar(err)
		}
	}
	return core.Calendar{}, "", core.ErrChanged
}

// refusedCalendar says in the user's terms that the database did not take a value.
func refusedCalendar(err error) error {
	if errors.Is(err, core.ErrBadRow) {
		return core.Invalid("note", "holds a value that the database cannot store")
	}
	return err
}

func (s *Service) checkNewCalendar(ctx context.Context, tenant uuid.UUID) error {
	if s.match.Exists || s.match.Set {
		return &core.Error{Code: core.CodePrecondition, Kind: "version_mismatch", Field: "If-Match", Message: "there is no calendar of this name"}
	}
	all, err := s.Calendars(ctx, tenant)
	if err == nil && len(all) >= core.MaxCalendars {
		return &core.Error{Code: core.CodeConflict, Kind: core.ErrQuotaExceeded.Kind, Message: fmt.Sprintf("the tenant has %d calendars, which is all it may; delete one that no schedule names", len(all))}
	}
	return err
}

// sameCalendar compares contents as they are stored, where empty and missing are
// one.
func sameCalendar(a, b core.CalendarContent) bool {
	weekly := func(x, y core.ClosedWeekly) bool {
		return x.From == y.From && x.To == y.To && slices.Equal(x.Days, y.Days)
	}
	return a.TimeZone == b.TimeZone && a.Note == b.Note && slices.Equal(a.Dates, b.Dates) && slices.Equal(a.Ranges, b.Ranges) &&
		slices.EqualFunc(a.Weekly, b.Weekly, weekly)
}

// raiseFences makes void what was planned under a calendar as it was. It ends: each
// step begins behind the one before.
func (s *Service) raiseFences(ctx context.Context, tenant uuid.UUID, name string) error {
	after, failed := uuid.Nil, 0
	for {
		last, err := s.store.RaiseFences(ctx, tenant, name, after)
		switch {
		case err != nil && failed < 3 && errors.Is(err, core.ErrUnknownOutcome):
			failed++
		case err != nil:
			return err
		case last == uuid.Nil:
			return nil
		default:
			after, failed = last, 0
		}
	}
}

// DeleteCalendar removes a calendar; core.ErrNotFound, and ErrCalendarInUse while a
// schedule names it.
func (s *Service) DeleteCalendar(ctx context.Context, tenant uuid.UUID, name string) error {
	unknown := false
	for range maxRounds {
		cur, err := s.Calendar(ctx, tenant, name)
		if unknown && errors.Is(err, errNoCalendar) {
			return nil
		}
		if err == nil {
			err = s.match.meets(cur.Version, false)
		}
		if err == nil {
			err = s.checkUnused(ctx, tenant, name)
		}
		if err != nil {
			return fmt.Errorf("delete calendar: %w", err)
		}
		err = s.store.DeleteCalendar(ctx, tenant, name, cur.Version)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, core.ErrUnknownOutcome):
			unknown = true
		case !errors.Is(err, core.ErrChanged):
			return fmt.Errorf("delete calendar: %w", err)
		}
	}
	return fmt.Errorf("delete calendar: %w", core.ErrChanged)
}

// countUsers is where counting the schedules that name a calendar stops.
const countUsers = 1000

func (s *Service) checkUnused(ctx context.Context, tenant uuid.UUID, name string) error {
	n, err := s.store.CalendarUsers(ctx, tenant, name, countUsers)
	if err != nil || n == 0 {
		return err
	}
	users := fmt.Sprintf("%d schedules name", n)
	switch n {
	case 1:
		users = "1 schedule names"
	case countUsers:
		users = "at least " + users
	}
	used := *ErrCalendarInUse
	used.Message = users + " this calendar; take it from calendars there first"
	return &used
}

// checkCalendars refuses fields that name calendars which do not exist. Its result
// is by index; the error is that of the look-up.
func (s *Service) checkCalendars(ctx context.Context, tenant uuid.UUID, all ...Fields) ([]error, error) {
	var names []string
	for _, f := range all {
		if f.Calendars != nil {
			names = append(names, *f.Calendars...)
		}
	}
	wrong := make([]error, len(all))
	if len(names) == 0 {
		return wrong, nil
	}
	slices.Sort(names)
	found, err := s.store.Calendars(ctx, tenant, slices.Compact(names))
	if err != nil {
		return nil, fmt.Errorf("look up calendars: %w", err)
	}
	for i, f := range all {
		if f.Calendars == nil {
			continue
		}
		for n, name := range *f.Calendars {
			if !slices.ContainsFunc(found, func(c core.Calendar) bool { return c.Name == name }) {
				wrong[i] = core.Invalid(fmt.Sprintf("calendars[%d]", n), "is not a calendar of yours; make it first, with PUT /v1/calendars/{name}")
				break
			}
		}
	}
	return wrong, nil
}

// fill gives schedules that were planned and not stored the calendars that they
// name.
func (s *Service) fill(ctx context.Context, tenant uuid.UUID, all ...*core.Scheduled) error {
	var names []string
	for _, cur := range all {
		names = append(names, cur.Schedule.Rules.Calendars...)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	found, err := s.store.Calendars(ctx, tenant, slices.Compact(names))
	if err != nil {
		return fmt.Errorf("look up calendars: %w", err)
	}
	for _, cur := range all {
		cur.Calendars = nil
		for _, c := range found {
			if closing, err := calendar.New(c.Name, c.CalendarContent); err == nil && slices.Contains(cur.Schedule.Rules.Calendars, c.Name) {
				cur.Calendars = append(cur.Calendars, closing)
			}
		}
	}
	return nil
}

// checkCalendar is checkCalendars for one.
func (s *Service) checkCalendar(ctx context.Context, tenant uuid.UUID, f Fields) error {
	wrong, err := s.checkCalendars(ctx, tenant, f)
	if err != nil {
		return err
	}
	return wrong[0]
}

// setCalendars copies the names of calendars in the one form that they have.
func setCalendars(from *[]string, to *core.Rules) error {
	if from == nil {
		return nil
	}
	if len(*from) > core.MaxCalendarsOfSchedule {
		return core.Invalid("calendars", "has more than %d members", core.MaxCalendarsOfSchedule)
	}
	for i, name := range *from {
		if err := calendar.CheckName(fmt.Sprintf("calendars[%d]", i), name); err != nil {
			return err
		}
	}
	to.Calendars = nil
	if names := slices.Compact(slices.Sorted(slices.Values(*from))); len(names) > 0 {
		to.Calendars = names
	}
	return nil
}

// named returns the items that name no calendar which does not exist; the others
// have their results.
func (m *many) named(ctx context.Context, items []*item) ([]*item, error) {
	fields := make([]Fields, len(items))
	for i, it := range items {
		fields[i] = it.fields
	}
	if m.o.DryRun {
		return items, nil // they may be made before it is done
	}
	wrong, err := m.checkCalendars(ctx, m.tenant, fields...)
	if err != nil {
		return items, err
	}
	var left []*item
	for i, it := range items {
		if wrong[i] != nil {
			m.results[it.index] = Result{Err: wrong[i]}
			continue
		}
		left = append(left, it)
	}
	return left, nil
}

// fill gives what was not stored the calendars that it names.
func (m *many) fill(ctx context.Context) {
	var all []*core.Scheduled
	for i := range m.results {
		if m.results[i].Err == nil {
			all = append(all, &m.results[i].Scheduled)
		}
	}
	if err := m.Service.fill(ctx, m.tenant, all...); err != nil {
		for i := range m.results {
			m.results[i] = Result{Err: err}
		}
	}
}
