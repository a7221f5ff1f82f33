package api_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

type openAPI struct {
	OpenAPI string `json:"openapi"`
	Info    struct{ Version string }
	Paths   map[string]map[string]struct {
		Security   []map[string][]string
		Parameters []struct {
			Name   string
			In     string
			Schema map[string]any
		}
		RequestBody *struct {
			Content map[string]struct {
				Schema struct {
					Properties           map[string]any
					AdditionalProperties bool
					Required             []string
				}
			}
		}
		Responses map[string]struct {
			Content map[string]any
			Headers map[string]any
		}
	}
	Components struct{ Schemas map[string]any }
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{}).as("")
	w := s.send("GET", "/openapi.json", nil)
	got := want[openAPI](s, w, 200)
	if w.Header().Get("Content-Type") != "application/openapi+json" || got.OpenAPI != "3.1.0" || got.Info.Version != "1.2.3" {
		t.Errorf("%s %s %s", w.Header().Get("Content-Type"), got.OpenAPI, got.Info.Version)
	}
	scopes := map[string]string{} // that the routes need
	for path, methods := range got.Paths {
		for method, o := range methods {
			scope := ""
			if len(o.Security) > 0 {
				scope = strings.Join(o.Security[0]["key"], " ")
			}
			scopes[method+" "+path] = scope
			if _, ok := o.Responses["default"].Content["application/problem+json"]; !ok {
				t.Errorf("%s %s does not tell of its problems", method, path)
			}
		}
	}
	want := map[string]string{}
	for name, r := range routes() {
		method, path, _ := strings.Cut(name, " ")
		want[strings.ToLower(method)+" "+path] = r.scope
	}
	if diff := cmp.Diff(want, scopes); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"/v1/schedules", "/v1/schedules/{id}/runs"} {
		params := got.Paths[path]["get"].Parameters
		if diff := cmp.Diff(map[string]any{"type": "integer", "minimum": 1.0, "maximum": 1000.0, "default": 100.0}, params[0].Schema); diff != "" {
			t.Errorf("limit of %s: %s", path, diff)
		}
	}
	if strings.Contains(w.Body.String(), "ErrorModel") || strings.Contains(w.Body.String(), "$schema") || strings.Contains(w.Body.String(), "octet-stream") {
		t.Errorf("huma's own models and links are in it: %s", w.Body)
	}
}

// TestHeadersAreDescribed lists what each route takes and answers beside bodies.
func TestHeadersAreDescribed(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	got := map[string]string{}
	for path, methods := range want[openAPI](s, s.send("GET", "/openapi.json", nil), 200).Paths {
		for method, o := range methods {
			var all []string
			for _, p := range o.Parameters {
				if p.In == "header" {
					all = append(all, p.Name)
				}
			}
			for status, r := range o.Responses {
				for name := range r.Headers {
					all = append(all, status+" "+name)
				}
			}
			slices.Sort(all)
			all = slices.DeleteFunc(all, func(name string) bool { return name == "default Retry-After" })
			if len(all) > 0 {
				got[method+" "+path] = strings.Join(all, ", ")
			}
		}
	}
	const changed = "200 ETag, If-Match, default ETag"
	expected := map[string]string{
		"post /v1/queues/{queue}/lease":        "Idempotency-Key",
		"post /v1/schedules":                   "201 ETag, 201 Idempotency-Replayed, 201 Location, Idempotency-Key",
		"post /v1/schedules/batch":             "200 Idempotency-Replayed, Idempotency-Key",
		"get /v1/schedules/{id}":               "200 ETag",
		"patch /v1/schedules/{id}":             changed,
		"delete /v1/schedules/{id}":            "If-Match, default ETag",
		"post /v1/schedules/{id}/pause":        changed,
		"post /v1/schedules/{id}/resume":       changed,
		"post /v1/schedules/{id}/trigger":      "202 Idempotency-Replayed, 202 Location, Idempotency-Key",
		"post /v1/schedules/{id}/backfill":     "202 Idempotency-Replayed, 202 Location, Idempotency-Key",
		"get /v1/schedules/{id}/exceptions":    "200 ETag",
		"post /v1/schedules/{id}/exceptions":   changed,
		"delete /v1/schedules/{id}/exceptions": changed,
		"get /v1/calendars/{name}":             "200 ETag",
		"put /v1/calendars/{name}":             "200 ETag, 201 ETag, If-Match, default ETag",
		"delete /v1/calendars/{name}":          "If-Match, default ETag",
		"get /v1/schedules/by-name/{name}":     "200 ETag",
		"put /v1/schedules/by-name/{name}":     "200 ETag, 200 Location, 201 ETag, 201 Location, If-Match, default ETag",
		"delete /v1/schedules/by-name/{name}":  "If-Match, default ETag",
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Error(diff)
	}
}

// TestDescriptionIsWhatTheDecoderTakes keeps the documented fields and the
// decoder's switch together.
func TestDescriptionIsWhatTheDecoderTakes(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	doc := want[openAPI](s, s.send("GET", "/openapi.json", nil), 200)
	create := doc.Paths["/v1/schedules"]["post"].RequestBody.Content
	change := doc.Paths["/v1/schedules/{id}"]["patch"].RequestBody.Content
	if diff := cmp.Diff([]string{"application/json"}, slices.Sorted(maps.Keys(create))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"application/json", "application/merge-patch+json"}, slices.Sorted(maps.Keys(change))); diff != "" {
		t.Error(diff)
	}
	schema := create["application/json"].Schema
	if diff := cmp.Diff([]string{"name", "spec", "job"}, schema.Required); diff != "" || schema.AdditionalProperties {
		t.Errorf("required: %s", diff)
	}
	if patch := change["application/json"].Schema; len(patch.Required) > 0 || patch.AdditionalProperties {
		t.Errorf("a patch requires %s", patch.Required)
	}
	body := map[string]any{"undocumented": true}
	for name := range schema.Properties {
		body[name] = nil
	}
	p := problem(s, s.send("PATCH", aSchedule, body), 422)
	if len(p.Errors) != len(body) {
		t.Errorf("%d faults of %d fields", len(p.Errors), len(body))
	}
	for _, f := range p.Errors {
		if (f.Code == "unknown_field") != (f.Field == "undocumented") {
			t.Errorf("%s is %s", f.Field, f.Code)
		}
	}
}

// TestDescriptionIsSafeForManyReaders is for the race detector: huma's own
// route would marshal at the first request.
func TestDescriptionIsSafeForManyReaders(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if w := s.send("GET", "/openapi.json", nil); !json.Valid(w.Body.Bytes()) {
				t.Error("not JSON")
			}
		})
	}
	wait.Wait()
	want[api.Health](s, s.send("GET", "/healthz", nil), 200)
}
