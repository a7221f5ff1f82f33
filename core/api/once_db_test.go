package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

// TestSameRequestAgain: under an idempotency key a request makes one thing,
// however often and at how many places at once it is sent.
func TestSameRequestAgain(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		key := []string{"Idempotency-Key", "order-4711"}
		made := want[api.Schedule](s, s.send("POST", "/v1/schedules", daily("a"), key...), 201)
		w := s.send("POST", "/v1/schedules", daily("a"), key...)
		if again := want[api.Schedule](s, w, 201); again.ID != made.ID || w.Header().Get("Idempotency-Replayed") != "true" {
			s.Errorf("made %s, then %s", made.ID, again.ID)
		}
		path := "/v1/schedules/" + made.ID
		want[api.Schedule](s, s.send("PATCH", path, `{"overlap":"allow","name":"renamed"}`), 200)
		if again := want[api.Schedule](s, s.send("POST", "/v1/schedules", daily("a"), key...), 201); again.ID != made.ID || again.Name != "renamed" {
			s.Errorf("after an edit the answer is %+v", again)
		}
		if p := problem(s, s.send("POST", "/v1/schedules", daily("b"), key...), 422); p.Code != "idempotency_mismatch" || p.Field != "Idempotency-Key" {
			s.Errorf("another body: %+v", p)
		}
		if p := problem(s, s.send("POST", path+"/trigger", nil, key...), 422); p.Code != "idempotency_mismatch" {
			s.Errorf("another route: %+v", p)
		}
		runs := make([]string, 6)
		var wg sync.WaitGroup
		for i := range runs {
			wg.Go(func() {
				runs[i] = want[api.Run](s, s.send("POST", path+"/trigger", nil, "Idempotency-Key", "t"), 202).ID
			})
		}
		wg.Wait()
		list := want[api.List[api.Run]](s, s.send("GET", path+"/runs", nil), 200)
		if len(list.Items) != 1 || strings.Join(runs, " ") != strings.TrimSpace(strings.Repeat(list.Items[0].ID+" ", len(runs))) {
			s.Errorf("one request made %d runs: %q", len(list.Items), runs)
		}
		if w := s.send("POST", path+"/trigger", nil, "Idempotency-Key", "u"); w.Code != 202 || w.Header().Get("Idempotency-Replayed") != "" {
			s.Errorf("another key: %d %s", w.Code, w.Header().Get("Idempotency-Replayed"))
		}
		if w := s.send("DELETE", path, nil); w.Code != 204 {
			s.Fatal(w.Body)
		}
		if p := problem(s, s.send("POST", "/v1/schedules", daily("a"), key...), 409); p.Code != "already_deleted" {
			s.Errorf("after its end: %+v", p)
		}
		for _, bad := range []string{"a b", "é", strings.Repeat("x", 256), "a\x7f"} {
			if p := problem(s, s.send("POST", "/v1/schedules", daily("c"), "Idempotency-Key", bad), 422); p.Field != "Idempotency-Key" {
				s.Errorf("key %q: %+v", bad, p)
			}
		}
	})
}

// TestBatchAgain: a batch to create, sent again under its key, makes nothing and
// has the ids of the first time.
func TestBatchAgain(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		in := map[string]any{"items": []api.ScheduleInput{daily("0"), daily("1"), daily("2")}}
		first := want[api.BatchResult](s, s.send("POST", "/v1/schedules/batch", in, "Idempotency-Key", "b"), 200)
		again := want[api.BatchResult](s, s.send("POST", "/v1/schedules/batch", in, "Idempotency-Key", "b"), 200)
		if diff := cmp.Diff(first, again); diff != "" || first.Created != 3 {
			s.Error(diff)
		}
		path := "/v1/schedules/"
		want[api.Schedule](s, s.send("PATCH", path+first.Items[0].ID, `{"name":"renamed"}`), 200)
		want[api.Schedule](s, s.send("PATCH", path+first.Items[1].ID, `{"name":"renamed too"}`), 200)
		other := s.create(daily("1"))
		if w := s.send("DELETE", path+first.Items[2].ID, nil); w.Code != 204 {
			s.Fatal(w.Body)
		}
		w := s.send("POST", "/v1/schedules/batch", in, "Idempotency-Key", "b")
		again = want[api.BatchResult](s, w, 200)
		for i := range 2 {
			if again.Items[i].ID != first.Items[i].ID || again.Items[i].ID == other.ID || again.Items[i].Status != 201 {
				s.Errorf("item %d, renamed since: %+v", i, again.Items[i])
			}
		}
		if p := again.Items[2].Problem; p == nil || p.Code != "already_deleted" || w.Header().Get("Idempotency-Replayed") != "true" {
			s.Errorf("item 2, deleted since: %+v", again.Items[2])
		}
		if list := want[api.List[api.Schedule]](s, s.send("GET", "/v1/schedules", nil), 200); len(list.Items) != 3 {
			s.Errorf("%d schedules", len(list.Items))
		}
	})
}

