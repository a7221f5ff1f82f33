package client_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

const scheduleID = "0190d4b2-0000-7000-8000-000000000000"

// serve answers every request with a status and a body and returns a client of
// that API, and what was asked.
func serve(t *testing.T, status int, body string) (*client.Client, *[]string) {
	t.Helper()
	asked := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asked = append(*asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")+" "+string(sent)))
		w.Header().Set("X-Request-Id", "REQUEST")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return newClient(t, server.URL+"/"), asked
}

func newClient(t *testing.T, url string) *client.Client {
	t.Helper()
	return configured(t, client.Config{URL: url})
}

func configured(t *testing.T, config client.Config) *client.Client {
	t.Helper()
	config.Key = "fp_x"
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRequests(t *testing.T) {
	t.Parallel()
	c, asked := serve(t, 200, `{"id":"x","items":[],"next_cursor":null}`)
	ctx := t.Context()
	_, err1 := c.Schedules(ctx, client.ScheduleFilter{States: []string{"active", "paused"}, Labels: "a=b"}, client.Page{Limit: 7, Cursor: "a b"})
	_, err2 := c.Schedule(ctx, "a/b")
	_, err3 := c.Create(ctx, api.ScheduleInput{Name: "n", Job: &api.JobInput{Queue: "q"}})
	_, err4 := c.Pause(ctx, "a")
	_, err5 := c.Resume(ctx, "a")
	err6 := c.Delete(ctx, "a")
	_, err7 := c.Trigger(ctx, "a", nil)
	_, err8 := c.Runs(ctx, "a", client.RunFilter{To: time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC)}, client.Page{Limit: 1})
	run, err9 := c.Run(ctx, "run_x")
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9); err != nil || run.ID != "x" {
		t.Errorf("%+v %v", run, err)
	}
	want := []string{
		"GET /v1/schedules?cursor=a+b&labels=a%3Db&limit=7&state=active%2Cpaused Bearer fp_x",
		"GET /v1/schedules/a%2Fb Bearer fp_x",
		`POST /v1/schedules Bearer fp_x {"name":"n","job":{"queue":"q"}}`,
		"POST /v1/schedules/a/pause Bearer fp_x",
		"POST /v1/schedules/a/resume Bearer fp_x",
		"DELETE /v1/schedules/a Bearer fp_x",
		"POST /v1/schedules/a/trigger Bearer fp_x",
		"GET /v1/schedules/a/runs?limit=1&to=2027-01-05T09%3A00%3A00Z Bearer fp_x",
		"GET /v1/runs/run_x Bearer fp_x",
	}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsAreReadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		want   string
		refusal,
		taken bool
	}{
		{409, `{"status":409,"code":"name_taken","field":"name","detail":"another has it"}`, "name: another has it", true, true},
		{422, `{"status":422,"code":"invalid","field":"a","detail":"x","errors":[{"field":"a","message":"x"},{"field":"b","message":"y"}]}`, "a: x; b: y", true, false},
		{401, `{"status":401,"code":"unauthorized","detail":"the API key is not valid"}`, "the API key is not valid; set FENCEPOST_API_KEY, or start the API with fencepost up", false, false},
		{404, `{"status":404,"code":"not_found","detail":"no such thing"}`, "no such thing", false, false},
		{500, `{"status":500,"code":"internal","detail":"went wrong"}`, "went wrong (request id REQUEST)", false, false},
		{502, `<html>`, "is not from Fencepost: 502 Bad Gateway", false, false},
		{409, `{"status":422,"code":"name_taken"}`, "is not from Fencepost: 409 Conflict", false, false},
		{307, ``, "is not from Fencepost: 307 Temporary Redirect", false, false},
		{200, `<html>`, "is not from Fencepost", false, false},
	} {
		cl, asked := serve(t, c.status, c.body)
		_, err := cl.Schedule(t.Context(), scheduleID)
		if err == nil || !strings.HasSuffix(err.Error(), c.want) || client.IsRefusal(err) != c.refusal || client.IsCode(err, "name_taken") != c.taken {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
		tries := 1
		if c.status == 502 { // another answer may follow
			tries = 4
		}
		if len(*asked) != tries {
			t.Errorf("%d: asked %q", c.status, *asked)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	_, err := newClient(t, url).Schedule(t.Context(), scheduleID)
	if err == nil || !strings.Contains(err.Error(), "nothing answers at "+url+"; start it with fencepost up") {
		t.Error(err)
	}
}

// TestCallsEnd: a try gets 15 seconds, a call with all its tries 30 or what it was
// given.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config client.Config
		tries  int
		after  time.Duration
		says   string
	}{
		"by default":    {client.Config{}, 2, 30 * time.Second, "no answer within 30s"},
		"one try":       {client.Config{Tries: 1}, 1, 15 * time.Second, "no answer within 15s"},
		"impatient":     {client.Config{Patience: time.Second}, 1, time.Second, "no answer within 1s"},
		"very patient":  {client.Config{Patience: time.Hour}, 4, 62 * time.Second, "no answer within 15s"},
		"tries and all": {client.Config{Tries: 2, Patience: time.Hour}, 2, 31 * time.Second, "no answer within 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				c.config.URL, c.config.HTTP = "http://fencepost.invalid", transport(func(r *http.Request) (*http.Response, error) {
					tries++
					<-r.Context().Done()
					return nil, r.Context().Err()
				})
				begin := time.Now()
				_, err := configured(t, c.config).Schedule(t.Context(), scheduleID)
				took := time.Since(begin)
				if err == nil || !strings.HasSuffix(err.Error(), c.says) || tries != c.tries || took > c.after || took < c.after-2*time.Second {
					t.Errorf("%d tries in %s: %v", tries, took, err)
				}
			})
		})
	}
}

func TestURLsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "127.0.0.1:8080", "localhost", "ftp://x", "http://", "http://u:p@x", "http://%"} {
		if _, err := client.New(client.Config{URL: url}); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
	for _, c := range []client.Config{{Tries: -1}, {Patience: -1}} {
		c.URL = "http://127.0.0.1"
		if _, err := client.New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// pages is an API with three schedules on two pages.
func pages(t *testing.T) *client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := "second"
		list := api.List[api.Schedule]{Items: []api.Schedule{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}}, NextCursor: &next}
		if r.URL.Query().Get("cursor") == next {
			list = api.List[api.Schedule]{Items: []api.Schedule{{ID: "3", Name: scheduleID}}}
		}
		if name := r.URL.Query().Get("name"); name != "" {
			all := []api.Schedule{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}, {ID: "3", Name: scheduleID}}
			list = api.List[api.Schedule]{Items: slices.DeleteFunc(all, func(s api.Schedule) bool { return s.Name != name })}
		}
		if r.URL.Path != "/v1/schedules" {
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `{"status":404,"code":"not_found","detail":"no"}`)
			return
		}
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return newClient(t, server.URL)
}

func TestFindByIDOrName(t *testing.T) {
	t.Parallel()
	c := pages(t)
	for ref, id := range map[string]string{"a": "1", "b": "2", scheduleID: "3"} {
		if s, err := c.Find(t.Context(), ref); err != nil || s.ID != id {
			t.Errorf("%s: found %q, want %q: %v", ref, s.ID, id, err)
		}
	}
	if _, err := c.Find(t.Context(), "c"); err == nil || err.Error() != `no schedule has the id or name "c"` {
		t.Error(err)
	}
}

func TestAllSchedulesEndsWithAnError(t *testing.T) {
	t.Parallel()
	c, asked := serve(t, 503, `{"status":503,"code":"unavailable","detail":"no"}`)
	failed := 0
	for _, err := range c.AllSchedules(t.Context(), client.ScheduleFilter{}) {
		if err != nil {
			failed++
		}
	}
	if failed != 1 || len(*asked) != 4 {
		t.Errorf("%d errors after %q", failed, *asked)
	}
}
