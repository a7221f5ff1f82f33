package client

import (
	"context"
	"net/http"

	"github.com/fencepost/fencepost/core/api"
)

// Calendars returns all calendars of the tenant, in the order of their names.
func (c *Client) Calendars(ctx context.Context) ([]api.Calendar, error) {
	var found api.List[api.Calendar]
	err := c.do(ctx, http.MethodGet, "/v1/calendars", nil, &found)
	return found.Items, err
}

// Calendar returns one calendar; a refusal of code not_found if there is none.
func (c *Client) Calendar(ctx context.Context, name string) (api.Calendar, error) {
	var k api.Calendar
	return k, c.do(ctx, http.MethodGet, calendarPath(name), nil, &k)
}

// PutCalendar creates or replaces the calendar of this name and says which. Body is
// an api.CalendarInput, or its JSON. A dry run stores nothing. Putting the same
// again changes nothing.
func (c *Client) PutCalendar(ctx context.Context, name string, body any, dryRun bool) (api.CalendarResult, error) {
	path := calendarPath(name)
	if dryRun {
		path += "?dry_run=true"
	}
	var r api.CalendarResult
	return r, c.do(ctx, http.MethodPut, path, body, &r)
}

// DeleteCalendar deletes a calendar; a refusal of code calendar_in_use while a
// schedule names it.
func (c *Client) DeleteCalendar(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, calendarPath(name), nil, nil)
}

func calendarPath(name string) string { return "/v1/calendars/" + escape(name) }