// TestVersionsThatAreDemanded: of two who change what they read, the second is
// told; the first, sent again, is not.
func TestVersionsThatAreDemanded(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		w := s.send("POST", "/v1/schedules", daily("a"))
		made := want[api.Schedule](s, w, 201)
		path, first := "/v1/schedules/"+made.ID, w.Header().Get("ETag")
		if first != `"1"` || s.send("GET", path, nil).Header().Get("ETag") != first {
			s.Errorf("ETag %s", first)
		}
		edit := func(body, tag string) *http.Response { return s.send("PATCH", path, body, "If-Match", tag).Result() }
		if r := edit(`{"timeout":"1m"}`, first); r.StatusCode != 200 || r.Header.Get("ETag") != `"2"` {
			s.Errorf("the first: %d %s", r.StatusCode, r.Header.Get("ETag"))
		}
		if r := edit(`{"timeout":"1m"}`, first); r.StatusCode != 200 || r.Header.Get("ETag") != `"2"` {
			s.Errorf("the first, sent again: %d %s", r.StatusCode, r.Header.Get("ETag"))
		}
		w = s.send("PATCH", path, `{"timeout":"2m"}`, "If-Match", first)
		p := problem(s, w, 412)
		told := []string{p.Code, p.Field, p.Detail, p.Current, w.Header().Get("ETag")}
		if diff := cmp.Diff([]string{"version_mismatch", "If-Match", "the current version is 2; read it again, and decide anew", "2", `"2"`}, told); diff != "" {
			s.Error(diff)
		}
		for tag, status := range map[string]int{
			`*`: 200, `"2"`: 200, `"1", "2"`: 200, `W/"1" ,"2"`: 200, `"a,b","2"`: 200, `W/"2"`: 412, `"3"`: 412, `"02"`: 412, `"x"`: 412, `"1,2"`: 412, `""`: 412,
			`2`: 422, `"`: 422, `"1" "2"`: 422, `,`: 422, `"2",`: 422, `"2", *`: 422, `W/2`: 422, "": 422, " ": 422,
		} {
			if r := edit(`{}`, tag); r.StatusCode != status {
				s.Errorf("If-Match %s: %d, want %d", tag, r.StatusCode, status)
			}
		}
		for _, c := range [][3]string{
			{"POST", path + "/pause", `"1"`}, {"POST", path + "/resume", `"9"`}, {"DELETE", path, `"1"`}, {"DELETE", "/v1/schedules/by-name/a", `"1"`},
		} {
			problem(s, s.send(c[0], c[1], nil, "If-Match", c[2]), 412)
		}
		whole := `{"spec":"@daily","job":{"queue":"test"}}`
		problem(s, s.send("PUT", "/v1/schedules/by-name/a", whole, "If-Match", `"1"`), 412)
		problem(s, s.send("PUT", "/v1/schedules/by-name/a?dry_run=true", whole, "If-Match", `"1"`), 412)
		problem(s, s.send("PUT", "/v1/schedules/by-name/none", whole, "If-Match", `"1"`), 412)
		problem(s, s.send("PUT", "/v1/schedules/by-name/none", whole, "If-Match", `*`), 412)
		for range 2 { // sent again it finds its own work
			want[api.PutResult](s, s.send("PUT", "/v1/schedules/by-name/a", whole, "If-Match", `"2"`), 200)
		}
		problem(s, s.send("PUT", "/v1/schedules/by-name/a", whole, "If-Match", `"1"`), 412) // equal, and yet not what was read
		want[api.PutResult](s, s.send("PUT", "/v1/schedules/by-name/a", whole, "If-Match", `*`), 200)
		want[api.Schedule](s, s.send("POST", path+"/pause", nil, "If-Match", `"3"`), 200)
		want[api.Schedule](s, s.send("POST", path+"/pause", nil, "If-Match", `"3"`), 200)
		if w := s.send("DELETE", path, nil, "If-Match", `"4"`); w.Code != 204 {
			s.Errorf("delete: %s", w.Body)
		}
	})
}

// TestLostUpdate: of many who edit what they read at the same time, one is answered
// with success, and the others know that they were late.
func TestLostUpdate(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(daily("a"))
		path := "/v1/schedules/" + made.ID
		answers := make([]*httptest.ResponseRecorder, 8)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				answers[i] = s.send("PATCH", path, fmt.Sprintf(`{"retry":{"max_attempts":%d}}`, 10+i), "If-Match", `"1"`)
			})
		}
		wg.Wait()
		got := want[api.Schedule](s, s.send("GET", path, nil), 200)
		won := 0
		for i, w := range answers {
			if w.Code == 200 {
				won++
				if edited := want[api.Schedule](s, w, 200); edited.Retry.MaxAttempts != 10+i || got.Retry.MaxAttempts != 10+i {
					s.Errorf("edit %d was answered with %d, and %d is stored", i, edited.Retry.MaxAttempts, got.Retry.MaxAttempts)
				}
				continue
			}
			problem(s, w, 412)
		}
		if won != 1 || got.Version != 2 {
			s.Errorf("%d of %d edits of version 1 won; now it is %d", won, len(answers), got.Version)
		}
	})
}

