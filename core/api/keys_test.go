package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/infra/clock"
)

func (s *server) createKey(body string) api.CreatedKey {
	s.Helper()
	return want[api.CreatedKey](s, s.send("POST", "/v1/keys", body), 201)
}

func (s *server) listKeys() []api.Key {
	s.Helper()
	return want[api.List[api.Key]](s, s.send("GET", "/v1/keys", nil), 200).Items
}

// TestLifeOfAKey follows a key from its creation to its end.
func TestLifeOfAKey(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.createKey(`{"name":"ci","scopes":["read","write"],"expires_in":"90d"}`)
		if made.ExpiresAt == nil || made.ExpiresAt.Sub(made.CreatedAt) != 90*24*time.Hour || !strings.HasPrefix(made.Secret, "fp_") {
			s.Errorf("made %+v", made)
		}
		holder := s.as(made.Secret)
		want[api.List[api.Schedule]](holder, holder.send("GET", "/v1/schedules", nil), 200)
		w := s.send("GET", "/v1/keys", nil)
		listed := want[api.List[api.Key]](s, w, 200).Items
		if len(listed) != 2 || !listed[0].Current || listed[0].LastUsedAt == nil || listed[1].LastUsedAt == nil {
			s.Fatalf("listed %s", w.Body)
		}
		expected := made.Key
		expected.LastUsedAt = listed[1].LastUsedAt
		if diff := cmp.Diff(expected, listed[1]); diff != "" || made.State != "active" || made.Current {
			s.Errorf("%+v: %s", made, diff)
		}

		path := "/v1/keys/" + made.ID
		for range 2 {
			if w := s.send("DELETE", path, nil); w.Code != 204 || w.Body.Len() > 0 {
				s.Errorf("revoke answered %d %s", w.Code, w.Body)
			}
			problem(holder, holder.send("GET", "/v1/schedules", nil), 401)
		}
		if got := s.listKeys()[1]; got.State != "revoked" || got.RevokedAt == nil {
			s.Errorf("revoked key is %+v", got)
		}
		if p := problem(s, s.send("DELETE", "/v1/keys/"+listed[0].ID, nil), 409); p.Code != "own_key" {
			s.Errorf("revoking the own key: %+v", p)
		}
		for _, secret := range []string{made.Secret, s.key} {
			if strings.Contains(w.Body.String(), secret) || strings.Contains(s.log.String(), secret) {
				s.Error("a secret is in a list or in the log")
			}
		}
	})
}

// TestRevocationReachesOtherProcesses within the time that they remember keys.
func TestRevocationReachesOtherProcesses(t *testing.T) {
	t.Parallel()
	store := memory.New(region, clock.System{})
	here, there := newServer(t, store, store, nil), newServer(t, store, store, nil)
	tenant := uuid.New()
	admin := here.as(here.addKey(tenant, "admin"))
	made := admin.createKey(`{"name":"x","scopes":["admin"]}`)
	thief := there.as(made.Secret)
	want[api.Info](thief, thief.send("GET", "/v1/info", nil), 200)
	if w := admin.send("DELETE", "/v1/keys/"+made.ID, nil); w.Code != 204 {
		t.Fatal(w.Body)
	}
	there.clock.advance(9 * time.Second)
	want[api.Info](thief, thief.send("GET", "/v1/info", nil), 200)
	there.clock.advance(time.Second)
	problem(thief, thief.send("GET", "/v1/info", nil), 401)
}

// TestRevokedKeyMakesNoOther although a process still remembers it.
func TestRevokedKeyMakesNoOther(t *testing.T) {
	t.Parallel()
	store := memory.New(region, clock.System{})
	there := newServer(t, store, store, nil)
	tenant := uuid.New()
	secret := there.addKey(tenant, "admin")
	thief := there.as(secret)
	want[api.Info](thief, thief.send("GET", "/v1/info", nil), 200)
	k := core.APIKey{Hash: api.HashKey(secret)}
	if _, err := store.RevokeKey(t.Context(), tenant, k.ID()); err != nil {
		t.Fatal(err)
	}
	problem(thief, thief.send("POST", "/v1/keys", `{"name":"x","scopes":["admin"]}`), 401)
	problem(thief, thief.send("GET", "/v1/info", nil), 401) // and now this process knows
}

// heldKeys lets a test stop the look-ups of one key after they have read it.
type heldKeys struct {
	core.KeyStore
	hash        [32]byte
	found, goOn chan struct{}
}

func (h *heldKeys) FindKey(ctx context.Context, hash [32]byte) (core.APIKey, error) {
	key, err := h.KeyStore.FindKey(ctx, hash)
	if hash == h.hash {
		h.found <- struct{}{}
		<-h.goOn
	}
	return key, err
}

// TestRevocationBeatsALookUpUnderWay: what it found is not remembered.
func TestRevocationBeatsALookUpUnderWay(t *testing.T) {
	t.Parallel()
	store := memory.New(region, clock.System{})
	held := &heldKeys{KeyStore: store, found: make(chan struct{}), goOn: make(chan struct{})}
	s := newServer(t, store, held, nil)
	tenant := uuid.New()
	admin, secret := s.as(s.addKey(tenant, "admin")), s.addKey(tenant, "read")
	held.hash = api.HashKey(secret)
	done := make(chan int)
	go func() { done <- s.as(secret).send("GET", "/v1/info", nil).Code }()
	<-held.found
	id := (&core.APIKey{Hash: held.hash}).ID()
	if w := admin.send("DELETE", "/v1/keys/"+id, nil); w.Code != 204 {
		t.Fatal(w.Body)
	}
	close(held.goOn)
	if code := <-done; code != 200 {
		t.Errorf("the request of before is answered %d", code)
	}
	problem(s, s.as(secret).send("GET", "/v1/info", nil), 401)
}

