package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/fencepost/fencepost/core/api"
)

// Named returns the schedule with this name; a refusal of code not_found if there
// is none.
func (c *Client) Named(ctx context.Context, name string) (api.Schedule, error) {
	var s api.Schedule
	return s, c.do(ctx, http.MethodGet, namedPath(name), nil, &s)
}

// Put creates or replaces the schedule of this name and says which; fields that in
// leaves out get their defaults, except Paused. A dry run stores nothing and
// returns what would be stored. Putting the same again changes nothing.
func (c *Client) Put(ctx context.Context, name string, in api.ScheduleInput, dryRun bool) (api.PutResult, error) {
	return c.PutVersion(ctx, name, 0, in, dryRun)
}

// PutVersion is Put, if the schedule still has this version; else a refusal of code
// version_mismatch. Zero is any version, or none.
func (c *Client) PutVersion(ctx context.Context, name string, version int64, in api.ScheduleInput, dryRun bool) (api.PutResult, error) {
	body, err := encode(in)
	if err != nil {
		return api.PutResult{}, err
	}
	return c.putJSON(ctx, name, version, body, dryRun)
}

// PutJSON is Put with a body that is JSON already.
func (c *Client) PutJSON(ctx context.Context, name string, body json.RawMessage, dryRun bool) (api.PutResult, error) {
	return c.putJSON(ctx, name, 0, body, dryRun)
}

func (c *Client) putJSON(ctx context.Context, name string, version int64, body json.RawMessage, dryRun bool) (api.PutResult, error) {
	path := namedPath(name)
	if dryRun {
		path += "?dry_run=true"
	}
	var r api.PutResult
	return r, c.doIf(ctx, version, http.MethodPut, path, body, &r)
}

// Batch creates or puts up to 1,000 schedules of at most 8 MiB; the answer has the
// outcome of each, in order. An error means that nothing is known of any of them,
// save that mode put may be sent again.
func (c *Client) Batch(ctx context.Context, in api.BatchInput) (api.BatchResult, error) {
	var r api.BatchResult
	return r, c.do(ctx, http.MethodPost, "/v1/schedules/batch", in, &r)
}

func namedPath(name string) string { return "/v1/schedules/by-name/" + escape(name) }

// escape returns a name as a part of a path. Dots are encoded too: a name such as ..
// would otherwise lead elsewhere.
func escape(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") }

// encode returns a body without the escapes that are for HTML: they would make a
// payload up to six times as long as the API counts it.
func encode(in any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(in); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
