package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

var errLost = errors.New("connection reset by peer")

// step is an answer of the network: a status, or a lost answer.
type step struct {
	status int // zero: the answer is lost
	after  string
	body   string
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
		return nil, errLost
	}
	header := http.Header{}
	if s.after != "" {
		header.Set("Retry-After", s.after)
	}
	return &http.Response{StatusCode: s.status, Status: fmt.Sprint(s.status), Header: header, Body: io.NopCloser(strings.NewReader(s.body))}, nil
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
		"not from Fencepost":    {[]step{{status: 200, body: "<html>"}}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &network{steps: c.steps}
				cl := newClient(t, "http://fencepost.invalid")
				client.SetTransport(cl, n.answer)
				_, err := cl.Create(t.Context(), api.ScheduleInput{Name: "n"})
				if (err != nil) != c.fails || len(n.keys) != c.tries {
					t.Errorf("%d tries: %v", len(n.keys), err)
				}
				for i, key := range n.keys {
					if key == "" || key != n.keys[0] {
						t.Errorf("try %d has the key %q, the first %q", i+1, key, n.keys[0])
					}
					if i > 0 && n.at[i].Sub(n.at[i-1]) < 100*time.Millisecond {
						t.Errorf("try %d came %s after the one before", i+1, n.at[i].Sub(n.at[i-1]))
					}
				}
				if name == "too many, come soon" && n.at[1].Sub(n.at[0]) < 3*time.Second {
					t.Errorf("came back after %s", n.at[1].Sub(n.at[0]))
				}
			})
		})
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
		}{"lost, then gone": {[]step{{}, gone}, false}, "never there": {[]step{gone}, true}} {
			cl := newClient(t, "http://fencepost.invalid")
			client.SetTransport(cl, (&network{steps: c.steps}).answer)
			if err := cl.Delete(t.Context(), "x"); (err != nil) != c.fails {
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
	cl := newClient(t, "http://fencepost.invalid")
	client.SetTransport(cl, n.answer)
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
		cl := newClient(t, "http://fencepost.invalid")
		client.SetTransport(cl, n.answer)
		begin := time.Now()
		_, err := cl.Schedule(ctx, "a")
		if !client.IsCode(err, "rate_limited") || len(n.keys) != 1 || time.Since(begin) > time.Second {
			t.Errorf("%d tries in %s: %v", len(n.keys), time.Since(begin), err)
		}
		if diff := cmp.Diff(1, len(n.keys)); diff != "" {
			t.Error(diff)
		}
	})
}
