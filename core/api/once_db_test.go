package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

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
		for i := range first.Items {
			if first.Items[i].ID == "" || first.Items[i].ID != again.Items[i].ID || again.Items[i].Problem != nil {
				s.Errorf("item %d: %+v, then %+v", i, first.Items[i], again.Items[i])
			}
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
		p := problem(s, s.send("PATCH", path, `{"timeout":"2m"}`, "If-Match", first), 412)
		if diff := cmp.Diff([]string{"version_mismatch", "If-Match", "the schedule has version 2; read it again, and decide anew"}, []string{p.Code, p.Field, p.Detail}); diff != "" {
			s.Error(diff)
		}
		for tag, status := range map[string]int{`*`: 200, `"2"`: 200, `"1", "2"`: 200, `W/"2"`: 412, `"3"`: 412, `"02"`: 412, `"x"`: 412, `2`: 422, `"`: 422, `"1" "2"`: 422, `,`: 422} {
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
		problem(s, s.send("PUT", "/v1/schedules/by-name/none", whole, "If-Match", `"1"`), 412)
		want[api.PutResult](s, s.send("PUT", "/v1/schedules/by-name/a", whole, "If-Match", `"2"`), 200)
		want[api.Schedule](s, s.send("POST", path+"/pause", nil, "If-Match", `"3"`), 200)
		want[api.Schedule](s, s.send("POST", path+"/pause", nil, "If-Match", `"3"`), 200)
		if w := s.send("DELETE", path, nil, "If-Match", `"4"`); w.Code != 204 {
			s.Errorf("delete: %s", w.Body)
		}
	})
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
		problem(s, s.send("POST", "/v1/runs/"+nobodys()["run"]+"/cancel", nil), 404)
	})
}
