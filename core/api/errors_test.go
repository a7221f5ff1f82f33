package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

const aSchedule = "/v1/schedules/0190d4b2-0000-7000-8000-000000000000"

// problemAnswer is what a caller sees of an error.
type problemAnswer struct {
	Status                         int
	Code, Field, Retry, Challenged string
}

func TestErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	type answer = problemAnswer
	for name, c := range map[string]struct {
		method string
		err    error
		want   answer
	}{
		"invalid":                    {"GET", core.Invalid("spec", "is wrong"), answer{422, "invalid", "spec", "", ""}},
		"not found":                  {"GET", core.ErrNotFound, answer{404, "not_found", "", "", ""}},
		"name taken":                 {"POST", core.ErrNameTaken, answer{409, "name_taken", "name", "", ""}},
		"run live":                   {"POST", core.ErrRunLive, answer{409, "run_live", "", "", ""}},
		"changed":                    {"POST", core.ErrChanged, answer{409, "changed", "", "", ""}},
		"unauthorized":               {"GET", &core.Error{Code: core.CodeUnauthorized, Message: "no"}, answer{401, "unauthorized", "", "", `Bearer realm="fencepost"`}},
		"throttled":                  {"GET", core.ErrQueueFull, answer{429, "throttled", "", "1", ""}},
		"unreachable":                {"GET", &core.Error{Code: core.CodeUnavailable, Kind: "database_unreachable", Message: "no"}, answer{503, "unavailable", "", "1", ""}},
		"unreachable, cause unknown": {"GET", &core.Error{Code: core.CodeUnavailable, Message: "no", Err: core.ErrUnknownOutcome}, answer{503, "unavailable", "", "1", ""}},
		"unknown outcome, written":   {"POST", core.ErrUnknownOutcome, answer{503, "unknown_outcome", "", "1", ""}},
		"unknown outcome, read":      {"GET", core.ErrUnknownOutcome, answer{503, "unavailable", "", "1", ""}},
		"bad row":                    {"GET", core.ErrBadRow, answer{422, "invalid", "", "", ""}},
		"no code":                    {"GET", errors.New("hidden"), answer{500, "internal", "", "", ""}},
		"internal":                   {"GET", &core.Error{Code: core.CodeInternal, Message: "hidden"}, answer{500, "internal", "", "", ""}},
		"canceled":                   {"GET", context.Canceled, answer{503, "unavailable", "", "1", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkError(t, c.method, c.err, c.want)
		})
	}
}

func checkError(t *testing.T, method string, err error, want problemAnswer) {
	s := newFake(t, &fakeStore{err: fmt.Errorf("read: %w: %w", err, errors.New("hidden"))})
	path, body := aSchedule, any(nil)
	if method == "POST" {
		path, body = "/v1/schedules", `{"name":"n","spec":"* * * * *","job":{"queue":"test"}}`
	}
	w := s.send(method, path, body)
	p := problem(s, w, want.Status)
	got := problemAnswer{w.Code, p.Code, p.Field, w.Header().Get("Retry-After"), w.Header().Get("WWW-Authenticate")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(w.Body.String(), "hidden") {
		t.Errorf("the cause is in the answer: %s", w.Body)
	}
	times := 0
	if want.Status >= 500 {
		times = 1
	}
	if strings.Count(s.log.String(), `"error":"`) != times || strings.Contains(s.log.String(), "hidden") != (times == 1) {
		t.Errorf("want the cause logged %d times: %s", times, s.log)
	}
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{panic: true})
	w := s.send("GET", aSchedule, nil)
	if p := problem(s, w, 500); p.Code != "internal" {
		t.Errorf("code is %q", p.Code)
	}
	id := w.Header().Get("X-Request-Id")
	if id == "" || !strings.Contains(s.log.String(), "the store is broken") || !strings.Contains(s.log.String(), id) {
		t.Errorf("want the panic logged under %q: %s", id, s.log)
	}
}

func TestRequestEndsAfterTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFake(t, &fakeStore{block: true})
		p := problem(s, s.send("GET", aSchedule, nil), 503)
		if p.Code != "unavailable" {
			t.Errorf("code is %q", p.Code)
		}
	})
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	for _, c := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/", 404, "not_found", ""},
		{"GET", "/v1/nothing", 404, "not_found", ""},
		{"GET", "/v1/schedules/", 404, "not_found", ""},
		{"POST", "//v1/schedules", 404, "not_found", ""},
		{"GET", "/v1/../v1/schedules", 404, "not_found", ""},
		{"PUT", "/v1/schedules", 405, "method_not_allowed", "GET, HEAD, POST"},
		{"OPTIONS", "/v1/schedules", 405, "method_not_allowed", "GET, HEAD, POST"},
		{"POST", "/v1/runs/run_x", 405, "method_not_allowed", "GET, HEAD"},
		{"DELETE", "/healthz", 405, "method_not_allowed", "GET, HEAD"},
		{"GET", "/docs", 404, "not_found", ""},
		{"GET", "/schemas/Run.json", 404, "not_found", ""},
	} {
		w := s.send(c.method, c.path, nil)
		p := problem(s, w, c.status)
		if diff := cmp.Diff([]string{c.code, c.allow}, []string{p.Code, w.Header().Get("Allow")}); diff != "" {
			t.Errorf("%s %s: %s", c.method, c.path, diff)
		}
	}
}

