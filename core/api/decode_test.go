package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// canary stands for a secret in a request: no answer may repeat it.
const canary = "canary-5e1f"

// wrongBody is a body with the problem that answers it.
type wrongBody struct {
	body   string
	status int
	code   string
	field  string
	detail string
}

const rest = `"name":"n","spec":"* * * * *"`

func checkBodies(t *testing.T, bodies []wrongBody) {
	t.Helper()
	s := newFake(t, &fakeStore{})
	for _, c := range bodies {
		w := s.send("POST", "/v1/schedules", c.body)
		p := problem(s, w, c.status)
		if diff := cmp.Diff([]string{c.code, c.field, c.detail}, []string{p.Code, p.Field, p.Detail}); diff != "" {
			t.Errorf("%.200s: %s", c.body, diff)
		}
		if strings.Contains(w.Body.String(), canary) || strings.Contains(s.log.String(), canary) {
			t.Errorf("%.200s is repeated: %s", c.body, w.Body)
		}
	}
}

func TestBodiesThatAreNoObject(t *testing.T) {
	t.Parallel()
	checkBodies(t, []wrongBody{
		{``, 400, "invalid", "", "the body is empty; send a JSON object"},
		{" \n", 400, "invalid", "", "the body is empty; send a JSON object"},
		{`{"name":"canary-5e1f"`, 400, "invalid", "", "the body ends before its JSON does: line 1, column 22"},
		{"{\n  \"name\": canary-5e1f}", 400, "invalid", "", "the body is not JSON: line 2, column 11"},
		{`{"name":"n"} canary-5e1f`, 400, "invalid", "", "the body goes on after its JSON: line 1, column 14"},
		{`{"name":"n"}{}`, 400, "invalid", "", "the body goes on after its JSON: line 1, column 13"},
		{"{\"name\":\"\xff\"}", 400, "invalid", "", "the body is not valid UTF-8: line 1, column 10"},
		{"\xef\xbb\xbf{}", 400, "invalid", "", "the body is not JSON: line 1, column 1"},
		{`["canary-5e1f"]`, 422, "invalid", "", "the body must be a JSON object"},
		{`null`, 422, "invalid", "", "the body must be a JSON object"},
		{`{"name":"]\"]","a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, 400, "invalid", "", "the body is nested deeper than 1000 levels: line 1, column 1019"},
	})
}

func TestWrongFields(t *testing.T) {
	t.Parallel()
	checkBodies(t, []wrongBody{
		{`{"job":{"queue":"test"},"spec":"@daily"}`, 422, "invalid", "name", "is required"},
		{`{"nam":"canary-5e1f",` + rest + `,"job":{"queue":"test"}}`, 422, "unknown_field", "nam", "is not a field here"},
		{`{"Name":"canary-5e1f",` + rest + `,"job":{"queue":"test"}}`, 422, "unknown_field", "Name", "is not a field here"},
		{`{"` + strings.Repeat("x", 100) + `":1,` + rest + `,"job":{"queue":"test"}}`, 422, "unknown_field", strings.Repeat("x", 64) + "…", "is not a field here"},
		{`{"name":1,"spec":"@daily","job":{"queue":"test"}}`, 422, "invalid", "name", "must be a string"},
		{`{"name":null,"spec":"@daily","job":{"queue":"test"}}`, 422, "invalid", "name", "must not be null; leave the field out instead"},
		{`{` + rest + `,"name":"canary-5e1f","job":{"queue":"test"}}`, 422, "invalid", "name", "is there twice"},
		{`{"name":"a\u0000b","spec":"@daily","job":{"queue":"test"}}`, 422, "invalid", "name", `holds \u0000, which the database cannot store`},
		{`{"name":"a\ud800b","spec":"@daily","job":{"queue":"test"}}`, 422, "invalid", "name", "holds half of a surrogate pair, which is no character"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"max_attempts":"5"}}`, 422, "invalid", "retry.max_attempts", "must be a whole number"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"max_attempts":1.5}}`, 422, "invalid", "retry.max_attempts", "must be a whole number"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"max_attempts":99999999999999999999}}`, 422, "invalid", "retry.max_attempts", "must be a whole number"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"max_attempts":0}}`, 422, "invalid", "retry.max_attempts", "must be between 1 and 1000; the first attempt counts"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":3}`, 422, "invalid", "retry", "must be an object"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"tries":3}}`, 422, "unknown_field", "retry.tries", "is not a field here"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"initial_delay":5}}`, 422, "invalid", "retry.initial_delay", `must be a string with a unit, such as "90s"`},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"initial_delay":"0s"}}`, 422, "invalid", "retry.initial_delay", "must be from 1ms to 7d"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"initial_delay":"2h"}}`, 422, "invalid", "retry.max_delay", "must be from the initial_delay, which is 2h, to 7d"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"multiplier":0.5}}`, 422, "invalid", "retry.multiplier", "must be from 1 to 100"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"multiplier":1e999}}`, 422, "invalid", "retry.multiplier", "must be a number"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"multiplier":"2"}}`, 422, "invalid", "retry.multiplier", "must be a number"},
		{`{` + rest + `,"job":{"queue":"test"},"retry":{"jitter":"none"}}`, 422, "invalid", "retry.jitter", "must be equal or full"},
		{`{` + rest + `,"job":{"queue":"test"},"total_timeout":"31d"}`, 422, "invalid", "total_timeout", `must be at most 30d; "0s" is no limit`},
		{`{` + rest + `,"job":{"queue":"test"},"timeout":90}`, 422, "invalid", "timeout", `must be a string with a unit, such as "90s"`},
		{`{` + rest + `,"job":{"queue":"test"},"timeout":"canary-5e1f"}`, 422, "invalid", "timeout", `is not a duration; write it as "90s", "15m", "3d" or "P3D"`},
		{`{` + rest + `,"job":{"queue":"test"},"anchor":"canary-5e1f"}`, 422, "invalid", "anchor", `must be a time such as "2027-01-05T09:00:00Z"`},
		{`{` + rest + `,"job":{"queue":"test"},"overlap":"canary-5e1f"}`, 422, "invalid", "overlap", "must be skip, allow, queue_one or cancel_previous"},
	})
}

func TestWrongJobs(t *testing.T) {
	t.Parallel()
	checkBodies(t, []wrongBody{
		{`{` + rest + `}`, 422, "invalid", "job", "is required"},
		{`{` + rest + `,"job":{}}`, 422, "invalid", "job.queue", "is required"},
		{`{` + rest + `,"job":{"queue":""}}`, 422, "invalid", "job.queue", "is required"},
		{`{` + rest + `,"job":{"queue":"canary-5e1f"}}`, 422, "invalid", "job.queue", "is not one that this installation serves; known are http, narrow, test, wide"},
		{`{` + rest + `,"job":"canary-5e1f"}`, 422, "invalid", "job", "must be an object"},
		{`{` + rest + `,"job":{"queue":"test","http":{}}}`, 422, "invalid", "job", "must have either http, or queue and payload, but not both"},
		{`{` + rest + `,"job":{"payload":1,"http":{}}}`, 422, "invalid", "job", "must have either http, or queue and payload, but not both"},
		{`{` + rest + `,"job":{"http":"canary-5e1f"}}`, 422, "invalid", "job.http", "must be an object"},
		{`{` + rest + `,"job":{"http":{"url":"bad"}}}`, 422, "invalid", "job.http.url", "must begin with http:// or https://"},
		{`{` + rest + `,"job":{"queue":"test","payload":{"url":"bad"}}}`, 422, "invalid", "job.payload.url", "must begin with http:// or https://"},
		{`{` + rest + `,"job":{"queue":"test","que":"canary-5e1f"}}`, 422, "unknown_field", "job.que", "is not a field here"},
		{`{` + rest + `,"job":{"queue":"test","queue":"canary-5e1f"}}`, 422, "invalid", "job.queue", "is there twice"},
	})
}

func TestPayloadsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	checkBodies(t, []wrongBody{
		{`{` + rest + `,"job":{"queue":"test","payload":{"a":["b\u0000"]}}}`, 422, "invalid", "job.payload", `holds \u0000, which the database cannot store`},
		{`{` + rest + `,"job":{"http":{"url":"x","body":"\u0000"}}}`, 422, "invalid", "job.http", `holds \u0000, which the database cannot store`},
		{`{` + rest + `,"job":{"queue":"test","payload":"\udc00\ud800"}}`, 422, "invalid", "job.payload", "holds half of a surrogate pair, which is no character"},
		{`{` + rest + `,"job":{"queue":"test","payload":{"a":{"b":1,"b":"canary-5e1f"}}}}`, 422, "invalid", "job.payload", "has an object with a key twice"},
		{`{` + rest + `,"job":{"queue":"test","payload":1e309}}`, 422, "invalid", "job.payload", "holds a number with more than 308 digits"},
		{`{` + rest + `,"job":{"queue":"test","payload":1E-99999999999999999999}}`, 422, "invalid", "job.payload", "holds a number with more than 308 digits"},
		{`{` + rest + `,"job":{"queue":"test","payload":[` + strings.Repeat("1e308,", 1000) + `1]}}`, 422, "invalid", "job.payload", "is larger than 256 KiB when its numbers are written out"},
		{`{` + rest + `,"job":{"queue":"test","payload":` + deep + `}}`, 422, "invalid", "job.payload", "is nested deeper than 64 levels"},
	})
}

func TestWrongPatches(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	for _, field := range []string{
		"name", "spec", "time_zone", "anchor", "job", "misfire", "misfire_grace", "overlap", "window", "timeout", "total_timeout", "retry",
	} {
		p := problem(s, s.send("PATCH", aSchedule, `{"`+field+`":null}`), 422)
		if p.Field != field || p.Detail != "must not be null; leave the field out instead" {
			t.Errorf("null for %s: %+v", field, p)
		}
	}
	for _, field := range []string{"id", "state", "version", "next_run_at", ""} {
		p := problem(s, s.send("PATCH", aSchedule, `{"`+field+`":null}`), 422)
		if p.Field != field || p.Code != "unknown_field" {
			t.Errorf("unknown %q: %+v", field, p)
		}
	}
	problem(s, s.send("PATCH", aSchedule, `[]`), 422)
	problem(s, s.send("PATCH", aSchedule, `{`), 400)
	problem(s, s.send("PATCH", aSchedule, ``), 400)
}

func TestOneAnswerTellsAllFaults(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	p := problem(s, s.send("POST", "/v1/schedules", `{"name":1,"x":2,"timeout":"?","job":{"q":1}}`), 422)
	want := []api.FieldError{
		{Field: "name", Code: "invalid", Message: "must be a string"},
		{Field: "x", Code: "unknown_field", Message: "is not a field here"},
		{Field: "timeout", Code: "invalid", Message: `is not a duration; write it as "90s", "15m", "3d" or "P3D"`},
		{Field: "job.q", Code: "unknown_field", Message: "is not a field here"},
		{Field: "job.queue", Code: "invalid", Message: "is required"},
		{Field: "spec", Code: "invalid", Message: "is required"},
	}
	if diff := cmp.Diff(want, p.Errors); diff != "" {
		t.Error(diff)
	}
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, `"x%d":1,`, i)
	}
	p = problem(s, s.send("POST", "/v1/schedules", `{`+b.String()+`"y":1}`), 422)
	if len(p.Errors) != 30 {
		t.Errorf("%d faults are listed, want 30", len(p.Errors))
	}
}

func TestJobForms(t *testing.T) {
	t.Parallel()
	for body, job := range map[string]api.Job{
		`{"queue":"test"}`: {Queue: "test", Payload: json.RawMessage(`null`)},
		`{"payload":{"a":[1,"\u00e9"]},"queue":"test"}`: {Queue: "test", Payload: json.RawMessage(`{"a":[1,"\u00e9"]}`)},
		`{"queue":"test","payload":"\ud83d\ude00"}`:     {Queue: "test", Payload: json.RawMessage(`"\ud83d\ude00"`)},
		`{"http":{"url":"https://example.com"}}`:        {Queue: "http", Payload: json.RawMessage(`{"url":"https://example.com"}`)},
	} {
		s := newFake(t, &fakeStore{})
		w := s.send("POST", "/v1/schedules", `{"name":"n","spec":"@daily","job":`+body+`}`)
		if diff := cmp.Diff(job, want[api.Schedule](s, w, 201).Job); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

// countingReader tells how much of an endless body was read.
type countingReader struct{ read int }

func (r *countingReader) Read(p []byte) (int, error) {
	r.read += len(p)
	return copy(p, bytes.Repeat([]byte(" "), len(p))), nil
}

func TestBodyIsBounded(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	body := []byte(`{"name":"n","spec":"@daily","job":{"queue":"test"}}`)
	full := append(body, bytes.Repeat([]byte(" "), core.MaxPayloadBytes-len(body))...)
	want[api.Schedule](s, s.send("POST", "/v1/schedules", full), 201)
	if p := problem(s, s.send("POST", "/v1/schedules", append(full, ' ')), 413); p.Code != "too_large" {
		t.Errorf("code is %q", p.Code)
	}
	// A body of unknown length is read up to the bound.
	if p := problem(s, s.send("POST", "/v1/schedules", io.MultiReader(bytes.NewReader(full), strings.NewReader(" "))), 413); p.Code != "too_large" {
		t.Errorf("code is %q", p.Code)
	}
	endless := &countingReader{}
	problem(s, s.send("POST", "/v1/schedules", endless), 413)
	if endless.read > core.MaxPayloadBytes+1<<10 {
		t.Errorf("%d bytes were read", endless.read)
	}
	// Nothing is read for a caller that may not write.
	unread := &countingReader{}
	problem(s, s.as(s.addKey(uuid.New(), "read")).send("POST", "/v1/schedules", unread), 403)
	if unread.read > 0 {
		t.Errorf("%d bytes were read for nothing", unread.read)
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	for claimed, status := range map[string]int{
		"":                                  201,
		"application/json":                  201,
		"Application/JSON; charset=UTF-8":   201,
		"application/json; charset=latin1":  415,
		"application/merge-patch+json":      201,
		"application/x-www-form-urlencoded": 415,
		"text/plain":                        415,
		"application/json;;;=":              415,
		"canary-5e1f":                       415,
	} {
		w := s.send("POST", "/v1/schedules", `{"name":"n","spec":"@daily","job":{"queue":"test"}}`, "Content-Type", claimed)
		if w.Code != status {
			t.Errorf("%q: status %d, want %d: %s", claimed, w.Code, status, w.Body)
		}
		if status == 415 {
			if p := problem(s, w, 415); p.Code != "unsupported_media_type" || strings.Contains(w.Body.String(), canary) {
				t.Errorf("answer is %s", w.Body)
			}
		}
	}
}

func TestWrongQueries(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{err: errors.New("the store was asked")})
	for _, c := range []struct{ path, code, field string }{
		{"/v1/schedules?limit=0", "invalid", "limit"},
		{"/v1/schedules?limit=1001", "invalid", "limit"},
		{"/v1/schedules?limit=1000000", "invalid", "limit"},
		{aSchedule + "/runs?limit=0", "invalid", "limit"},
		{aSchedule + "/runs?limit=1000000", "invalid", "limit"},
		{"/v1/schedules?limit=canary-5e1f", "invalid", "limit"},
		{"/v1/schedules?cursor=canary-5e1f", "invalid", "cursor"},
		{"/v1/schedules?cursor=AQAAAAAAAAAAAAAAAAAAAA", "invalid", "cursor"},
		{"/v1/schedules?cursor=AgAAAAAAAAAAAAAAAAAAAAA", "invalid", "cursor"},
		{"/v1/schedules?cursor=AQAAAAAAAAAAAAAAAAAAAAB", "invalid", "cursor"},
		{"/v1/schedules?canary-5e1f=1", "unknown_field", ""},
		{aSchedule + "/runs?limit=-1", "invalid", "limit"},
		{"/v1/schedules?state=canary-5e1f", "invalid", "state"},
		{"/v1/schedules?state=active,,paused", "invalid", "state"},
		{"/v1/schedules?labels=canary-5e1f%20=%20a=,", "invalid", "labels"},
		{"/v1/schedules?labels=-x", "invalid", "labels"},
		{"/v1/schedules?labels=a!", "invalid", "labels"},
		{"/v1/schedules?name=a%00b", "invalid", "name"},
		{"/v1/schedules?name_prefix=a%0Ab", "invalid", "name_prefix"},
		{"/v1/schedules?queue=a%FFb", "invalid", "queue"},
		{aSchedule + "/runs?to=canary-5e1f", "invalid", "to"},
		{aSchedule + "/runs?from=2027-01-05", "invalid", "from"},
		{aSchedule + "/runs?state=active", "invalid", "state"},
		{aSchedule + "/runs?cursor=AAAA", "invalid", "cursor"},
		{aSchedule + "/runs?before=2027-01-05T00:00:00Z", "unknown_field", ""},
		{aSchedule + "?limit=1", "unknown_field", ""},
		{"/v1/schedules?name_prefix=50%", "invalid", ""},
		{"/v1/schedules?labels=a=50%&limit=1", "invalid", ""},
		{"/v1/schedules?stat%=active", "invalid", ""},
		{"/v1/schedules?state=active&state=paused", "invalid", "state"},
		{"/v1/schedules?%73tate=active&limit=1&state=active", "invalid", "state"},
		{aSchedule + "/runs?from=2027-01-05T00:00:00Z&from=2028-01-05T00:00:00Z", "invalid", "from"},
		{"/v1/schedules?canary-5e1f=1&canary-5e1f=1", "unknown_field", ""},
	} {
		w := s.send("GET", c.path, nil)
		p := problem(s, w, 422)
		if diff := cmp.Diff([]string{c.code, c.field}, []string{p.Code, p.Field}); diff != "" {
			t.Errorf("%s: %s", c.path, diff)
		}
		if strings.Contains(w.Body.String(), canary) {
			t.Errorf("%s is repeated: %s", c.path, w.Body)
		}
	}
}

// FuzzCreate sends any body: no answer repeats a value, none is a fault of ours,
// and what was taken comes back as it was sent.
func FuzzCreate(f *testing.F) {
	for _, body := range []string{
		`{"name":"n","spec":"@daily","job":{"queue":"test","payload":{"a":[1,true,null,"x"]}}}`,
		`{"name":"n","spec":"every 15m","job":{"http":{"url":"https://example.com"}},"anchor":"2027-01-05T09:00:00Z"}`,
		`{"name":"canary-5e1f","spec":"canary-5e1f","time_zone":"canary-5e1f","job":{"queue":"canary-5e1f"}}`,
		`{"overlap":"canary-5e1f","misfire":"canary-5e1f","timeout":"canary-5e1f","retry":{"max_attempts":"canary-5e1f","jitter":"canary-5e1f","multiplier":"canary-5e1f"}}`,
		"{\"name\":\"\\u0000\",\"job\":{\"queue\":\"test\",\"payload\":\"\\ud800\"}}",
		`{"a":1,"a":2}`, `{`, `null`, ``, "\xff", `[[[[`, `{"name":"n","spec":"in 3d","job":{"queue":"test","payload":1e400}}`,
	} {
		f.Add([]byte(body))
	}
	shared := newServer(f, &fakeStore{}, &fakeKeys{}, func(c *api.Config) { c.Logger = slog.New(slog.DiscardHandler) })
	f.Fuzz(func(t *testing.T, body []byte) {
		s := shared.as(shared.key)
		s.TB = t
		w := s.send("POST", "/v1/schedules", body)
		switch {
		case w.Code == 201:
			var sent struct{ Job struct{ Payload, HTTP any } }
			var got struct{ Job struct{ Payload any } }
			if err := errors.Join(json.Unmarshal(body, &sent), json.Unmarshal(w.Body.Bytes(), &got)); err != nil {
				t.Fatalf("%q was answered by %s: %v", body, w.Body, err)
			}
			payload := sent.Job.Payload
			if sent.Job.HTTP != nil {
				payload = sent.Job.HTTP
			}
			if diff := cmp.Diff(payload, got.Job.Payload); diff != "" {
				t.Fatalf("%q: %s", body, diff)
			}
		case w.Code != 400 && w.Code != 413 && w.Code != 422:
			t.Fatalf("status %d for %q: %s", w.Code, body, w.Body)
		default:
			p := problem(s, w, w.Code)
			// Names may be told, values may not.
			if strings.Contains(p.Detail, canary) {
				t.Fatalf("%q is repeated: %s", body, w.Body)
			}
		}
	})
}
