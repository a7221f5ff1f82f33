package api_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

func TestAuthorization(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	keys := map[string]string{"wrong": "fp_wrong", "": "", "long": "fp_" + strings.Repeat("x", 300)}
	for _, scope := range []string{"admin", "write", "read", "worker"} {
		keys[scope] = s.addKey(uuid.New(), scope)
	}
	for _, c := range []struct {
		header, method string
		status         int
		challenge      string
	}{
		{"", "GET", 401, `Bearer realm="fencepost"`},
		{"Basic eDp5", "GET", 401, `Bearer realm="fencepost"`},
		{"Bearer", "GET", 401, `Bearer realm="fencepost"`},
		{"Bearer not-ours", "GET", 401, `Bearer realm="fencepost"`},
		{"Bearer " + keys["wrong"], "GET", 401, `Bearer realm="fencepost"`},
		{"Bearer " + keys["long"], "GET", 401, `Bearer realm="fencepost"`},
		{"Bearer " + keys["admin"] + "x", "GET", 401, `Bearer realm="fencepost"`},
		{"bearer " + keys["admin"], "GET", 200, ""},
		{"Bearer " + keys["admin"], "PATCH", 422, ""},
		{"Bearer " + keys["write"], "GET", 200, ""},
		{"Bearer " + keys["write"], "PATCH", 422, ""},
		{"Bearer " + keys["read"], "GET", 200, ""},
		{"Bearer " + keys["read"], "PATCH", 403, `Bearer realm="fencepost", error="insufficient_scope", scope="write"`},
		{"Bearer " + keys["worker"], "GET", 403, `Bearer realm="fencepost", error="insufficient_scope", scope="read"`},
		{"Bearer " + keys["worker"], "PATCH", 403, `Bearer realm="fencepost", error="insufficient_scope", scope="write"`},
	} {
		w := s.as("").send(c.method, aSchedule, "[]", "Authorization", c.header)
		if w.Code != c.status || w.Header().Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s with %q: status %d, challenge %q", c.method, c.header, w.Code, w.Header().Get("WWW-Authenticate"))
		}
		if strings.Contains(w.Body.String(), "wrong") || strings.Contains(s.log.String(), "fp_") {
			t.Errorf("the key is repeated: %s %s", w.Body, s.log)
		}
	}
}

func TestKeyIsLookedUpOnceInTenSeconds(t *testing.T) {
	t.Parallel()
	keys := &fakeKeys{}
	s := newServer(t, &fakeStore{}, keys, nil)
	for _, c := range []struct {
		pass  time.Duration
		asked int
	}{{0, 1}, {0, 1}, {9 * time.Second, 1}, {time.Second, 2}, {0, 2}} {
		s.clock.advance(c.pass)
		want[api.Schedule](s, s.send("GET", aSchedule, nil), 200)
		if keys.asked != c.asked {
			t.Errorf("after another %s the store was asked %d times, want %d", c.pass, keys.asked, c.asked)
		}
	}
}

func TestKeysInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	keys := &fakeKeys{}
	s := newServer(t, &fakeStore{}, keys, nil)
	all := make([]string, 1001)
	for i := range all {
		all[i] = s.addKey(uuid.New(), "read")
	}
	for range 2 {
		for _, key := range all {
			want[api.Schedule](s, s.as(key).send("GET", aSchedule, nil), 200)
		}
	}
	if keys.asked <= len(all) {
		t.Errorf("all %d keys were kept", len(all))
	}
}

// TestWrongKeysCostFewLookUps: a flood of wrong keys neither keeps the store busy
// nor shuts out those whose keys have worked here before.
func TestWrongKeysCostFewLookUps(t *testing.T) {
	t.Parallel()
	keys := &fakeKeys{}
	s := newServer(t, &fakeStore{}, keys, nil)
	want[api.Schedule](s, s.send("GET", aSchedule, nil), 200)
	wrong, _ := api.NewKey()
	for _, rest := range []time.Duration{0, 10 * time.Second} {
		s.clock.advance(rest)
		before := keys.asked
		problem(s, s.as(wrong).send("GET", aSchedule, nil), 401)
		refused := map[int]int{}
		for range 1000 {
			other, _ := api.NewKey()
			w := s.as(other).send("GET", aSchedule, nil)
			refused[w.Code]++
			if w.Code == 429 && (problem(s, w, 429).Code != "rate_limited" || w.Header().Get("Retry-After") != "1") {
				t.Fatalf("%v %s", w.Header(), w.Body)
			}
		}
		if diff := cmp.Diff(map[int]int{401: 199, 429: 801}, refused); diff != "" || keys.asked != before+200 {
			t.Errorf("after %s: %d look-ups, %s", rest, keys.asked-before, diff)
		}
		problem(s, s.as(wrong).send("GET", aSchedule, nil), 401)
		want[api.Schedule](s, s.send("GET", aSchedule, nil), 200)
		if again := 200; rest > 0 && keys.asked != before+again+1 || rest == 0 && keys.asked != before+again {
			t.Errorf("after %s: %d look-ups for keys that were seen before", rest, keys.asked-before-again)
		}
	}
	fresh := s.as(s.addKey(uuid.New(), "read"))
	problem(s, fresh.send("GET", aSchedule, nil), 429)
	s.clock.advance(time.Second)
	for range 300 { // right ones cost nothing in the end
		want[api.Schedule](s, s.as(s.addKey(uuid.New(), "read")).send("GET", aSchedule, nil), 200)
	}
	want[api.Schedule](s, fresh.send("GET", aSchedule, nil), 200)
}

func TestKeyStoreFailureIsNoRefusal(t *testing.T) {
	t.Parallel()
	keys := &fakeKeys{err: &core.Error{Code: core.CodeUnavailable, Message: "no", Err: errors.New("hidden")}}
	s := newServer(t, &fakeStore{}, keys, nil)
	w := s.send("GET", aSchedule, nil)
	if p := problem(s, w, 503); p.Code != "unavailable" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("answer is %s", w.Body)
	}
}