// TestConditionsThatNobodyLooksAt: who demands a condition learns that it is not
// judged, before anything is done; of a read it is no matter.
func TestConditionsThatNobodyLooksAt(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{err: errors.New("the store was asked")})
	for _, c := range [][3]string{
		{"PUT", "/v1/schedules/by-name/n", "If-None-Match"},
		{"PATCH", aSchedule, "If-Unmodified-Since"},
		{"DELETE", aSchedule, "If-Modified-Since"},
		{"POST", aSchedule + "/trigger", "If-Match"},
		{"POST", "/v1/schedules", "If-Match"},
		{"POST", "/v1/schedules/batch", "If-Match"},
	} {
		var body any
		if c[0] == "PUT" || c[0] == "PATCH" {
			body = `{"spec":"@daily","job":{"queue":"test"}}`
		}
		if p := problem(s, s.send(c[0], c[1], body, c[2], "*"), 422); p.Field != c[2] {
			t.Errorf("%s %s with %s: %+v", c[0], c[1], c[2], p)
		}
	}
	calm := newFake(t, &fakeStore{})
	if w := calm.send("GET", aSchedule, nil, "If-None-Match", `"1"`); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestMalformedIDsAreUnknown(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{err: errors.New("the store was asked")})
	for _, id := range []string{"x", "0190D4B2-0000-7000-8000-000000000000", "{0190d4b2-0000-7000-8000-000000000000}", "0190d4b2000070008000000000000000", "%00", "%FF"} {
		for _, r := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/pause"}, {"POST", "/resume"}, {"POST", "/trigger"}, {"GET", "/runs"}} {
			w := s.send(r[0], "/v1/schedules/"+id+r[1], nil)
			if p := problem(s, w, 404); p.Code != "not_found" {
				t.Errorf("%s %s: code is %q", r[0], id, p.Code)
			}
		}
		problem(s, s.send("PATCH", "/v1/schedules/"+id, `{}`), 404)
		problem(s, s.send("GET", "/v1/runs/"+id, nil), 404)
		problem(s, s.send("GET", "/v1/runs/run_"+id, nil), 404)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	t.Run("is 503 while the database fails, and health is not", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, &fakeStore{}, &fakeKeys{}, func(c *api.Config) {
			c.Ready = func(context.Context) error { return errors.New("hidden") }
		}).as("")
		w := s.send("GET", "/readyz", nil)
		if p := problem(s, w, 503); p.Code != "unavailable" || strings.Contains(w.Body.String(), "hidden") || w.Header().Get("Retry-After") == "" {
			t.Errorf("answer is %s", w.Body)
		}
		if got := want[api.Health](s, s.send("GET", "/healthz", nil), 200); got != (api.Health{Status: "ok", Version: "1.2.3"}) {
			t.Errorf("health is %+v", got)
		}
	})
	t.Run("is 503 when the database takes longer than 2 seconds", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, &fakeStore{}, &fakeKeys{}, func(c *api.Config) {
				c.Ready = func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
			}).as("")
			if p := problem(s, s.send("GET", "/readyz", nil), 503); p.Code != "unavailable" {
				t.Errorf("the code is %q", p.Code)
			}
			if !strings.Contains(s.log.String(), "within 2 seconds") {
				t.Errorf("log is %s", s.log)
			}
		})
	})
	t.Run("is 200 when the database answers", func(t *testing.T) {
		t.Parallel()
		s := newFake(t, &fakeStore{}).as("")
		want[api.Health](s, s.send("GET", "/readyz?from=a-load-balancer", nil), http.StatusOK)
	})
}

func TestConfigMustBeWhole(t *testing.T) {
	t.Parallel()
	if _, err := api.New(api.Config{}); err == nil {
		t.Error("an empty Config was taken")
	}
}

func TestKeysAreHashed(t *testing.T) {
	t.Parallel()
	first, hash := api.NewKey()
	second, _ := api.NewKey()
	if !strings.HasPrefix(first, "fp_") || len(first) != 29 || first == second || hash != api.HashKey(first) {
		t.Errorf("keys are %q and %q", first, second)
	}
	if _, err := uuid.Parse(first); err == nil {
		t.Error("a key can be taken for an id")
	}
}
