package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

// TestPoliciesAreShownAsSet: what a schedule was given comes back, and can be sent
// back without a new version.
func TestPoliciesAreShownAsSet(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"@daily","job":{"queue":"test"},"misfire":"run_all","misfire_cap":7,"overlap":"queue_one","misfire_grace":"5s",
			"starts_at":"2099-01-01T00:00:00Z","ends_at":"2099-02-01T00:00:00Z","max_runs":3,"keep_completed":"1d","catch_up_within":"2h","exact":true}`)
		got := []any{made.Misfire, made.MisfireCap, made.Overlap, made.MisfireGrace, made.MaxRuns, *made.RunsLeft, made.KeepCompleted, made.CatchUpWithin, made.NextRunAt.Format(time.RFC3339)}
		if diff := cmp.Diff([]any{"run_all", 7, "queue_one", "5s", int64(3), int64(3), "1d", "2h", "2099-01-01T00:00:00Z"}, got); diff != "" {
			s.Error(diff)
		}
		path := "/v1/schedules/" + made.ID
		for _, body := range []string{
			`{"misfire_cap":7,"starts_at":"2099-01-01T00:00:00Z","ends_at":"2099-02-01T01:00:00+01:00","max_runs":3,"keep_completed":"24h","delete_after_completion":false}`, `{}`,
		} {
			if same := want[api.Schedule](s, s.send("PATCH", path, body), 200); same.Version != 1 {
				s.Errorf("%s made version %d", body, same.Version)
			}
		}
		free := want[api.Schedule](s, s.send("PATCH", path, `{"starts_at":"","ends_at":"","max_runs":0,"misfire":"skip","misfire_cap":1000}`), 200)
		if free.StartsAt != nil || free.EndsAt != nil || free.RunsLeft != nil || free.NextRunAt.Year() == 2099 || free.Version != 2 {
			s.Errorf("%+v", free)
		}
	})
}

// TestPoliciesThatContradict: what cannot be meant is refused with the reason, and
// what may surprise is said.
func TestPoliciesThatContradict(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	for policies, field := range map[string]string{
		`"misfire":"never"`: "misfire", `"overlap":"maybe"`: "overlap", `"misfire_cap":5`: "misfire_cap", `"misfire":"run_all","misfire_cap":10001`: "misfire_cap",
		`"misfire":"run_all","overlap":"cancel_previous"`: "overlap", `"misfire_grace":"1s"`: "misfire_grace", `"max_runs":-1`: "max_runs",
		`"starts_at":"2099-01-02T00:00:00Z","ends_at":"2099-01-01T00:00:00Z"`: "ends_at", `"ends_at":"2020-01-01T00:00:00Z"`: "ends_at",
		`"starts_at":"2099-01-01T00:00:00.5Z"`: "starts_at", `"ends_at":"soon"`: "ends_at", `"keep_completed":"-1s"`: "keep_completed",
		`"keep_completed":"1h","delete_after_completion":true`: "keep_completed", `"window":"10m"`: "window",
	} {
		p := problem(s, s.send("POST", "/v1/schedules", `{"name":"a","spec":"*/5 * * * *","job":{"queue":"test"},`+policies+`}`), 422)
		if p.Field != field || p.Detail == "" {
			t.Errorf("%s: %+v", policies, p)
		}
	}
	made := s.create(`{"name":"a","spec":"every 1s","job":{"queue":"test"},"misfire":"run_all","overlap":"queue_one"}`)
	if len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "may not be caught up with") {
		t.Errorf("warnings %q", made.Warnings)
	}
}

// TestPauseWithAnEnd: a pause says until when and what for, and can be changed.
func TestPauseWithAnEnd(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(daily("a"))
		path := "/v1/schedules/" + made.ID
		got := want[api.Schedule](s, s.send("POST", path+"/pause", `{"until":"2099-01-05T09:00:00Z","note":"moving"}`), 200)
		if got.State != "paused" || got.PausedUntil == nil || got.PauseNote != "moving" || got.NextRunAt.Format(time.RFC3339) != "2099-01-06T03:00:00Z" {
			s.Errorf("%+v", got)
		}
		if again := want[api.Schedule](s, s.send("POST", path+"/pause", nil), 200); again.Version != got.Version {
			s.Errorf("paused again: version %d", again.Version)
		}
		later := want[api.Schedule](s, s.send("POST", path+"/pause", `{"note":"still moving"}`), 200)
		if later.PausedUntil != nil || later.PauseNote != "still moving" || later.NextRunAt != nil {
			s.Errorf("%+v", later)
		}
		resumed := want[api.Schedule](s, s.send("POST", path+"/resume", nil), 200)
		if resumed.State != "active" || resumed.PauseNote != "" || resumed.NextRunAt == nil {
			s.Errorf("%+v", resumed)
		}
		for _, bad := range []string{`{"until":"2020-01-01T00:00:00Z"}`, `{"until":"x"}`, `{"note":1}`, `{"for":"x"}`, `[]`} {
			problem(s, s.send("POST", path+"/pause", bad), 422)
		}
	})
}

// TestExceptions: one slot is skipped, moved or given another payload, as long as
// it is to come and the order of starts stays.
func TestExceptions(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"0 3 * * *","job":{"queue":"test","payload":{"n":1}}}`)
		path := "/v1/schedules/" + made.ID + "/exceptions"
		first := made.NextRunAt.UTC()
		at := func(n int, d time.Duration) string { return first.AddDate(0, 0, n).Add(d).Format(time.RFC3339) }
		for body, field := range map[string]string{
			`{}`: "slot", `{"slot":"` + at(0, 0) + `"}`: "skip", `{"slot":"` + at(0, time.Hour) + `","skip":true}`: "slot",
			`{"slot":"` + at(0, 0) + `","skip":true,"payload":1}`: "skip", `{"slot":"` + at(1, 0) + `","move_to":"` + at(0, -time.Second) + `"}`: "move_to",
			`{"slot":"` + at(1, 0) + `","move_to":"` + at(2, time.Second) + `"}`: "move_to", `{"slot":"` + at(0, 0) + `","move_to":"2020-01-01T00:00:00Z"}`: "move_to",
			`{"slot":"` + at(0, 0) + `","jump":true}`: "jump",
		} {
			if p := problem(s, s.send("POST", path, body), 422); p.Field != field {
				s.Errorf("%s: %+v", body, p)
			}
		}
		if p := problem(s, s.send("POST", path, `{"slot":"`+at(-1, 0)+`","skip":true}`), 409); p.Code != "slot_claimed" {
			s.Errorf("a slot of yesterday: %+v", p)
		}
		want[api.Exceptions](s, s.send("POST", path, `{"slot":"`+at(1, 0)+`","skip":true,"note":"holiday"}`), 200)
		moved := want[api.Exceptions](s, s.send("POST", path, `{"slot":"`+at(0, 0)+`","move_to":"`+at(0, 2*time.Hour)+`","payload":{"n":2}}`), 200)
		if len(moved.Items) != 2 || !moved.Items[0].MoveTo.Equal(first.Add(2*time.Hour)) || !moved.Items[1].Skip || moved.Items[1].Note != "holiday" {
			s.Errorf("%+v", moved)
		}
		got := want[api.Schedule](s, s.send("GET", "/v1/schedules/"+made.ID, nil), 200)
		if !got.NextRunAt.Equal(first.Add(2*time.Hour)) || got.Version != 3 {
			s.Errorf("next run at %s, version %d", got.NextRunAt, got.Version)
		}
		left := want[api.Exceptions](s, s.send("DELETE", path+"?slot="+at(0, 0), nil), 200)
		if len(left.Items) != 1 {
			s.Errorf("%+v", left)
		}
		if got = want[api.Schedule](s, s.send("GET", "/v1/schedules/"+made.ID, nil), 200); !got.NextRunAt.Equal(first) {
			s.Errorf("next run at %s", got.NextRunAt)
		}
		want[api.Schedule](s, s.send("PATCH", "/v1/schedules/"+made.ID, `{"spec":"0 4 * * *"}`), 200)
		if none := want[api.Exceptions](s, s.send("GET", path, nil), 200); len(none.Items) != 0 {
			s.Errorf("after another spec: %+v", none)
		}
	})
}
