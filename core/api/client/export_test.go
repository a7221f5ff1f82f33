package client

import "net/http"

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// SetTransport replaces the network, whose time no test can bend.
func SetTransport(c *Client, f func(*http.Request) (*http.Response, error)) {
	c.http.Transport = roundTrip(f)
}
