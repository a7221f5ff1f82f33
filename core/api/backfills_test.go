package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/backfill"
)

// fill moves the backfills of all shards on and lets their runs succeed.
func (s *server) fill() {
	s.Helper()
	queue, runs := s.keys.(core.BackfillQueue), s.keys.(core.RunStore)
	for range 3 {
		due, err := queue.DueBackfills(s.Context(), core.AllShards())
		if err != nil {
			s.Fatal(err)
		}
		for _, d := range due {
			step, ok := backfill.Step(d)
			if !ok {
				continue
			}
			made, err := queue.AdvanceBackfill(s.Context(), step, time.Minute)
			if err != nil {
				s.Fatal(err)
			}
			for _, c := range made {
				started, err := runs.Start(s.Context(), []core.Delivery{{Message: core.Message{Key: c.Key, Fence: c.Fence}, Token: uuid.New()}}, time.Minute)
				if err != nil || len(started) != 1 {
					s.Fatalf("start: %v, %v", started, err)
				}
				if _, err := runs.Finish(s.Context(), []core.Outcome{{Held: core.Held{Key: c.Key, Fence: started[0].Fence}, State: core.RunSucceeded}}); err != nil {
					s.Fatal(err)
				}
			}
		}
	}
}

// TestBackfill: a dry run, the runs, what is left alone the next time, a request
// sent again.
func TestBackfill(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"0 9 * * *","time_zone":"Europe/Berlin","job":{"queue":"test"}}`)
		path := "/v1/schedules/" + made.ID
		ask := func(more string) string {
			return `{"from":"2026-03-27T00:00:00Z","to":"2026-03-31T00:00:00Z","order":"descending","concurrency":3` + more + `}`
		}
		dry := want[api.BackfillPlan](s, s.send("POST", path+"/backfill", ask(`,"dry_run":true`)), 200)
		slots := []string{"2026-03-30T07:00:00Z", "2026-03-29T07:00:00Z", "2026-03-28T08:00:00Z", "2026-03-27T08:00:00Z"} // the clocks change
		var got []string
		for _, slot := range dry.Slots {
			got = append(got, slot.ScheduledFor.Format(time.RFC3339))
		}
		if diff := cmp.Diff(slots, got); diff != "" || dry.Runs != 4 || dry.Done != 0 || dry.Backfill != nil {
			s.Errorf("a dry run: %+v %s", dry, diff)
		}
		first := want[api.BackfillPlan](s, s.send("POST", path+"/backfill", ask(``), "Idempotency-Key", "once"), 202)
		again := want[api.BackfillPlan](s, s.send("POST", path+"/backfill", ask(``), "Idempotency-Key", "once"), 202)
		if first.Backfill.Total != 4 || first.Backfill.State != "running" || again.Backfill.ID != first.Backfill.ID {
			s.Errorf("%+v, sent again %+v", first.Backfill, again.Backfill)
		}
		s.fill()
		done := want[api.Backfill](s, s.send("GET", "/v1/backfills/"+first.Backfill.ID, nil), 200)
		if done.State != "finished" || done.Succeeded != 4 || done.Left != 0 || done.Live != 0 || done.FinishedAt == nil {
			s.Errorf("%+v", done)
		}
		runs := want[api.List[api.Run]](s, s.send("GET", path+"/runs", nil), 200)
		got = nil
		for _, r := range runs.Items {
			got = append(got, r.ScheduledFor.Format(time.RFC3339))
			if r.Cause != "backfill" || r.CoversTo == nil || !r.CoversTo.Equal(r.ScheduledFor) {
				s.Errorf("%+v", r)
			}
		}
		if diff := cmp.Diff(slots, got); diff != "" || first.Slots[0].RunID != runs.Items[0].ID {
			s.Errorf("runs: %s", diff)
		}
		told := want[api.Explanation](s, s.send("GET", path+"/explain?at=2026-03-29T09:00", nil), 200)
		if b := told.Before; b == nil || b.Verdict != "before_creation" || !strings.Contains(b.Sentence, "a backfill ran it, whose run succeeded") {
			s.Errorf("%+v", told.Before)
		}
		if p := problem(s, s.send("POST", path+"/backfill", ask(``)), 422); p.Field != "from" {
			s.Errorf("all of them succeeded: %+v", p)
		}
		rerun := want[api.BackfillPlan](s, s.send("POST", path+"/backfill", ask(`,"rerun":true`)), 202)
		if rerun.Runs != 4 {
			s.Errorf("%+v", rerun)
		}
		canceled := want[api.Backfill](s, s.send("POST", "/v1/backfills/"+rerun.Backfill.ID+"/cancel", `{"cancel_runs":true}`), 202)
		list := want[api.List[api.Backfill]](s, s.send("GET", path+"/backfills", nil), 200)
		if canceled.State != "canceled" || len(list.Items) != 2 {
			s.Errorf("%+v, %d in the list", canceled, len(list.Items))
		}
		soon := time.Now().UTC().Add(48 * time.Hour).Format(time.RFC3339)
		ahead := want[api.BackfillPlan](s, s.send("POST", path+"/backfill", `{"from":"2026-03-27T00:00:00Z","to":"`+soon+`","dry_run":true}`), 200)
		if len(ahead.Warnings) != 1 || len(ahead.Slots) != 100 || ahead.Done != 4 {
			s.Errorf("beyond now: %d slots, %d left alone, %v", len(ahead.Slots), ahead.Done, ahead.Warnings)
		}
	})
}

func TestWrongBackfills(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		path := "/v1/schedules/" + s.create(`{"name":"a","spec":"* * * * *","job":{"queue":"test"}}`).ID + "/backfill"
		const times = `"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"`
		for body, field := range map[string]string{
			`{}`: "from", `{"from":"2026-01-01T00:00:00Z"}`: "to", `{"from":"yesterday","to":"2026-01-02T00:00:00Z"}`: "from",
			`{"from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z"}`: "to", `{` + times + `}`: "max_runs",
			`{` + times + `,"max_runs":0}`: "max_runs", `{` + times + `,"max_runs":10001}`: "max_runs", `{` + times + `,"concurrency":101}`: "concurrency",
			`{` + times + `,"order":"random"}`: "order", `{` + times + `,"slots":[]}`: "slots", `{` + times + `,"max_runs":2000,"payload":"\u0000"}`: "payload",
			`{"from":"2020-01-01T00:00:00Z","to":"2026-01-01T00:00:00Z"}`: "to",
			`{"from":"2026-01-01T00:00:10Z","to":"2026-01-01T00:00:20Z"}`: "from",
		} {
			if p := problem(s, s.send("POST", path, body), 422); p.Field != field || p.Detail == "" {
				s.Errorf("%s: %+v", body, p)
			}
		}
		problem(s, s.send("POST", "/v1/schedules/"+nobodys()["schedule"]+"/backfill", `{`+times+`}`), 404)
		problem(s, s.send("GET", "/v1/schedules/"+nobodys()["schedule"]+"/backfills", nil), 404)
		problem(s, s.send("GET", "/v1/backfills/"+nobodys()["backfill"], nil), 404)
		problem(s, s.send("POST", "/v1/backfills/"+nobodys()["backfill"]+"/cancel", nil), 404)
	})
}
