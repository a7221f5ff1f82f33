package client

import (
	"context"
	"net/http"

	"github.com/fencepost/fencepost/core/api"
)

// QueueLimits returns the tenant's limits of queues and those that hold for all
// tenants, by queue.
func (c *Client) QueueLimits(ctx context.Context) ([]api.QueueLimit, error) {
	var found api.List[api.QueueLimit]
	err := c.do(ctx, http.MethodGet, "/v1/queues", nil, &found)
	return found.Items, err
}

// LimitQueue lets so many of the tenant's runs in a queue be running at once; 0 lets
// none start. Doing it again changes nothing.
func (c *Client) LimitQueue(ctx context.Context, queue string, concurrency int) (api.QueueLimit, error) {
	var l api.QueueLimit
	return l, c.do(ctx, http.MethodPut, limitPath(queue), api.QueueLimitInput{Concurrency: concurrency}, &l)
}

// UnlimitQueue ends the tenant's limit of a queue; a refusal of code not_found if
// there is none.
func (c *Client) UnlimitQueue(ctx context.Context, queue string) error {
	return c.do(ctx, http.MethodDelete, limitPath(queue), nil, nil)
}

func limitPath(queue string) string { return "/v1/queues/" + escape(queue) + "/limit" }