// TestHeadersThatSayNothing: a key or a tag that is there and says nothing, or two
// things, is refused on every route that changes something.
func TestHeadersThatSayNothing(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(daily("a"))
		for _, path := range []string{"", "/batch", "/" + made.ID + "/pause", "/" + made.ID + "/resume", "/" + made.ID + "/trigger"} {
			for name, values := range map[string][]string{"Idempotency-Key": {""}, "If-Match": {"", " "}} {
				if p := s.sendLines("POST", "/v1/schedules"+path, name, values); p.Code != 422 || !strings.Contains(p.Body.String(), name) {
					s.Errorf("%s %s: %q: %d %s", path, name, values, p.Code, p.Body)
				}
			}
			if p := s.sendLines("POST", "/v1/schedules"+path, "Idempotency-Key", []string{"a", "b"}); p.Code != 422 {
				s.Errorf("%s: two keys: %d", path, p.Code)
			}
		}
		if w := s.sendLines("POST", "/v1/schedules/"+made.ID+"/pause", "If-Match", []string{`"7"`, `"1"`}); w.Code != 200 {
			s.Errorf("two lines of tags: %s", w.Body)
		}
		if w := s.send("POST", "/v1/schedules/"+made.ID+"/resume", nil, "Idempotency-Key", "k"); w.Code != 200 {
			s.Errorf("a key where it changes nothing: %s", w.Body)
		}
	})
}

// sendLines sends a header in several lines, without a body.
func (s *server) sendLines(method, path, name string, values []string) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), method, path, nil)
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header[name] = values
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// TestPayloadForOneRun: a manual run may have a payload of its own, and nothing
// else.
func TestPayloadForOneRun(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"@daily","job":{"queue":"test","payload":{"n":1}},"overlap":"allow"}`)
		path := "/v1/schedules/" + made.ID + "/trigger"
		for body, payload := range map[string]string{"": "", `{}`: "", `{"payload":{"n":2}}`: `{"n":2}`, `{"payload":null}`: "null"} {
			run := want[api.Run](s, s.send("POST", path, body), 202)
			got := want[api.RunDetail](s, s.send("GET", "/v1/runs/"+run.ID, nil), 200)
			if diff := cmp.Diff(payload, strings.ReplaceAll(string(got.Payload), " ", "")); diff != "" {
				s.Errorf("%s: %s", body, diff)
			}
		}
		for _, bad := range []string{`[]`, `{"payload":1,"payload":2}`, `{"playload":1}`, `{"payload":"\u0000"}`, `{`} {
			if w := s.send("POST", path, bad); w.Code != 422 && w.Code != 400 {
				s.Errorf("%s: %d", bad, w.Code)
			}
		}
		problem(s, s.send("POST", path, `{"payload":"`+strings.Repeat("x", 257<<10)+`"}`), 413)
		problem(s, s.send("POST", path, `{"payload":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`), 400)
	})
}

// TestCancel: a waiting run ends, again and again; one that ended stays.
func TestCancel(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(daily("a"))
		trigger := "/v1/schedules/" + made.ID + "/trigger"
		run := want[api.Run](s, s.send("POST", trigger, nil), 202)
		for range 2 {
			got := want[api.Run](s, s.send("POST", "/v1/runs/"+run.ID+"/cancel", nil), 202)
			if got.State != "canceled" || got.Reason != "requested" || got.FinishedAt == nil {
				s.Errorf("%+v", got)
			}
		}
		want[api.Run](s, s.send("POST", trigger, nil), 202) // nothing is alive any more
		skipped := s.skipped()
		if p := problem(s, s.send("POST", "/v1/runs/"+skipped.ID+"/cancel", nil), 409); p.Code != "run_final" || p.Current != skipped.State || skipped.State != "skipped" {
			s.Errorf("a %s run: %+v", skipped.State, p)
		}
		problem(s, s.send("POST", "/v1/runs/"+nobodys()["run"]+"/cancel", nil), 404)
	})
}

// skipped returns the run of a slot that passed in a pause.
func (s *server) skipped() api.Run {
	s.Helper()
	past := time.Now().UTC().Add(-time.Minute).Truncate(time.Second).Format(time.RFC3339)
	path := "/v1/schedules/" + s.create(`{"name":"late","catch_up_within":"1h","spec":"at `+past+`","job":{"queue":"test"}}`).ID
	for _, what := range []string{"/pause", "/resume"} {
		want[api.Schedule](s, s.send("POST", path+what, nil), 200)
	}
	list := want[api.List[api.Run]](s, s.send("GET", path+"/runs", nil), 200)
	if len(list.Items) != 1 {
		s.Fatalf("%d runs of a slot that passed in a pause", len(list.Items))
	}
	return list.Items[0]
}
