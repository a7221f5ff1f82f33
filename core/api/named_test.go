package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core/api"
)

// named returns the path of a schedule by its name, as a careful client writes it.
func named(name string) string {
	return "/v1/schedules/by-name/" + strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
}

const putBody = `{"spec":"0 3 * * *","job":{"queue":"test"}}`

func TestPutByName(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	path := named("report")
	dry := want[api.PutResult](s, s.send("PUT", path+"?dry_run=true", putBody), 200)
	if dry.Outcome != "created" || dry.ID != "" || dry.Name != "report" || dry.NextRunAt == nil {
		t.Errorf("dry run: %+v", dry)
	}
	problem(s, s.send("GET", path, nil), 404)
	w := s.send("PUT", path, putBody)
	made := want[api.PutResult](s, w, 201)
	if made.Outcome != "created" || w.Header().Get("Location") != "/v1/schedules/"+made.ID || made.Version != 1 {
		t.Errorf("%s %+v", w.Header().Get("Location"), made)
	}
	same := want[api.PutResult](s, s.send("PUT", path, `{"name":"report","spec":"0  3 * * *","job":{"payload":null,"queue":"test"}}`), 200)
	if same.Outcome != "unchanged" || same.Version != 1 || same.ID != made.ID {
		t.Errorf("equal content: %+v", same)
	}
	other := `{"spec":"0 4 * * *","overlap":"allow","job":{"http":{"url":"https://example.com"}}}`
	would := want[api.PutResult](s, s.send("PUT", path+"?dry_run=true", other), 200)
	got := want[api.PutResult](s, s.send("PUT", path+"?dry_run=false", other), 200)
	if got.Outcome != "replaced" || got.Version != 2 || got.Overlap != "allow" || got.ID != made.ID || got.Timeout != "1m" {
		t.Errorf("other content: %+v", got)
	}
	if diff := cmp.Diff(got, would, cmpopts.IgnoreFields(api.Schedule{}, "Job", "UpdatedAt")); diff != "" {
		t.Errorf("the dry run said otherwise: %s", diff)
	}
	reset := want[api.PutResult](s, s.send("PUT", path, putBody), 200)
	if reset.Overlap != "skip" || reset.Spec != "0 3 * * *" || reset.Timeout != "15m" {
		t.Errorf("what was left out stayed: %+v", reset)
	}
	if diff := cmp.Diff(reset.Schedule, want[api.Schedule](s, s.send("GET", path, nil), 200)); diff != "" {
		t.Error(diff)
	}
	if w := s.send("DELETE", path, nil); w.Code != 204 {
		t.Errorf("delete answered %d %s", w.Code, w.Body)
	}
	problem(s, s.send("DELETE", path, nil), 404)
	if again := want[api.PutResult](s, s.send("PUT", path, putBody), 201); again.ID == made.ID {
		t.Error("a deleted schedule came back")
	}
}

// TestNamesInPaths: any name that a schedule can have can be asked for.
func TestNamesInPaths(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	for _, name := range []string{
		"a", "team/report", "team/a/b", "/", "/a", "a/", "a//b", ".", "..", "../x", "a/../b", "a/./b", "...", "two words", " ", "Übersicht", "日本語", "🦀",
		"100%", "%2F", "%", "a+b", "a?b=c", "a#b", "a&b;c=d", "runs", "x/runs", "next", "batch", "by-name", "by-name/x", `"quoted"`, `a\b`, "a:b@c", strings.Repeat("é", 100),
	} {
		made := want[api.PutResult](s, s.send("PUT", named(name), putBody), 201)
		got := want[api.Schedule](s, s.send("GET", named(name), nil), 200)
		if made.Name != name || got.Name != name || got.ID != made.ID {
			t.Errorf("%q was made as %q and found as %q", name, made.Name, got.Name)
		}
	}
	// Plain slashes name the same schedule.
	if got := want[api.Schedule](s, s.send("GET", "/v1/schedules/by-name/team/a/b", nil), 200); got.Name != "team/a/b" {
		t.Errorf("found %q", got.Name)
	}
	if got := want[api.Schedule](s, s.send("GET", "/v1/schedules/by-name/x/runs", nil), 200); got.Name != "x/runs" {
		t.Errorf("found %q", got.Name)
	}
	for _, path := range []string{"", "/", "/a//b", "/a/", "/../x", "/%2E%2E/..", "/%FF", "/%00"} {
		problem(s, s.send("GET", "/v1/schedules/by-name"+path, nil), 404)
	}
	for _, path := range []string{"/%FF", "/a%00b", "/a%0Ab", "/" + strings.Repeat("x", 201)} {
		if p := problem(s, s.send("PUT", "/v1/schedules/by-name"+path, putBody), 422); p.Field != "name" {
			t.Errorf("PUT %s: %+v", path, p)
		}
	}
	if p := problem(s, s.send("PATCH", named("a"), `{}`), 405); p.Code != "method_not_allowed" {
		t.Errorf("%+v", p)
	}
}

// TestNamesOverTheWire: the server takes apart what a client sends.
func TestNamesOverTheWire(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for _, name := range []string{"..", "a/../b", "a b/ü%2F?#"} {
		want[api.PutResult](s, s.send("PUT", named(name), putBody), 201)
		r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+named(name), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.key)
		w, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var got api.Schedule
		err = json.NewDecoder(w.Body).Decode(&got)
		_ = w.Body.Close()
		if err != nil || w.StatusCode != 200 || got.Name != name {
			t.Errorf("%q: status %d, name %q, %v", name, w.StatusCode, got.Name, err)
		}
	}
}

