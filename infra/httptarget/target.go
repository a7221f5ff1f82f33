// Package httptarget executes jobs by calling a URL, and exists so that a
// schedule can reach any service without code of the user's in an executor,
// and without that service's private neighbors coming within reach as well.
package httptarget

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/core"
)

// Config tunes a Target. The zero value calls public addresses only, with the
// default limits.
type Config struct {
	// AllowPrivate lets jobs call loopback, private and reserved addresses.
	// Set it only where every user may reach everything that this process can.
	AllowPrivate bool
	// Allow lists addresses that may be called although they are not public,
	// for one internal network rather than all of them.
	Allow []netip.Prefix
	// RootCAs verify servers. Defaults to the system's.
	RootCAs *x509.CertPool
	// DialTimeout bounds looking up a name and connecting. Defaults to 10 s.
	DialTimeout time.Duration
	// TLSTimeout bounds the TLS handshake. Defaults to 10 s.
	TLSTimeout time.Duration
	// HeaderTimeout bounds the wait for the response's header, which most
	// services send when their work is done. Defaults to 15 min.
	HeaderTimeout time.Duration
	// Timeout bounds a whole call where the schedule sets no shorter limit.
	// Defaults to 1 h.
	Timeout time.Duration
}

// What is kept open between calls. Busy connections are bounded by the
// executor, which bounds the runs.
const (
	maxIdleConns        = 100
	maxIdleConnsPerHost = 8
	idleTimeout         = 30 * time.Second
	keepAlive           = 15 * time.Second
	maxHeaderBytes      = 64 << 10
)

const userAgent = "Fencepost"

var errTimeout = errors.New("the call took longer than the target's limit")

// Target is the core.Target of the http queue. Make it with New. It is safe
// for concurrent use.
type Target struct {
	guard   guard
	timeout time.Duration
	client  *http.Client
}

var _ core.Target = (*Target)(nil)

// New returns a target with the limits of cfg, zero or less meaning the
// default. It ignores the proxy settings of the environment: a proxy would
// connect on our behalf to addresses that the guard never sees.
func New(cfg Config) *Target {
	g := guard{allowAll: cfg.AllowPrivate, allow: cfg.Allow}
	dialer := &net.Dialer{
		Timeout:   or(cfg.DialTimeout, 10*time.Second),
		KeepAlive: keepAlive,
		Control:   g.control,
	}
	return &Target{
		guard:   g,
		timeout: or(cfg.Timeout, time.Hour),
		client: &http.Client{
			CheckRedirect: checkRedirect,
			Transport: &http.Transport{
				Proxy:                  nil,
				DialContext:            dialer.DialContext,
				TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs},
				TLSHandshakeTimeout:    or(cfg.TLSTimeout, 10*time.Second),
				ResponseHeaderTimeout:  or(cfg.HeaderTimeout, core.DefaultTimeout),
				MaxResponseHeaderBytes: maxHeaderBytes,
				MaxIdleConns:           maxIdleConns,
				MaxIdleConnsPerHost:    maxIdleConnsPerHost,
				IdleConnTimeout:        idleTimeout,
				ForceAttemptHTTP2:      true,
				DisableCompression:     true, // the byte limits count what was sent
			},
		},
	}
}

func or(d, preset time.Duration) time.Duration {
	if d <= 0 {
		return preset
	}
	return d
}

// Close closes the connections that no call is using. Calls under way go on,
// and the target stays usable.
func (t *Target) Close() { t.client.CloseIdleConnections() }

// Check refuses a payload that Execute could not send, an address literal that
// the guard would refuse among them. Names are judged when they are dialed.
func (t *Target) Check(payload json.RawMessage) error {
	_, err := t.parse(payload)
	return err
}

// Execute calls the URL once and returns {"status":200,"body":"..."} for every
// answer. Statuses 2xx are success; 408, 425, 429, 5xx and broken connections
// may be retried; everything else is permanent.
func (t *Target) Execute(ctx context.Context, e core.Execution) (json.RawMessage, error) {
	c, err := t.parse(e.Payload)
	if err != nil {
		return nil, core.Permanent(fmt.Errorf("read payload: %w", err))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.timeout, errTimeout)
	defer cancel()
	req, err := newRequest(ctx, c, e)
	if err != nil {
		return nil, core.Permanent(err)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, callError(ctx, err)
	}
	defer resp.Body.Close()
	return readResponse(ctx, resp)
}

// envelope is the body of a call whose payload has none.
type envelope struct {
	RunID        string          `json:"run_id"`
	ScheduleID   string          `json:"schedule_id"`
	ScheduledFor string          `json:"scheduled_for"`
	Attempt      int             `json:"attempt"`
	Fence        int64           `json:"fence"`
	Payload      json.RawMessage `json:"payload"`
}

func newRequest(ctx context.Context, c call, e core.Execution) (*http.Request, error) {
	env := envelope{
		RunID:        e.Key.ID(),
		ScheduleID:   e.Key.ScheduleID.String(),
		ScheduledFor: e.ScheduledFor().UTC().Format(time.RFC3339Nano),
		Attempt:      e.Attempt,
		Fence:        e.Fence,
	}
	body, contentType := c.body, c.contentType
	// Front ends of several clouds refuse a GET that has a body.
	if body == nil && c.method != http.MethodGet && c.method != http.MethodHead {
		var err error
		if body, err = json.Marshal(env); err != nil {
			return nil, fmt.Errorf("write envelope: %w", err)
		}
		contentType = typeJSON
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("build request: the url cannot be called")
	}
	req.Header.Set("User-Agent", userAgent)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Fencepost-Run-Id", env.RunID)
	req.Header.Set("Fencepost-Schedule-Id", env.ScheduleID)
	req.Header.Set("Fencepost-Scheduled-For", env.ScheduledFor)
	req.Header.Set("Fencepost-Attempt", strconv.Itoa(e.Attempt))
	req.Header.Set("Fencepost-Fence", strconv.FormatInt(e.Fence, 10))
	return req, nil
}
