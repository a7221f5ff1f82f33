package api_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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

func TestWrongKeysDoNotPushOutRightOnes(t *testing.T) {
	t.Parallel()
	keys := &fakeKeys{}
	s := newServer(t, &fakeStore{}, keys, nil)
	want[api.Schedule](s, s.send("GET", aSchedule, nil), 200)
	for range 1100 {
		wrong, _ := api.NewKey()
		problem(s, s.as(wrong).send("GET", aSchedule, nil), 401)
	}
	before := keys.asked
	want[api.Schedule](s, s.send("GET", aSchedule, nil), 200)
	if keys.asked != before {
		t.Error("the right key had been forgotten")
	}
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
