package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/schedules"
)

// described checks that an API does what its OpenAPI document says: each answer
// has a status, a content type and a shape that are documented, and so has each
// JSON body that it accepts. All servers of these tests are such.
type described struct {
	testing.TB
	http.Handler
}

func (d described) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	r.Body = io.NopCloser(io.TeeReader(r.Body, &body))
	answer := httptest.NewRecorder()
	d.Handler.ServeHTTP(answer, r)
	document, err := theDocument()
	if err == nil {
		err = document.check(r, body.Bytes(), answer)
	}
	if err != nil {
		d.Errorf("%s %s: %v\n%.2000s", r.Method, r.URL, err, answer.Body)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// description is an OpenAPI document whose schemas can be asked.
type description struct {
	paths map[string]map[string]operation

	mu      sync.Mutex
	schemas *jsonschema.Compiler
	answers map[string]int // by operation and status: that were checked
}

type operation struct {
	Responses map[string]struct{ Content map[string]any }
}

var theDocument = sync.OnceValues(func() (*description, error) {
	h, err := api.New(api.Config{
		Service: schedules.New(&fakeStore{}, region, nil), Keys: &fakeKeys{}, Clock: &manualClock{}, Version: "1.2.3", Logger: slog.New(slog.DiscardHandler),
		Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.json", http.NoBody))
	var document struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		return nil, err
	}
	whole, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil {
		return nil, err
	}
	d := &description{paths: document.Paths, schemas: jsonschema.NewCompiler(), answers: map[string]int{}}
	d.schemas.AssertFormat()
	return d, d.schemas.AddResource("openapi.json", whole)
})

const byName = "/v1/schedules/by-name/{name}"

func (d *description) check(r *http.Request, body []byte, w *httptest.ResponseRecorder) error {
	contentType, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	path := d.path(r)
	if path == "" {
		if contentType == "application/openapi+json" {
			return nil
		}
		return d.valid(w.Body.Bytes(), "components", "schemas", "Problem")
	}
	method := strings.ToLower(r.Method)
	status := strconv.Itoa(w.Code)
	d.count(method + " " + path + " " + status)
	responses := d.paths[path][method].Responses
	if _, ok := responses[status]; !ok {
		status = "default"
		if w.Code < 400 {
			return fmt.Errorf("status %d is not documented", w.Code)
		}
	}
	content := responses[status].Content
	if len(content) == 0 && w.Body.Len() == 0 {
		return nil
	}
	if _, ok := content[contentType]; !ok {
		return fmt.Errorf("content type %q of status %d is not documented", contentType, w.Code)
	}
	err := d.valid(w.Body.Bytes(), "paths", path, method, "responses", status, "content", contentType, "schema")
	if w.Code < 300 && len(bytes.TrimSpace(body)) > 0 && path != "/v1/schedules/batch" { // whose items are judged one by one
		err = errors.Join(err, d.valid(body, "paths", path, method, "requestBody", "content", "application/json", "schema"))
	}
	return err
}

// path finds the path of the document that a request goes to, a literal one
// before one with a parameter: "{" sorts after letters. A name may have slashes.
func (d *description) path(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, "/v1/schedules/by-name/") && d.paths[byName][strings.ToLower(r.Method)].Responses != nil {
		return byName
	}
	asked := strings.Split(r.URL.EscapedPath(), "/")
	for _, path := range slices.Sorted(maps.Keys(d.paths)) {
		_, ok := d.paths[path][strings.ToLower(r.Method)]
		if ok && slices.EqualFunc(strings.Split(path, "/"), asked, func(part, asked string) bool {
			return part == asked || strings.HasPrefix(part, "{") && asked != ""
		}) {
			return path
		}
	}
	return ""
}

// valid checks a text against the schema at a place of the document.
func (d *description) valid(text []byte, place ...string) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for i := range place {
		place[i] = escape.Replace(place[i])
	}
	where := url.URL{Path: "openapi.json", Fragment: "/" + strings.Join(place, "/")}
	d.mu.Lock()
	schema, err := d.schemas.Compile(where.String())
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (d *description) count(answer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[answer]++
}

// printAnswers prints how many answers of each kind were checked.
func printAnswers() {
	d, err := theDocument()
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, answer := range slices.Sorted(maps.Keys(d.answers)) {
		fmt.Printf("%6d  %s\n", d.answers[answer], answer)
		total += d.answers[answer]
	}
	fmt.Printf("%6d answers of %d kinds checked against the OpenAPI document\n", total, len(d.answers))
}
