package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

// forgetful carries every request out, and breaks the connection instead of
// answering it for the first time.
type forgetful struct {
	http.Handler
	mu     sync.Mutex
	served map[string]bool
	lost   int
}

// ServeHTTP knows requests by method and path: a test makes each only once.
func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		f.Handler.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	what := r.Method + " " + r.URL.Path
	first := !f.served[what]
	f.served[what] = true
	if first {
		f.lost++
	}
	f.mu.Unlock()
	if !first {
		f.Handler.ServeHTTP(w, r)
		return
	}
	f.Handler.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// TestLostAnswers: the answer to every request is lost once, and a client that
// sends it again is told of its own work, which was done once.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		wire := &forgetful{Handler: s.Handler, served: map[string]bool{}}
		network := httptest.NewServer(wire)
		s.Cleanup(network.Close)
		c, err := client.New(client.Config{URL: network.URL, Key: s.key})
		if err != nil {
			s.Fatal(err)
		}
		ctx := s.Context()
		at := func(version int64) func(api.Schedule, error) api.Schedule {
			return func(got api.Schedule, err error) api.Schedule {
				s.Helper()
				if err != nil || got.Version != version {
					s.Fatalf("version %d, want %d: %v", got.Version, version, err)
				}
				return got
			}
		}
		id := at(1)(c.Create(ctx, daily("a"))).ID
		at(2)(c.EditVersion(ctx, id, 1, []byte(`{"timeout":"2m"}`)))
		if _, err = c.EditVersion(ctx, id, 1, []byte(`{"timeout":"3m"}`)); !client.IsCode(err, "version_mismatch") {
			s.Errorf("an edit of what was read before the other: %v", err)
		}
		at(3)(c.Pause(ctx, id))
		at(4)(c.Resume(ctx, id))
		run, err1 := c.Trigger(ctx, id, []byte(`{"n":1}`))
		canceled, err2 := c.CancelRun(ctx, run.ID)
		runs, err3 := c.Runs(ctx, id, client.RunFilter{}, client.Page{})
		put, err4 := c.Put(ctx, "a", daily(""), false)
		item := []byte(`{"name":"b","spec":"@daily","job":{"queue":"test"}}`)
		batch, err5 := c.Batch(ctx, api.BatchInput{Items: []json.RawMessage{item, item}})
		err6 := c.Delete(ctx, id)
		left, err7 := c.Schedules(ctx, client.ScheduleFilter{}, client.Page{})
		if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
			s.Fatal(err)
		}
		type outcome struct {
			canceled                       string
			runs, put, created, left, lost int
		}
		want := outcome{"canceled", 1, 5, 1, 1, 9}
		got := outcome{canceled.State, len(runs.Items), int(put.Version), batch.Created, len(left.Items), wire.lost}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
			s.Error(diff)
		}
	})
}
