package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fencepost/fencepost/core/api"
)

// Info returns what the installation is made of.
func (c *Client) Info(ctx context.Context) (api.Info, error) {
	var i api.Info
	return i, c.do(ctx, http.MethodGet, "/v1/info", nil, &i)
}

// Ready returns the release that answers, whatever the key; a refusal of code
// unavailable while its database does not answer.
func (c *Client) Ready(ctx context.Context) (api.Health, error) {
	var h api.Health
	return h, c.do(ctx, http.MethodGet, "/readyz", nil, &h)
}

// Next returns the next n slots of a schedule, from 1 to 1,000; a refusal of
// code not_found if there is none.
func (c *Client) Next(ctx context.Context, id string, n int) (api.Preview, error) {
	var p api.Preview
	return p, c.do(ctx, http.MethodGet, "/v1/schedules/"+url.PathEscape(id)+"/next?n="+strconv.Itoa(n), nil, &p)
}

// Explain tells what became of a schedule's slots around a time, and why: an
// instant, or a time on the clocks of its zone; empty is now.
func (c *Client) Explain(ctx context.Context, id, at string) (api.Explanation, error) {
	var e api.Explanation
	path := "/v1/schedules/" + url.PathEscape(id) + "/explain"
	if at != "" {
		path += "?at=" + url.QueryEscape(at)
	}
	return e, c.do(ctx, http.MethodGet, path, nil, &e)
}

// URL returns the address of the API, for messages.
func (c *Client) URL() string { return c.base }
