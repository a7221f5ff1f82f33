// Package client speaks to the HTTP API from Go, and exists so that programs
// and the command line deal in schedules and in errors a person can act upon.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core/api"
)

const (
	// requestTimeout is longer than what the API gives itself, so that its own
	// answer wins.
	requestTimeout = 15 * time.Second
	// maxAnswerBytes holds any page: the API ends one at 4 MiB of payloads.
	maxAnswerBytes = 64 << 20
	pageLimit      = 1000
	// maxPages bounds walks; it is enough for the ten million schedules that
	// the product is made for, with the largest payloads.
	maxPages = 700_000
)

var errRequestTimeout = errors.New("no answer within 15 seconds")

// Client calls one API with one key. It is safe for concurrent use.
//
// A request that got no answer, or one that asks to come again, is sent up to four
// times with growing gaps, each for at most 15 seconds: every request here may be
// sent again, those that make something because they carry an Idempotency-Key,
// which a caller can choose with WithKey.
type Client struct {
	base string
	key  string
	http *http.Client
}

// The variables that name the API and the key to whoever has no other way.
const (
	EnvURL = "FENCEPOST_URL"
	EnvKey = "FENCEPOST_API_KEY"
)

// New returns a client that calls the API at base, such as
// http://127.0.0.1:8080, with an API key. It fails when base is no such URL.
// Redirects are not followed, so that the key stays with that API.
func New(base, key string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errors.New("the URL of the API must look like http://127.0.0.1:8080")
	}
	return &Client{
		base: strings.TrimRight(base, "/"),
		key:  key,
		http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// Schedule returns one schedule by its id; a refusal of code not_found if
// there is none.
func (c *Client) Schedule(ctx context.Context, id string) (api.Schedule, error) {
	var s api.Schedule
	return s, c.do(ctx, http.MethodGet, "/v1/schedules/"+url.PathEscape(id), nil, &s)
}

// Create makes a schedule and returns it as stored.
func (c *Client) Create(ctx context.Context, in api.ScheduleInput) (api.Schedule, error) {
	var s api.Schedule
	return s, c.do(ctx, http.MethodPost, "/v1/schedules", in, &s)
}

// Edit changes the fields of a schedule that in has and returns it. Empty fields
// are left out, and so stay as they are.
func (c *Client) Edit(ctx context.Context, id string, in api.ScheduleInput) (api.Schedule, error) {
	var s api.Schedule
	return s, c.do(ctx, http.MethodPatch, "/v1/schedules/"+url.PathEscape(id), in, &s)
}

// EditVersion changes the fields that body has, if the schedule still has this
// version; else a refusal of code version_mismatch.
func (c *Client) EditVersion(ctx context.Context, id string, version int64, body json.RawMessage) (api.Schedule, error) {
	var s api.Schedule
	return s, c.doIf(ctx, version, http.MethodPatch, "/v1/schedules/"+url.PathEscape(id), body, &s)
}

// Pause pauses a schedule and returns it. Pausing it twice is no error.
func (c *Client) Pause(ctx context.Context, id string) (api.Schedule, error) {
	var s api.Schedule
	return s, c.do(ctx, http.MethodPost, "/v1/schedules/"+url.PathEscape(id)+"/pause", nil, &s)
}

// PauseUntil pauses a schedule until a time, with a note for people, and returns
// it. A zero time is until a resume.
func (c *Client) PauseUntil(ctx context.Context, id string, until time.Time, note string) (api.Schedule, error) {
	in := map[string]string{}
	if !until.IsZero() {
		in["until"] = formatTime(until)
	}
	if note != "" {
		in["note"] = note
	}
	var s api.Schedule
	return s, c.do(ctx, http.MethodPost, "/v1/schedules/"+url.PathEscape(id)+"/pause", in, &s)
}

// Resume resumes a schedule and returns it. Resuming it twice is no error.
func (c *Client) Resume(ctx context.Context, id string) (api.Schedule, error) {
	var s api.Schedule
	return s, c.do(ctx, http.MethodPost, "/v1/schedules/"+url.PathEscape(id)+"/resume", nil, &s)
}

// Delete deletes a schedule and cancels its waiting runs; its history stays.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/schedules/"+url.PathEscape(id), nil, nil)
}

// Trigger runs a schedule at once and returns the run; a refusal of code
// run_live while another one is alive and may not be joined. A payload that is not
// nil replaces the schedule's for this run.
func (c *Client) Trigger(ctx context.Context, id string, payload json.RawMessage) (api.Run, error) {
	var r api.Run
	var in any
	if payload != nil {
		in = map[string]json.RawMessage{"payload": payload}
	}
	return r, c.do(ctx, http.MethodPost, "/v1/schedules/"+url.PathEscape(id)+"/trigger", in, &r)
}

// CancelRun ends a waiting run, or asks a running one to end, and returns it; a
// refusal of code run_final for one that ended otherwise.
func (c *Client) CancelRun(ctx context.Context, id string) (api.Run, error) {
	var r api.Run
	return r, c.do(ctx, http.MethodPost, "/v1/runs/"+url.PathEscape(id)+"/cancel", nil, &r)
}

// Run returns one run with its failed attempts; a refusal of code not_found if
// there is none.
func (c *Client) Run(ctx context.Context, id string) (api.RunDetail, error) {
	var r api.RunDetail
	return r, c.do(ctx, http.MethodGet, "/v1/runs/"+url.PathEscape(id), nil, &r)
}