// TestExpiryEndsWhatIsRemembered before its ten seconds.
func TestExpiryEndsWhatIsRemembered(t *testing.T) {
	t.Parallel()
	keys := &fakeKeys{}
	s := newServer(t, &fakeStore{}, keys, nil)
	secret, hash := api.NewKey()
	_ = keys.AddKey(t.Context(), core.APIKey{Hash: hash, Scopes: []string{"read"}, ExpiresAt: s.clock.Now().Add(4 * time.Second)})
	for _, pass := range []time.Duration{0, 3 * time.Second} {
		s.clock.advance(pass)
		want[api.Schedule](s, s.as(secret).send("GET", aSchedule, nil), 200)
	}
	delete(keys.keys, hash) // as a store does by itself
	s.clock.advance(time.Second)
	problem(s, s.as(secret).send("GET", aSchedule, nil), 401)
}

func TestKeyPages(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		var ids []string
		for i := range 4 {
			ids = append(ids, s.createKey(fmt.Sprintf(`{"name":"k%d","scopes":["read"]}`, i)).ID)
		}
		got := walkWith(s, "/v1/keys?limit=2", func() {}, func(k api.Key) string { return k.ID })
		if diff := cmp.Diff(ids, got[1:]); diff != "" {
			s.Error(diff)
		}
	})
}

func TestKeysMustMakeSense(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	long := strings.Repeat("x", 201)
	for body, field := range map[string]string{
		`{"scopes":["read"]}`:                                 "name",
		`{"name":"","scopes":["read"]}`:                       "name",
		`{"name":" ","scopes":["read"]}`:                      "name",
		`{"name":null,"scopes":["read"]}`:                     "name",
		`{"name":7,"scopes":["read"]}`:                        "name",
		`{"name":"a\nb","scopes":["read"]}`:                   "name",
		`{"name":"a\u001b[2Jb","scopes":["read"]}`:            "name",
		`{"name":"a\u0000","scopes":["read"]}`:                "name",
		`{"name":"` + long + `","scopes":["read"]}`:           "name",
		`{"name":"a"}`:                                        "scopes",
		`{"name":"a","scopes":[]}`:                            "scopes",
		`{"name":"a","scopes":null}`:                          "scopes",
		`{"name":"a","scopes":"read"}`:                        "scopes",
		`{"name":"a","scopes":["root"]}`:                      "scopes",
		`{"name":"a","scopes":["read","read"]}`:               "scopes",
		`{"name":"a","scopes":["read write"]}`:                "scopes",
		`{"name":"a","scopes":[["read"]]}`:                    "scopes",
		`{"name":"a","scopes":["read"],"expires_in":9}`:       "expires_in",
		`{"name":"a","scopes":["read"],"expires_in":""}`:      "expires_in",
		`{"name":"a","scopes":["read"],"expires_in":"0"}`:     "expires_in",
		`{"name":"a","scopes":["read"],"expires_in":"0s"}`:    "expires_in",
		`{"name":"a","scopes":["read"],"expires_in":"59s"}`:   "expires_in",
		`{"name":"a","scopes":["read"],"expires_in":"4000d"}`: "expires_in",
		// The tenant comes from the credential alone.
		`{"name":"a","scopes":["read"],"tenant_id":"00000000-0000-7000-8000-000000000001"}`: "tenant_id",
	} {
		w := s.send("POST", "/v1/keys", body)
		p := problem(s, w, 422)
		if p.Field != field || strings.Contains(w.Body.String(), long) {
			t.Errorf("%s: %s", body, w.Body)
		}
	}
	for _, id := range []string{"x", "key_", "key_0123456789ABCDEF", "key_0123456789abcde", "key_0123456789abcdef0", "key_%00", "0123456789abcdef"} {
		problem(s, s.send("DELETE", "/v1/keys/"+id, nil), 404)
	}
}

// TestLoggedNamesAreEscaped: a name cannot forge a line of the log, nor a field.
func TestLoggedNamesAreEscaped(t *testing.T) {
	t.Parallel()
	const name = "x\" level=ERROR msg=forged \u2028 } {"
	store := memory.New(region, clock.System{})
	var text lockedBuffer
	for _, c := range []func(*api.Config){nil, func(c *api.Config) { c.Logger = slog.New(slog.NewTextHandler(&text, nil)) }} {
		s := newServer(t, store, store, c)
		body, err := json.Marshal(map[string]any{"name": name, "scopes": []string{"read"}})
		if err != nil {
			t.Fatal(err)
		}
		made := s.createKey(string(body))
		if made.Name != name {
			t.Errorf("the name is %q", made.Name)
		}
		for line := range strings.Lines(s.log.String()) {
			var entry struct{ Msg, Key_name, Key_id string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if entry.Msg == "key created" && (entry.Key_name != name || entry.Key_id != made.ID) {
				t.Errorf("logged %q", line)
			}
		}
		if strings.Contains(s.log.String()+text.String(), made.Secret) {
			t.Error("the secret is logged")
		}
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], `key_name="x\" level=ERROR msg=forged \u2028 } {"`) {
		t.Errorf("logged as text: %q", lines)
	}
}
