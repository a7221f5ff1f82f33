package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// Page says which part of a list is asked for. The zero value is the first 100
// items.
type Page struct {
	Limit  int    // up to 1,000; zero is the API's default
	Cursor string // the NextCursor of the page before, with the same filters
}

// ScheduleFilter chooses schedules. A zero field chooses all.
type ScheduleFilter struct {
	States     []string // active, paused, completed
	Queue      string
	Name       string
	NamePrefix string
	Labels     string // conditions such as team=payments,env!=test,owner,!legacy
}

// Schedules returns a page of schedules, oldest first. It may be short, even
// empty, although NextCursor says that there are more.
func (c *Client) Schedules(ctx context.Context, f ScheduleFilter, p Page) (api.List[api.Schedule], error) {
	var found api.List[api.Schedule]
	return found, c.do(ctx, http.MethodGet, "/v1/schedules"+p.query(map[string]string{
		"state": strings.Join(f.States, ","), "queue": f.Queue, "name": f.Name, "name_prefix": f.NamePrefix, "labels": f.Labels,
	}), nil, &found)
}

// AllSchedules yields every schedule that the filter chooses, page by page, and
// ends with the first error.
func (c *Client) AllSchedules(ctx context.Context, f ScheduleFilter) iter.Seq2[api.Schedule, error] {
	return func(yield func(api.Schedule, error) bool) {
		p := Page{Limit: pageLimit}
		for range maxPages {
			found, err := c.Schedules(ctx, f, p)
			if err != nil {
				yield(api.Schedule{}, err)
				return
			}
			for _, s := range found.Items {
				if !yield(s, nil) {
					return
				}
			}
			if found.NextCursor == nil {
				return
			}
			p.Cursor = *found.NextCursor
		}
		yield(api.Schedule{}, fmt.Errorf("list schedules: more than %d pages", maxPages))
	}
}

// Find returns the schedule with this id or, if there is none, with this name.
func (c *Client) Find(ctx context.Context, idOrName string) (api.Schedule, error) {
	if id, err := uuid.Parse(idOrName); err == nil && id.String() == idOrName {
		s, err := c.Schedule(ctx, idOrName)
		if !IsCode(err, core.ErrNotFound.Kind) {
			return s, err
		}
	}
	found, err := c.Schedules(ctx, ScheduleFilter{Name: idOrName}, Page{Limit: 1})
	switch {
	case err != nil:
		return api.Schedule{}, err
	case len(found.Items) == 0 || idOrName == "":
		return api.Schedule{}, fmt.Errorf("no schedule has the id or name %q", idOrName)
	}
	return found.Items[0], nil
}

// RunFilter chooses runs. A zero field chooses all.
type RunFilter struct {
	States []string  // queued, running, retrying, succeeded, dead, skipped, canceled
	From   time.Time // slots not before this
	To     time.Time // slots before this
}

// Runs returns a page of a schedule's runs, newest slot first. It may be short,
// even empty, although NextCursor says that there are more.
func (c *Client) Runs(ctx context.Context, schedule string, f RunFilter, p Page) (api.List[api.Run], error) {
	var found api.List[api.Run]
	return found, c.do(ctx, http.MethodGet, "/v1/schedules/"+url.PathEscape(schedule)+"/runs"+p.query(map[string]string{
		"state": strings.Join(f.States, ","), "from": formatTime(f.From), "to": formatTime(f.To),
	}), nil, &found)
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// query returns the query string of a page with the filters that are set.
func (p Page) query(filters map[string]string) string {
	values := url.Values{}
	for name, value := range filters {
		if value != "" {
			values.Set(name, value)
		}
	}
	if p.Limit != 0 {
		values.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		values.Set("cursor", p.Cursor)
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}
