package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
)

const (
	// firstGap is how long the first wait is at most; it doubles up to maxAsked.
	firstGap = 200 * time.Millisecond
	// maxAsked bounds the wait that an answer may ask for; the caller of a client
	// has better to do than to sleep longer.
	maxAsked = 10 * time.Second
)

type keyOf struct{}

// WithKey returns a context for one call that makes something: it carries this
// Idempotency-Key, so that a program that starts anew can repeat it for 24 hours.
// Without one each call makes its own.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOf{}, key)
}

// request is one call, which may be sent several times.
type request struct {
	method, path string
	body         []byte // nil: none
	key          string // idempotency key; empty: none
	match        string // If-Match; empty: none
}

// do sends a request, again if need be. A nil in has no body, a nil out expects
// none.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	return c.doIf(ctx, 0, method, path, in, out)
}

// doIf is do for a request that demands a version, unless that is zero.
func (c *Client) doIf(ctx context.Context, version int64, method, path string, in, out any) error {
	r := request{method: method, path: path}
	if version != 0 {
		r.match = `"` + strconv.FormatInt(version, 10) + `"`
	}
	if in != nil {
		body, err := encode(in)
		if err != nil {
			return err
		}
		r.body = body
	}
	if method == http.MethodPost {
		r.key, _ = ctx.Value(keyOf{}).(string)
		if r.key == "" {
			r.key = rand.Text()
		}
	}
	text, err := c.repeat(ctx, r)
	if err == nil && out != nil && json.Unmarshal(text, out) != nil {
		return c.foreign("")
	}
	return err
}

// repeat sends a request until an answer is meant, or tries or time have run out.
func (c *Client) repeat(ctx context.Context, r request) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, c.overtime)
	defer cancel()
	done := false // whether an earlier try may have been carried out
	for n := 1; ; n++ {
		text, next, err := c.send(ctx, r)
		if done && r.method == http.MethodDelete && IsCode(err, core.ErrNotFound.Kind) {
			return nil, nil // an earlier try did it
		}
		if err == nil || !next.again || n >= c.tries {
			return text, err
		}
		done = done || next.unknown
		if c.sleep(ctx, max(next.wait, gap(n))) != nil {
			return nil, err
		}
	}
}

// gap returns how long to wait after the nth try: half of it fixed, half random.
func gap(n int) time.Duration {
	whole := min(firstGap<<min(n-1, 10), maxAsked)
	return whole/2 + mathrand.N(whole/2)
}

// verdict says what a try that failed means for the next one.
type verdict struct {
	again   bool // another try can help
	unknown bool // this one may have been carried out
	wait    time.Duration
}

// send sends a request once.
func (c *Client) send(ctx context.Context, in request) ([]byte, verdict, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, errRequestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, in.method, c.base+in.path, bytes.NewReader(in.body))
	if err != nil {
		return nil, verdict{}, fmt.Errorf("make the request: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Accept", "application/json")
	if in.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if in.key != "" {
		r.Header.Set("Idempotency-Key", in.key)
	}
	if in.match != "" {
		r.Header.Set("If-Match", in.match)
	}
	w, err := c.http.Do(r)
	if err != nil {
		return nil, verdict{again: true, unknown: !isDial(err)}, c.unreachable(ctx, err)
	}
	defer func() { _ = w.Body.Close() }() // it was read or is not wanted
	text, err := io.ReadAll(io.LimitReader(w.Body, maxAnswerBytes))
	if err != nil {
		return nil, verdict{again: true, unknown: true}, c.unreachable(ctx, err)
	}
	if w.StatusCode < 200 || w.StatusCode > 299 {
		return nil, judge(w), c.refused(w, text)
	}
	return text, verdict{}, nil
}

// judge returns what an answer that is no success means for the next try.
func judge(w *http.Response) verdict {
	wait := retryAfter(w.Header)
	v := verdict{again: wait <= maxAsked, wait: wait}
	switch w.StatusCode {
	case http.StatusTooManyRequests:
		return v
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		v.unknown = true
		return v
	default:
		return verdict{}
	}
}

// retryAfter returns how long an answer asks to wait, zero if it does not say. A
// date is measured by the clock of who sent it.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err1 := http.ParseTime(text)
	sent, err2 := http.ParseTime(h.Get("Date"))
	if err1 != nil || err2 != nil {
		return 0
	}
	return max(0, at.Sub(sent))
}

// isDial reports that no connection was made, so that nobody got the request.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// unreachable says what a person can do about a request without an answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	var dial *net.OpError
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return fmt.Errorf("call %s: %w", c.base, cause)
	case isDial(err) && errors.As(err, &dial):
		return fmt.Errorf("nothing answers at %s; start it with fencepost up, or set %s: %w", c.base, EnvURL, dial.Err)
	default:
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the rest repeats the URL
		}
		return fmt.Errorf("call %s: %w", c.base, err)
	}
}
