package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// fail makes a manual run of a schedule and lets it die for a reason.
func (s *server) fail(schedule string, reason core.Reason) string {
	s.Helper()
	run := want[api.Run](s, s.send("POST", "/v1/schedules/"+schedule+"/trigger", nil), 202)
	key, err := core.ParseRunID(run.ID)
	if err != nil {
		s.Fatal(err)
	}
	store := s.keys.(core.RunStore)
	started, err := store.Start(s.Context(), []core.Delivery{{Message: core.Message{Key: key, Fence: run.Fence}, Token: uuid.New()}}, time.Minute)
	if err != nil || len(started) != 1 {
		s.Fatalf("start: %v, %v", started, err)
	}
	o := core.Outcome{Held: core.Held{Key: key, Fence: started[0].Fence}, State: core.RunDead, Reason: reason, Error: "it failed"}
	if ended, err := store.Finish(s.Context(), []core.Outcome{o}); err != nil || len(ended) != 1 {
		s.Fatalf("finish: %v, %v", ended, err)
	}
	return run.ID
}

// TestRedrive: a dead run is tried again, sent again or not; others are not.
func TestRedrive(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"@daily","job":{"queue":"test"},"retry":{"max_attempts":3}}`)
		id := s.fail(made.ID, core.ReasonPermanent)
		var fence int64
		for range 2 {
			got := want[api.Run](s, s.send("POST", "/v1/runs/"+id+"/redrive", nil), 202)
			if got.State != "queued" || got.Reason != "" || got.FinishedAt != nil || got.Attempt != 1 || got.MaxAttempts != 4 || got.Error != "it failed" || fence != 0 && got.Fence != fence {
				s.Errorf("%+v", got)
			}
			fence = got.Fence
		}
		want[api.Run](s, s.send("POST", "/v1/runs/"+id+"/cancel", nil), 202)
		if p := problem(s, s.send("POST", "/v1/runs/"+id+"/redrive", nil), 409); p.Code != "run_not_dead" || p.Current != "canceled" {
			s.Errorf("of a canceled run: %+v", p)
		}
		first, second := s.fail(made.ID, core.ReasonLost), s.fail(made.ID, core.ReasonLost)
		if p := problem(s, s.send("POST", "/v1/runs/"+first+"/redrive", nil), 409); p.Code != "run_superseded" {
			s.Errorf("of a run before the last: %+v", p)
		}
		problem(s, s.send("POST", "/v1/runs/"+nobodys()["run"]+"/redrive", nil), 404)
		if w := s.send("DELETE", "/v1/schedules/"+made.ID, nil); w.Code != 204 {
			s.Fatal(w.Body)
		}
		problem(s, s.send("POST", "/v1/runs/"+second+"/redrive", nil), 404)
	})
}

// redriven walks through all pages of a redrive and returns the runs' ids, sorted,
// with the state or the code of the problem.
func (s *server) redriven(filter string) []string {
	s.Helper()
	var got []string
	cursor := ""
	for range 50 {
		page := want[api.List[api.RedriveItem]](s, s.send("POST", "/v1/runs/redrive", filter[:len(filter)-1]+cursor+"}"), 200)
		for _, item := range page.Items {
			what := item.Run.State
			if item.Problem != nil {
				what = item.Problem.Code
			}
			got = append(got, item.Run.ID+" "+what)
		}
		if page.NextCursor == nil {
			slices.Sort(got)
			return got
		}
		text, err := json.Marshal(*page.NextCursor)
		if err != nil {
			s.Fatal(err)
		}
		cursor = `,"cursor":` + string(text)
	}
	s.Fatalf("%s has no end", filter)
	return nil
}

// TestRedriveByFilter: what a filter chooses is redriven, page by page, each once.
func TestRedriveByFilter(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		each := func(state string, ids ...string) []string {
			out := make([]string, len(ids))
			for i, id := range ids {
				out[i] = id + " " + state
			}
			slices.Sort(out)
			return out
		}
		check := func(what string, want, got []string) {
			s.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				s.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		wide := s.create(`{"name":"wide","spec":"@daily","overlap":"allow","labels":{"team":"x"},"job":{"queue":"test"}}`).ID
		var many, last []string
		for i := range 5 {
			many = append(many, s.fail(wide, []core.Reason{core.ReasonPermanent, core.ReasonTimeout}[i%2]))
		}
		for i := range 4 {
			id := s.create(fmt.Sprintf(`{"name":"n-%d","spec":"@daily","job":{"queue":"test"}}`, i)).ID
			s.fail(id, core.ReasonLost) // superseded by the next
			last = append(last, s.fail(id, core.ReasonLost))
		}
		s.create(daily("idle"))
		slot := func(id string) string {
			key, err := core.ParseRunID(id)
			if err != nil {
				s.Fatal(err)
			}
			return key.Slot.Format(time.RFC3339Nano)
		}
		check("a dry run", each("dead", append(slices.Clone(many), last...)...), s.redriven(`{"queue":"test","dry_run":true,"limit":2}`))
		check("of another queue", nil, s.redriven(`{"queue":"http"}`))
		check("by reason", each("queued", many[1], many[3]), s.redriven(`{"labels":"team=x","reasons":["timeout"],"limit":1}`))
		check("by slot", each("queued", many[2]), s.redriven(`{"schedule_id":"`+wide+`","from":"`+slot(many[2])+`","to":"`+slot(many[3])+`"}`))
		check("by name", each("queued", last...), s.redriven(`{"name_prefix":"n-","limit":3}`))
		check("of one schedule", each("queued", many[0], many[4]), s.redriven(`{"schedule_id":"`+wide+`","limit":1}`))
		check("nothing is left", nil, s.redriven(`{"from":"2000-01-01T00:00:00Z"}`))
	})
}

func TestWrongRedrives(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	for body, field := range map[string]string{
		`{}`: "", `{"limit":5,"dry_run":true}`: "", `{"queue":""}`: "queue", `{"queue":"a","limit":101}`: "limit", `{"queue":"a","limit":0}`: "limit",
		`{"from":"yesterday"}`: "from", `{"reasons":["overlap"]}`: "reasons[0]", `{"schedule_id":"x"}`: "schedule_id", `{"labels":"a=b=c,,"}`: "labels",
		`{"states":["dead"]}`: "states", `{"queue":"a","cursor":"x"}`: "cursor", `{"queue":1}`: "queue",
	} {
		if p := problem(s, s.send("POST", "/v1/runs/redrive", body), 422); p.Field != field || p.Detail == "" {
			t.Errorf("%s: %+v", body, p)
		}
	}
}
