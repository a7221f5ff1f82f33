package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
)

const (
	maxTries = 4
	// firstGap is how long the first wait is at most; it doubles.
	firstGap = 200 * time.Millisecond
	// maxAsked bounds the wait that an answer may ask for.
	maxAsked = 10 * time.Second
)

type keyOf struct{}

// WithKey returns a context whose next call that makes something carries this
// Idempotency-Key, so that a program that starts anew can repeat it. Without one
// each call makes its own.
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
	lost := false // whether an earlier try may have been carried out
	for n := 1; ; n++ {
		text, wait, err := c.send(ctx, r)
		if lost && method == http.MethodDelete && IsCode(err, core.ErrNotFound.Kind) {
			return nil // the try before did it
		}
		if err == nil && out != nil && json.Unmarshal(text, out) != nil {
			return fmt.Errorf("the answer of %s is not from Fencepost", c.base)
		}
		if err == nil || wait < 0 || n == maxTries || ctx.Err() != nil {
			return err
		}
		lost = true
		if !pause(ctx, max(wait, gap(n))) {
			return err
		}
	}
}

// gap returns how long to wait after the nth try: half of it fixed, half random.
func gap(n int) time.Duration {
	whole := firstGap << (n - 1)
	random, err := rand.Int(rand.Reader, big.NewInt(int64(whole/2)))
	if err != nil {
		return whole // there is no randomness
	}
	return whole/2 + time.Duration(random.Int64())
}

// pause waits, and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-waiting.Done()
	return ctx.Err() == nil
}

// send sends a request once. Of a failure it returns how long to wait before the
// next try, negative if another one cannot help.
func (c *Client) send(ctx context.Context, in request) (text []byte, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, errRequestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, in.method, c.base+in.path, bytes.NewReader(in.body))
	if err != nil {
		return nil, -1, fmt.Errorf("make the request: %w", err)
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
		return nil, 0, c.unreachable(ctx, err)
	}
	defer func() { _ = w.Body.Close() }() // it was read or is not wanted
	text, err = io.ReadAll(io.LimitReader(w.Body, maxAnswerBytes))
	if err != nil {
		return nil, 0, c.unreachable(ctx, err)
	}
	if w.StatusCode < 200 || w.StatusCode > 299 {
		return nil, again(w), c.refused(w, text)
	}
	return text, 0, nil
}

// again returns how long a refusal asks to wait, negative if it is meant.
func again(w *http.Response) time.Duration {
	switch w.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return -1
	}
	seconds, err := strconv.Atoi(strings.TrimSpace(w.Header.Get("Retry-After")))
	if err != nil || seconds < 0 {
		return 0
	}
	if asked := time.Duration(seconds) * time.Second; asked <= maxAsked {
		return asked
	}
	return -1 // the caller may have better to do
}

// unreachable says what a person can do about a request without an answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	var dial *net.OpError
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return fmt.Errorf("call %s: %w", c.base, cause)
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("nothing answers at %s; start it with fencepost up, or set %s: %w", c.base, EnvURL, dial.Err)
	default:
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the rest repeats the URL
		}
		return fmt.Errorf("call %s: %w", c.base, err)
	}
}
