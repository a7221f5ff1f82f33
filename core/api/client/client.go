// Package client speaks to the HTTP API from Go, and exists so that programs
// and the command line deal in schedules and in errors a person can act upon.
//
// A request that got no answer, or one that asks to come again, is sent again
// with growing gaps, a few times and within a total time. Every request may be:
// those that make something carry an Idempotency-Key of their own, or the caller's
// (see WithKey), and those that replace or delete say the same thing twice. Only
// CreateKey is sent once, because its answer holds a secret.
//
// What the API refuses is an *Error with the problem that it sent; IsCode tells one
// from another. All other errors mean that there was no answer from Fencepost.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
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

var errRequestTimeout = errors.New("no answer within 15s")

// The variables that name the API and the key to whoever has no other way.
const (
	EnvURL = "FENCEPOST_URL"
	EnvKey = "FENCEPOST_API_KEY"
)

// Config says which API a client calls, and how patiently. URL is required; every
// other zero value has a default.
type Config struct {
	URL string // such as http://127.0.0.1:8080
	Key string // an API key; empty reaches the probes only
	// Tries is how often a request is sent at most. Defaults to 4; 1 never sends
	// again.
	Tries int
	// Patience bounds a call with all its tries and the waits between them.
	// Defaults to 30 s.
	Patience time.Duration
	// HTTP sends the requests, for instance through a proxy. Defaults to
	// http.DefaultTransport. It is copied, and follows no redirect.
	HTTP *http.Client
	// Clock waits between tries. The default waits in real time, which is what
	// all programs but tests want.
	Clock core.Clock
}

// Client calls one API with one key. It is safe for concurrent use.
type Client struct {
	base     string
	key      string
	http     *http.Client
	tries    int
	patience time.Duration
	overtime error // says that it is over
	sleep    func(context.Context, time.Duration) error
}

// New returns a client. It fails when the URL is none of an API, and asks nobody.
// Redirects are not followed, so that the key stays with that API.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errors.New("the URL of the API must look like http://127.0.0.1:8080")
	}
	if c.Tries < 0 || c.Patience < 0 {
		return nil, errors.New("the tries and the patience of a client must not be negative")
	}
	h := http.Client{}
	if c.HTTP != nil {
		h = *c.HTTP
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	sleep := realSleep
	if c.Clock != nil {
		sleep = c.Clock.Sleep
	}
	patience := cmp.Or(c.Patience, 30*time.Second)
	return &Client{
		base: strings.TrimRight(c.URL, "/"), key: c.Key, http: &h, sleep: sleep,
		tries: cmp.Or(c.Tries, 4), patience: patience, overtime: fmt.Errorf("no answer within %s", patience),
	}, nil
}

// realSleep waits without a clock of the product, which core may not import, and
// without a timer of its own to leak: the end of a context is one already.
func realSleep(ctx context.Context, d time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-waiting.Done()
	return context.Cause(ctx)
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

// DeleteVersion deletes a schedule if it still has this version; else a refusal of
// code version_mismatch.
func (c *Client) DeleteVersion(ctx context.Context, id string, version int64) error {
	return c.doIf(ctx, version, http.MethodDelete, "/v1/schedules/"+url.PathEscape(id), nil, nil)
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

// RedriveRun lets a dead run be tried again. It may be sent again.
func (c *Client) RedriveRun(ctx context.Context, id string) (api.Run, error) {
	var run api.Run
	return run, c.do(ctx, http.MethodPost, "/v1/runs/"+url.PathEscape(id)+"/redrive", nil, &run)
}

// RedriveRuns lets the dead runs be tried again that a filter chooses, and returns
// one page of them: go on with its NextCursor as the cursor.
func (c *Client) RedriveRuns(ctx context.Context, in api.RedriveInput) (api.List[api.RedriveItem], error) {
	var page api.List[api.RedriveItem]
	return page, c.do(ctx, http.MethodPost, "/v1/runs/redrive", in, &page)
}

// Backfill runs past slots of a schedule, or says what it would.
func (c *Client) Backfill(ctx context.Context, schedule string, in api.BackfillInput) (api.BackfillPlan, error) {
	var plan api.BackfillPlan
	return plan, c.do(ctx, http.MethodPost, "/v1/schedules/"+url.PathEscape(schedule)+"/backfill", in, &plan)
}

// GetBackfill returns one backfill.
func (c *Client) GetBackfill(ctx context.Context, id string) (api.Backfill, error) {
	var b api.Backfill
	return b, c.do(ctx, http.MethodGet, "/v1/backfills/"+url.PathEscape(id), nil, &b)
}

// Backfills returns the newest 100 backfills of a schedule.
func (c *Client) Backfills(ctx context.Context, schedule string) (api.List[api.Backfill], error) {
	var all api.List[api.Backfill]
	return all, c.do(ctx, http.MethodGet, "/v1/schedules/"+url.PathEscape(schedule)+"/backfills", nil, &all)
}

// CancelBackfill lets a backfill make no more runs, and cancels those that are alive
// if runs is set. It may be sent again.
func (c *Client) CancelBackfill(ctx context.Context, id string, runs bool) (api.Backfill, error) {
	var b api.Backfill
	var body any
	if runs {
		body = map[string]bool{"cancel_runs": true}
	}
	return b, c.do(ctx, http.MethodPost, "/v1/backfills/"+url.PathEscape(id)+"/cancel", body, &b)
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
