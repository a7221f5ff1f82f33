package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

var errLost = errors.New("connection reset by peer")

var errRefused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

// step is an answer of the network: a status, or none.
type step struct {
	status int   // zero: there is no answer
	err    error // why; nil: it was lost
	after  string
	date   string
	body   string
	cut    bool // the connection breaks amid the body
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// transport replaces the network, whose time no test can bend.
func transport(f roundTrip) *http.Client { return &http.Client{Transport: f} }

// client returns a client of this network.
func (n *network) client(t *testing.T) *client.Client {
	t.Helper()
	return configured(t, client.Config{URL: "http://fencepost.invalid", HTTP: transport(n.answer)})
}

// network answers step by step and keeps the idempotency keys and times of what it
// was asked.
type network struct {
	steps []step
	keys  []string
	at    []time.Time
}

func (n *network) answer(r *http.Request) (*http.Response, error) {
	n.keys, n.at = append(n.keys, r.Header.Get("Idempotency-Key")), append(n.at, time.Now())
	s := n.steps[min(len(n.keys), len(n.steps))-1]
	if s.status == 0 {
		if s.err != nil {
			return nil, s.err
		}
		return nil, errLost
	}
	header := http.Header{}
	header.Set("Retry-After", s.after)
	header.Set("Date", s.date)
	var body io.Reader = strings.NewReader(s.body)
	if s.cut {
		body = io.MultiReader(strings.NewReader(s.body[:1]), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	return &http.Response{StatusCode: s.status, Status: fmt.Sprint(s.status), Header: header, Body: io.NopCloser(body)}, nil
}

const busy = `{"status":503,"code":"unavailable","detail":"the database does not answer"}`

// TestRequestsAreSentAgain: what got no answer, or was asked to come again, is sent
// up to four times, with one key, and ends with the last answer.
func TestRequestsAreSentAgain(t *testing.T) {
	t.Parallel()
	ok := step{status: 200, body: `{"id":"x"}`}
	for name, c := range map[string]struct {
		steps []step
		tries int
		fails bool
	}{
		"answer at once":        {[]step{ok}, 1, false},
		"lost once":             {[]step{{}, ok}, 2, false},
		"busy, lost, gateway":   {[]step{{status: 503, body: busy}, {}, {status: 502, body: "<html>"}, ok}, 4, false},
		"always lost":           {[]step{{}}, 4, true},
		"always busy":           {[]step{{status: 503, body: busy}}, 4, true},
		"refused":               {[]step{{status: 409, body: `{"status":409,"code":"run_live"}`}}, 1, true},
		"a fault of the server": {[]step{{status: 500, body: `{"status":500,"code":"internal"}`}}, 1, true},
		"too many, come soon":   {[]step{{status: 429, after: "3", body: `{"status":429,"code":"rate_limited"}`}, ok}, 2, false},
		"too many, come late":   {[]step{{status: 429, after: "60", body: `{"status":429,"code":"rate_limited"}`}, ok}, 1, true},
		"a date, come soon": {[]step{{
			status: 503, after: "Mon, 30 Nov 2026 00:00:05 GMT", date: "Mon, 30 Nov 2026 00:00:02 GMT", body: busy,
		}, ok}, 2, false},
		"nobody there yet":   {[]step{{err: errRefused}, {err: errRefused}, ok}, 3, false},
		"cut":                {[]step{{status: 200, body: ok.body, cut: true}, ok}, 2, false},
		"not from Fencepost": {[]step{{status: 200, body: "<html>"}}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &network{steps: c.steps}
				_, err := n.client(t).Create(t.Context(), api.ScheduleInput{Name: "n"})
				if (err != nil) != c.fails || len(n.keys) != c.tries {
					t.Errorf("%d tries: %v", len(n.keys), err)
				}
				n.check(t, strings.HasSuffix(name, "come soon"))
			})
		})
	}
}

// check looks at keys and gaps.
func (n *network) check(t *testing.T, asked bool) {
	t.Helper()
	for i, key := range n.keys {
		if key == "" || key != n.keys[0] {
			t.Errorf("try %d has the key %q, the first %q", i+1, key, n.keys[0])
		}
		if i == 0 {
			continue
		}
		least, most := 100*time.Millisecond<<(i-1), 200*time.Millisecond<<(i-1)
		if asked {
			least, most = 3*time.Second, 3*time.Second
		}
		if gap := n.at[i].Sub(n.at[i-1]); gap < least || gap > most {
			t.Errorf("try %d came %s after the one before, want %s to %s", i+1, gap, least, most)
		}
	}
}

