package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/fencepost/fencepost/core/api"
)

// CreateKey makes a key of the tenant whose key the client has, and returns it
// with its secret, which cannot be had again. It is not sent twice: a key whose
// secret was lost on the way is to be revoked.
func (c *Client) CreateKey(ctx context.Context, in api.KeyInput) (api.CreatedKey, error) {
	var k api.CreatedKey
	body, err := encode(in)
	if err != nil {
		return k, err
	}
	text, _, err := c.send(ctx, request{method: http.MethodPost, path: "/v1/keys", body: body})
	if err == nil && json.Unmarshal(text, &k) != nil {
		err = c.foreign("")
	}
	return k, err
}

// Keys returns a page of the tenant's keys, oldest first, those included that
// have expired or were revoked.
func (c *Client) Keys(ctx context.Context, p Page) (api.List[api.Key], error) {
	var found api.List[api.Key]
	return found, c.do(ctx, http.MethodGet, "/v1/keys"+p.query(nil), nil, &found)
}

// RevokeKey ends a key by its id, within 10 seconds everywhere; a refusal of code
// own_key for the client's own key. Revoking it twice is no error.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/keys/"+url.PathEscape(id), nil, nil)
}
