package api_test

import (
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// newReal returns an API over a database of its own.
func newReal(t *testing.T) (*server, *database.DB) {
	t.Helper()
	db, err := database.Open(t.Context(), database.Config{URL: dbtest.New(t), Region: region, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return newServer(t, db, db, func(c *api.Config) { c.Ready = db.Ping }), db
}

func (s *server) create(body any) api.Schedule {
	s.Helper()
	return want[api.Schedule](s, s.send("POST", "/v1/schedules", body), 201)
}

func daily(name string) api.ScheduleInput {
	return api.ScheduleInput{Name: name, Spec: "0 3 * * *", Job: &api.JobInput{Queue: "test"}}
}

// TestLifeOfASchedule follows one schedule from its creation to its end.
func TestLifeOfASchedule(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	w := s.send("POST", "/v1/schedules", `{"name":"report","spec":"0 3 * * *","time_zone":"Europe/Berlin","window":"10m",
		"job":{"http":{"url":"https://example.com/hook","headers":{"a":"b"}}}}`)
	made := want[api.Schedule](s, w, 201)
	path := "/v1/schedules/" + made.ID
	if w.Header().Get("Location") != path || made.NextRunAt == nil || !made.NextRunAt.After(made.CreatedAt) {
		t.Errorf("Location %q of %+v", w.Header().Get("Location"), made)
	}
	expected := api.Schedule{
		Name: "report", Spec: "0 3 * * *", TimeZone: "Europe/Berlin", DSTGap: "auto", DSTOverlap: "auto", CatchUpWithin: "0s", Spread: "10m",
		DST: &api.DST{
			Gap: "run_after", Overlap: "first",
			Reason: "fixed: neither the minute nor the hour field begins with a star, so it follows the wall clock",
		},
		Labels:     map[string]string{},
		MisfireCap: 1000, KeepCompleted: "30d", Calendars: []string{},
		Job:     api.Job{Queue: "http", Payload: []byte(`{"url":"https://example.com/hook","headers":{"a":"b"}}`)},
		Misfire: "run_once", MisfireGrace: "1m", Overlap: "skip", Window: "10m", Timeout: "1m", TotalTimeout: "0s", Retry: api.Retry{MaxAttempts: 5, InitialDelay: "10s", MaxDelay: "1h", Multiplier: 2, Jitter: "equal"}, State: "active", Version: 1,
	}
	sameSchedule(t, expected, made)
	sameSchedule(t, expected, want[api.Schedule](s, s.send("GET", path, nil), 200))

	expected.Name, expected.Overlap, expected.Version = "report 2", "allow", 2
	expected.Warnings = []string{"overlap allow: runs may be side by side, so that no run is told which interval of data it covers"}
	sameSchedule(t, expected, want[api.Schedule](s, s.send("PATCH", path, `{"name":"report 2","overlap":"allow"}`), 200))
	sameSchedule(t, expected, want[api.Schedule](s, s.send("PATCH", path, `{}`), 200))

	paused := want[api.Schedule](s, s.send("POST", path+"/pause", nil), 200)
	if paused.State != "paused" || paused.NextRunAt != nil {
		t.Errorf("paused schedule is %+v", paused)
	}
	if got := s.send("GET", path, nil).Body.String(); !strings.Contains(got, `"next_run_at":null`) {
		t.Errorf("next_run_at is not null: %s", got)
	}
	resumed := want[api.Schedule](s, s.send("POST", path+"/resume", nil), 200)
	if resumed.State != "active" || resumed.NextRunAt == nil || resumed.Version != paused.Version+1 {
		t.Errorf("resumed schedule is %+v", resumed)
	}

	if w := s.send("DELETE", path, nil); w.Code != 204 || w.Body.Len() > 0 {
		t.Errorf("delete answered %d %s", w.Code, w.Body)
	}
	problem(s, s.send("GET", path, nil), 404)
	problem(s, s.send("DELETE", path, nil), 404)
	problem(s, s.send("GET", path+"/runs", nil), 404)
}

func sameSchedule(t *testing.T, want, got api.Schedule) {
	t.Helper()
	compact := cmp.Transformer("compact", func(j api.Job) string { return j.Queue + strings.ReplaceAll(string(sorted(j.Payload)), " ", "") })
	if diff := cmp.Diff(want, got, compact, cmpopts.IgnoreFields(api.Schedule{}, "ID", "NextRunAt", "CreatedAt", "UpdatedAt")); diff != "" {
		t.Error(diff)
	}
}

// sorted makes payloads comparable whose members the database has reordered.
func sorted(payload []byte) []byte {
	b := slices.Clone(payload)
	slices.Sort(b)
	return b
}

func TestTriggerAndHistory(t *testing.T) {
	t.Parallel()
	s, db := newReal(t)
	made := s.create(daily("a"))
	path := "/v1/schedules/" + made.ID
	w := s.send("POST", path+"/trigger", nil)
	run := want[api.Run](s, w, 202)
	if run.State != "queued" || run.Cause != "manual" || run.Queue != "test" || w.Header().Get("Location") != "/v1/runs/"+run.ID {
		t.Errorf("trigger answered %s", w.Body)
	}
	if p := problem(s, s.send("POST", path+"/trigger", nil), 409); p.Code != "run_live" {
		t.Errorf("code is %q", p.Code)
	}
	key, err := core.ParseRunID(run.ID)
	if err != nil {
		t.Fatal(err)
	}
	started, err := db.Start(t.Context(), []core.Delivery{{Message: core.Message{Key: key, Fence: run.Fence}, Token: uuid.New()}}, time.Minute)
	if err != nil || len(started) != 1 {
		t.Fatalf("start: %v %v", started, err)
	}
	_, err = db.Finish(t.Context(), []core.Outcome{{
		Held: core.Held{Key: key, Fence: started[0].Fence}, State: core.RunDead, Reason: core.ReasonPermanent, Error: "no such host",
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := want[api.RunDetail](s, s.send("GET", "/v1/runs/"+run.ID, nil), 200)
	if got.State != "dead" || got.Reason != "permanent" || got.Attempt != 1 || got.ScheduleVersion != 1 || got.StartedAt == nil || got.FinishedAt == nil ||
		len(got.Attempts) != 1 || got.Attempts[0].Error != "no such host" || got.ScheduleID != made.ID {
		t.Errorf("run is %+v", got)
	}
	list := want[api.List[api.Run]](s, s.send("GET", path+"/runs", nil), 200)
	if diff := cmp.Diff([]api.Run{got.Run}, list.Items); diff != "" || list.NextCursor != nil {
		t.Errorf("%v %s", list.NextCursor, diff)
	}
	fresh := s.create(daily("b"))
	if body := s.send("GET", "/v1/schedules/"+fresh.ID+"/runs", nil).Body.String(); strings.TrimSpace(body) != `{"items":[],"next_cursor":null}` {
		t.Errorf("empty history is %s", body)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	var schedules, runs []string
	for i := range 5 {
		schedules = append(schedules, s.create(daily(fmt.Sprint(i))).ID)
	}
	first := "/v1/schedules/" + schedules[0]
	want[api.Schedule](s, s.send("PATCH", first, `{"overlap":"allow"}`), 200)
	for range 5 {
		runs = append(runs, want[api.Run](s, s.send("POST", first+"/trigger", nil), 202).ID)
	}
	slices.Reverse(runs)
	for limit := 1; limit <= 6; limit++ {
		got := walk(s, "/v1/schedules", limit, func(v api.Schedule) string { return v.ID })
		if diff := cmp.Diff(schedules, got); diff != "" {
			t.Errorf("schedules by %d: %s", limit, diff)
		}
		got = walk(s, first+"/runs", limit, func(v api.Run) string { return v.ID })
		if diff := cmp.Diff(runs, got); diff != "" {
			t.Errorf("runs by %d: %s", limit, diff)
		}
	}
}

// walk reads a list to its end and checks that no page is longer than asked for
// and that no page but the first of an empty list is empty.
func walk[T any](s *server, path string, limit int, id func(T) string) []string {
	s.Helper()
	var all []string
	query := fmt.Sprint("?limit=", limit)
	for range 10 {
		page := want[api.List[T]](s, s.send("GET", path+query, nil), 200)
		if len(page.Items) == 0 || len(page.Items) > limit {
			s.Errorf("%s%s has %d items", path, query, len(page.Items))
		}
		for _, item := range page.Items {
			all = append(all, id(item))
		}
		if page.NextCursor == nil {
			return all
		}
		query = fmt.Sprint("?limit=", limit, "&cursor=", url.QueryEscape(*page.NextCursor))
	}
	s.Errorf("%s does not end", path)
	return nil
}

func TestNameTaken(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	s.create(daily("a"))
	b := s.create(daily("b"))
	for _, w := range []struct{ method, path string }{{"POST", "/v1/schedules"}, {"PATCH", "/v1/schedules/" + b.ID}} {
		p := problem(s, s.send(w.method, w.path, daily("a")), 409)
		if p.Code != "name_taken" || p.Field != "name" {
			t.Errorf("%s: %+v", w.method, p)
		}
	}
}

// TestPayloadsAreStoredOrRefused sends what is near the bounds of the database:
// nothing may be a fault of ours.
func TestPayloadsAreStoredOrRefused(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	for status, payloads := range map[int][]string{
		201: {
			`null`, `0`, `-0`, `1e308`, `1e-308`, `1E+308`, strings.Repeat("9", 308), "0." + strings.Repeat("9", 306), `""`,
			`"\u0001\ud83d\ude00"`, `{"":{"":[]}}`, strings.Repeat("[", 64) + strings.Repeat("]", 64), `"` + strings.Repeat("x", 250_000) + `"`,
			`[` + strings.Repeat("1e308,", 800) + `1]`, `{"` + strings.Repeat("k", 100_000) + `":1}`, "\"\u2028\uffff\U0010ffff\"",
		},
		422: {`1e309`, strings.Repeat("9", 309), `"\u0000"`, `"\ud800"`, `{"a":1,"a":1}`},
	} {
		for _, payload := range payloads {
			w := s.send("POST", "/v1/schedules", `{"name":"`+uuid.NewString()+`","spec":"@daily","job":{"queue":"test","payload":`+payload+`}}`)
			if w.Code != status {
				t.Errorf("%.40s: status %d, want %d: %.200s", payload, w.Code, status, w.Body)
			}
		}
	}
}

// TestTimesAtTheEdges sends times that a database may not be able to hold.
func TestTimesAtTheEdges(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	made := s.create(daily("a"))
	want[api.Run](s, s.send("POST", "/v1/schedules/"+made.ID+"/trigger", nil), 202)
	for _, slot := range []time.Time{time.UnixMicro(-1 << 63), time.UnixMicro(1<<63 - 1), time.UnixMicro(0), time.Time{}} {
		id := core.RunKey{Region: region, ScheduleID: uuid.MustParse(made.ID), Slot: slot}.ID()
		problem(s, s.send("GET", "/v1/runs/"+id, nil), 404)
	}
	for before, items := range map[string]int{
		"0000-01-01T00:00:00Z": 0, "0001-01-01T00:00:00Z": 0, "1970-01-01T00:00:00Z": 0, "9999-12-31T23:59:59.9999999Z": 1,
	} {
		list := want[api.List[api.Run]](s, s.send("GET", "/v1/schedules/"+made.ID+"/runs?to="+before, nil), 200)
		if len(list.Items) != items {
			t.Errorf("%d runs before %s, want %d", len(list.Items), before, items)
		}
	}
	for _, anchor := range []string{"0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00.0000001Z"} {
		w := s.send("POST", "/v1/schedules", api.ScheduleInput{Name: anchor, Spec: "every 15m", Anchor: anchor, Job: &api.JobInput{Queue: "test"}})
		if w.Code != 201 && w.Code != 422 {
			t.Errorf("anchor %s: status %d: %s", anchor, w.Code, w.Body)
		}
	}
}

func TestReadyWhileTheDatabaseAnswers(t *testing.T) {
	t.Parallel()
	s, db := newReal(t)
	want[api.Health](s, s.send("GET", "/readyz", nil), 200)
	db.Close()
	problem(s, s.send("GET", "/readyz", nil), 503)
	want[api.Health](s, s.send("GET", "/healthz", nil), 200)
}