func TestWrongPuts(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	for _, c := range []struct {
		query, body string
		status      int
		code, field string
	}{
		{"", ``, 400, "invalid", ""},
		{"", `[]`, 422, "invalid", ""},
		{"", `{"job":{"queue":"test"}}`, 422, "invalid", "spec"},
		{"", `{"spec":"@daily"}`, 422, "invalid", "job"},
		{"", `{"name":"y","spec":"@daily","job":{"queue":"test"}}`, 422, "invalid", "name"},
		{"", `{"name":null,"spec":"@daily","job":{"queue":"test"}}`, 422, "invalid", "name"},
		{"", `{"spec":"in 3d","job":{"queue":"test"}}`, 422, "invalid", "spec"},
		{"", `{"spec":"@daily","job":{"queue":"test"},"canary":1}`, 422, "unknown_field", "canary"},
		{"", `{"spec":"@daily","job":{"http":{"url":"bad"}}}`, 422, "invalid", "job.http.url"},
		{"", `{"spec":"@daily","job":{"queue":"test"},"paused":"yes"}`, 422, "invalid", "paused"},
		{"", `{"spec":"@daily","job":{"queue":"test","payload":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`, 422, "invalid", "job.payload"},
		{"?dry_run=yes", putBody, 422, "invalid", "dry_run"},
		{"?dryrun=true", putBody, 422, "unknown_field", ""},
		{"", `{"spec":"@daily","job":{"queue":"test","payload":"` + strings.Repeat("x", 256<<10) + `"}}`, 413, "too_large", ""},
	} {
		for _, exists := range []bool{false, true} {
			if exists {
				want[api.PutResult](s, s.send("PUT", named("x"), putBody), 201)
			}
			p := problem(s, s.send("PUT", named("x")+c.query, c.body), c.status)
			if diff := cmp.Diff([]string{c.code, c.field}, []string{p.Code, p.Field}); diff != "" {
				t.Errorf("%.100s: %s", c.body, diff)
			}
		}
		want[struct{}](s, s.send("DELETE", named("x"), nil), 204)
	}
}

// TestPausedCanBeSent: created paused, changed and resumed by a field.
func TestPausedCanBeSent(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	made := s.create(`{"name":"a","spec":"0 3 * * *","paused":true,"job":{"queue":"test"}}`)
	if made.State != "paused" || made.NextRunAt != nil {
		t.Errorf("created: %+v", made)
	}
	kept := want[api.PutResult](s, s.send("PUT", named("a"), `{"spec":"0 4 * * *","job":{"queue":"test"}}`), 200)
	if kept.State != "paused" {
		t.Errorf("put: %+v", kept)
	}
	resumed := want[api.Schedule](s, s.send("PATCH", "/v1/schedules/"+made.ID, `{"paused":false,"spec":"0 5 * * *"}`), 200)
	if resumed.State != "active" || resumed.NextRunAt == nil || resumed.NextRunAt.Hour() != 5 || resumed.Version != 3 {
		t.Errorf("resumed: %+v", resumed)
	}
	if got := want[api.Schedule](s, s.send("PATCH", "/v1/schedules/"+made.ID, `{"paused":true}`), 200); got.State != "paused" {
		t.Errorf("paused: %+v", got)
	}
}

// TestPutsRace: many clients put one name at once; it is there once, as one of
// them wanted.
func TestPutsRace(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	answers := make(chan *httptest.ResponseRecorder)
	const clients = 8
	for i := range clients {
		go func() {
			answers <- s.send("PUT", named("one"), fmt.Sprintf(`{"spec":"%d 3 * * *","job":{"queue":"test"}}`, i))
		}()
	}
	made := map[string]bool{}
	outcomes := map[string]int{}
	for range clients {
		w := <-answers
		if w.Code != 200 && w.Code != 201 {
			t.Errorf("status %d: %s", w.Code, w.Body)
			continue
		}
		got := want[api.PutResult](s, w, w.Code)
		made[got.ID] = true
		outcomes[got.Outcome]++
	}
	if diff := cmp.Diff(map[string]int{"created": 1, "replaced": clients - 1}, outcomes); diff != "" || len(made) != 1 {
		t.Errorf("%d schedules; %s", len(made), diff)
	}
	if got := want[api.Schedule](s, s.send("GET", named("one"), nil), 200); got.Version != clients {
		t.Errorf("version %d after %d puts", got.Version, clients)
	}
}

func TestNamesOfAnotherTenant(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	mine := want[api.PutResult](s, s.send("PUT", named("x"), putBody), 201)
	other := s.as(s.addKey(uuid.New(), "write"))
	for _, method := range []string{"GET", "DELETE"} {
		foreign, unknown := other.send(method, named("x"), nil), other.send(method, named("y"), nil)
		problem(other, foreign, 404)
		if diff := cmp.Diff(unknown.Body.String(), foreign.Body.String()); diff != "" {
			t.Errorf("%s tells that it exists: %s", method, diff)
		}
	}
	if theirs := want[api.PutResult](other, other.send("PUT", named("x"), putBody), 201); theirs.ID == mine.ID {
		t.Error("two tenants share a schedule")
	}
	if got := want[api.Schedule](s, s.send("GET", named("x"), nil), 200); got.ID != mine.ID || got.Version != 1 || time.Since(got.CreatedAt) > time.Hour {
		t.Errorf("mine is now %+v", got)
	}
}