// TestBugH54: what is too large is refused for good, and not sent again.
func TestBugH54(t *testing.T) {
	t.Parallel()
	n := &network{steps: []step{{status: 413, body: `{"status":413,"code":"too_large","detail":"the payload is larger than 256 KiB"}`}}}
	_, err := n.client(t).Create(t.Context(), api.ScheduleInput{Name: "n"})
	if !client.IsCode(err, "too_large") || !client.IsRefusal(err) || !strings.Contains(err.Error(), "256 KiB") || len(n.keys) != 1 {
		t.Errorf("%d tries: %v", len(n.keys), err)
	}
}

// TestDeleteThatWasLost: the try whose answer was lost did it; its echo is no
// error.
func TestDeleteThatWasLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := step{status: 404, body: `{"status":404,"code":"not_found"}`}
		for name, c := range map[string]struct {
			steps []step
			fails bool
		}{
			"lost, then gone":      {[]step{{}, gone}, false},
			"gateway, then gone":   {[]step{{status: 504, body: "<html>"}, gone}, false},
			"never there":          {[]step{gone}, true},
			"refused, never there": {[]step{{err: errRefused}, gone}, true},
			"too many, then gone":  {[]step{{status: 429, body: `{"status":429,"code":"rate_limited"}`}, gone}, true},
		} {
			if err := (&network{steps: c.steps}).client(t).Delete(t.Context(), "x"); (err != nil) != c.fails {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestKeys: a caller may choose the key; otherwise each call has its own, and what
// makes nothing has none.
func TestKeys(t *testing.T) {
	t.Parallel()
	n := &network{steps: []step{{status: 200, body: `{}`}}}
	cl := n.client(t)
	ctx := client.WithKey(t.Context(), "order-4711")
	_, err1 := cl.Trigger(ctx, "a", nil)
	_, err2 := cl.Trigger(t.Context(), "a", nil)
	_, err3 := cl.Trigger(t.Context(), "a", nil)
	_, err4 := cl.Schedule(ctx, "a")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if n.keys[0] != "order-4711" || n.keys[1] == "" || n.keys[1] == n.keys[2] || n.keys[3] != "" {
		t.Errorf("keys %q", n.keys)
	}
}

// TestWaitingEndsWithTheContext: a caller that gives up is not kept.
func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n := &network{steps: []step{{status: 429, after: "9", body: `{"status":429,"code":"rate_limited"}`}}}
		begin := time.Now()
		_, err := n.client(t).Schedule(ctx, "a")
		if !client.IsCode(err, "rate_limited") || len(n.keys) != 1 || time.Since(begin) > time.Second {
			t.Errorf("%d tries in %s: %v", len(n.keys), time.Since(begin), err)
		}
		var refusal *client.Error
		if !errors.As(err, &refusal) || refusal.RetryAfter != 9*time.Second {
			t.Errorf("the refusal asks to come again after %v", refusal)
		}
	})
}

// waits is a clock that does not wait.
type waits struct {
	core.Clock
	asked []time.Duration
}

// Sleep implements core.Clock.
func (w *waits) Sleep(_ context.Context, d time.Duration) error {
	w.asked = append(w.asked, d)
	return nil
}

// TestOwnClock: a client waits by the clock that it was given.
func TestOwnClock(t *testing.T) {
	t.Parallel()
	n, w := &network{steps: []step{{status: 503, body: busy}}}, &waits{}
	_, err := configured(t, client.Config{URL: "http://fencepost.invalid", HTTP: transport(n.answer), Tries: 12, Clock: w}).Schedule(t.Context(), "a")
	if !client.IsCode(err, "unavailable") || len(n.at) != 12 || len(w.asked) != 11 || slices.Max(w.asked) > 10*time.Second {
		t.Errorf("%d tries after waits of %v: %v", len(n.at), w.asked, err)
	}
}

// TestManyCallers: one client serves any number of goroutines.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1)%3 == 0 {
			panic(http.ErrAbortHandler) // the answer is lost
		}
		_, _ = fmt.Fprintf(w, `{"name":%q}`, r.Header.Get("Idempotency-Key"))
	}))
	t.Cleanup(server.Close)
	cl := configured(t, client.Config{URL: server.URL, Tries: 50, Patience: time.Minute, Clock: &noWait{}})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			key := fmt.Sprint("k", i)
			if s, err := cl.Create(client.WithKey(t.Context(), key), api.ScheduleInput{}); err != nil || s.Name != key {
				t.Errorf("call %s: %q %v", key, s.Name, err)
			}
		})
	}
	all.Wait()
}

// noWait is a clock for many that does not wait.
type noWait struct{ core.Clock }

// Sleep implements core.Clock.
func (noWait) Sleep(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
