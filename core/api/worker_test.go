package api_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// offer triggers a schedule and tells the desk of the run, as a claimer does.
func (s *server) offer(schedule string) core.RunKey {
	s.Helper()
	run := want[api.Run](s, s.send("POST", "/v1/schedules/"+schedule+"/trigger", nil), 202)
	key, err := core.ParseRunID(run.ID)
	if err != nil {
		s.Fatal(err)
	}
	tenant := s.tenant()
	if n, err := s.desk.Publish(s.Context(), "test", []core.Message{{Key: key, Fence: run.Fence, Tenant: tenant}}); n != 1 {
		s.Fatal(err)
	}
	return key
}

// tenant returns whose key the server holds.
func (s *server) tenant() uuid.UUID {
	s.Helper()
	key, err := s.keys.FindKey(s.Context(), api.HashKey(s.key))
	if err != nil {
		s.Fatal(err)
	}
	return key.TenantID
}

func (s *server) leaseRuns(body string, headers ...string) []api.LeasedRun {
	s.Helper()
	return want[api.LeasedRuns](s, s.send("POST", "/v1/queues/test/lease", body, headers...), 200).Runs
}

// TestWorker: a run is leased, kept and finished; what was said is said again.
func TestWorker(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"@daily","overlap":"allow","timeout":"1h","job":{"queue":"test","payload":{"n":1}}}`)
		if got := s.leaseRuns(`{}`); len(got) != 0 {
			s.Errorf("of an empty queue: %+v", got)
		}
		key := s.offer(made.ID)
		got := s.leaseRuns(`{"max":5,"lease":"40s"}`)
		if len(got) != 1 || got[0].RunID != key.ID() || got[0].Name != "a" || string(got[0].Payload) != `{"n":1}` && string(got[0].Payload) != `{"n": 1}` || got[0].Attempt != 1 || got[0].Deadline == nil {
			s.Fatalf("leased %+v", got)
		}
		path, fence := "/v1/runs/"+got[0].RunID, fmt.Sprintf(`"fence":%d`, got[0].Fence)
		beat := want[api.HeartbeatResult](s, s.send("POST", path+"/heartbeat", `{`+fence+`,"lease":"50s"}`), 200)
		if !beat.LeaseUntil.After(got[0].LeaseUntil) || beat.CancelRequested {
			s.Errorf("%+v after %+v", beat, got[0].LeaseUntil)
		}
		for range 2 {
			run := want[api.Run](s, s.send("POST", path+"/finish", `{`+fence+`,"outcome":"succeeded","result":{"rows":7}}`), 200)
			if run.State != "succeeded" || string(run.Result) != `{"rows":7}` && string(run.Result) != `{"rows": 7}` {
				s.Errorf("%+v", run)
			}
		}
		for what, body := range map[string]string{"heartbeat": `{` + fence + `}`, "finish": `{` + fence + `,"outcome":"failed"}`} {
			if p := problem(s, s.send("POST", path+"/"+what, body), 409); p.Code != "stale_fence" {
				s.Errorf("%s of a run that has ended: %+v", what, p)
			}
		}
	})
}

// TestWorkerFailures: what fails is tried again, or not, and who asked for an end is
// heard.
func TestWorkerFailures(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"@daily","overlap":"allow","retry":{"max_attempts":2},"job":{"queue":"test"}}`)
		for outcome, state := range map[string]string{
			`"outcome":"failed","error":"no"`:                    "retrying",
			`"outcome":"failed","permanent":true`:                "dead",
			`"outcome":"failed","retry_after":"2h","error":"no"`: "retrying",
			`"outcome":"handed_back"`:                            "retrying",
			`"outcome":"canceled"`:                               "canceled",
		} {
			key := s.offer(made.ID)
			got := s.leaseRuns(``)[0]
			run := want[api.Run](s, s.send("POST", "/v1/runs/"+got.RunID+"/finish", fmt.Sprintf(`{"fence":%d,%s}`, got.Fence, outcome)), 200)
			if run.State != state || run.ID != key.ID() {
				s.Errorf("%s: %+v", outcome, run)
			}
		}
		s.offer(made.ID)
		got := s.leaseRuns(``)[0]
		want[api.Run](s, s.send("POST", "/v1/runs/"+got.RunID+"/cancel", nil), 202)
		if beat := want[api.HeartbeatResult](s, s.send("POST", "/v1/runs/"+got.RunID+"/heartbeat", fmt.Sprintf(`{"fence":%d}`, got.Fence)), 200); !beat.CancelRequested {
			s.Error("a cancel is not told")
		}
		canceled := want[api.Run](s, s.send("POST", "/v1/runs/"+got.RunID+"/finish", fmt.Sprintf(`{"fence":%d,"outcome":"failed"}`, got.Fence)), 200)
		if canceled.State != "canceled" {
			s.Errorf("%+v", canceled)
		}
		short := s.create(`{"name":"short","spec":"@daily","timeout":"1s","job":{"queue":"test"}}`)
		s.offer(short.ID)
		late := s.leaseRuns(``)[0]
		time.Sleep(1100 * time.Millisecond) // the store's time
		if p := problem(s, s.send("POST", "/v1/runs/"+late.RunID+"/heartbeat", fmt.Sprintf(`{"fence":%d}`, late.Fence)), 409); p.Code != "attempt_timed_out" {
			s.Errorf("%+v", p)
		}
	})
}

// TestLeaseSentAgain: an answer is lost, and the same request brings the same runs
// under the same fence, with no attempt lost.
func TestLeaseSentAgain(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"@daily","overlap":"allow","job":{"queue":"test"}}`)
		for range 3 {
			s.offer(made.ID)
		}
		first := s.leaseRuns(`{"max":2}`, "Idempotency-Key", "poll-1")
		again := s.leaseRuns(`{"max":2}`, "Idempotency-Key", "poll-1")
		other := s.leaseRuns(`{"max":2}`, "Idempotency-Key", "poll-2")
		if len(first) != 2 || len(again) != 2 || len(other) != 1 {
			s.Fatalf("leased %d, again %d, others %d", len(first), len(again), len(other))
		}
		fences := map[string]int64{}
		for _, r := range first {
			fences[r.RunID] = r.Fence
		}
		for _, r := range again {
			if fences[r.RunID] != r.Fence || r.Attempt != 1 {
				s.Errorf("again %+v", r)
			}
		}
		for id, fence := range fences {
			want[api.Run](s, s.send("POST", "/v1/runs/"+id+"/finish", fmt.Sprintf(`{"fence":%d,"outcome":"succeeded"}`, fence)), 200)
		}
		if got := s.leaseRuns(`{"max":2}`, "Idempotency-Key", "poll-1"); len(got) != 0 {
			s.Errorf("after the end %+v", got)
		}
		if p := problem(s, s.send("POST", "/v1/queues/test/lease", `{"max":3}`, "Idempotency-Key", "poll-1"), 422); p.Code != "idempotency_mismatch" {
			s.Errorf("%+v", p)
		}
	})
}

// TestLeaseWaits: a long poll is answered as soon as there is a run; each run goes
// to one of those who wait, and to none of another tenant.
func TestLeaseWaits(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		stranger := s.as(s.addKey(uuid.New(), "worker"))
		made := s.create(`{"name":"a","spec":"@daily","overlap":"allow","job":{"queue":"test"}}`)
		var wg sync.WaitGroup
		var mu sync.Mutex
		seen := map[string]int{}
		began := time.Now()
		for range 4 {
			wg.Go(func() {
				for _, r := range s.leaseRuns(`{"max":1,"wait":"15s"}`) {
					mu.Lock()
					seen[r.RunID]++
					mu.Unlock()
				}
			})
		}
		wg.Go(func() {
			if got := stranger.leaseRuns(`{"wait":"1s"}`); len(got) != 0 {
				s.Errorf("a stranger got %+v", got)
			}
		})
		for range 4 {
			key := s.offer(made.ID)
			_, err := s.desk.Publish(s.Context(), "test", []core.Message{{Key: key, Fence: 1, Tenant: s.tenant()}}) // an old copy
			if err != nil {
				s.Error(err)
			}
		}
		wg.Wait()
		if len(seen) != 4 || time.Since(began) > 10*time.Second {
			s.Errorf("after %s: %v", time.Since(began), seen)
		}
		for id, n := range seen {
			if n != 1 {
				s.Errorf("%s was leased %d times", id, n)
			}
		}
	})
}

func TestWrongLeases(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"@daily","job":{"queue":"test"}}`)
		s.offer(made.ID)
		got := s.leaseRuns(``)[0]
		path, fence := "/v1/runs/"+got.RunID, fmt.Sprintf(`"fence":%d`, got.Fence)
		for _, c := range []struct{ path, body, field string }{
			{"/v1/queues/test/lease", `{"max":0}`, "max"}, {"/v1/queues/test/lease", `{"max":101}`, "max"}, {"/v1/queues/test/lease", `{"wait":"21s"}`, "wait"},
			{"/v1/queues/test/lease", `{"lease":"1s"}`, "lease"}, {"/v1/queues/test/lease", `{"queue":"a"}`, "queue"},
			{path + "/heartbeat", `{}`, "fence"}, {path + "/heartbeat", `{"fence":0}`, "fence"}, {path + "/heartbeat", `{` + fence + `,"lease":"2h"}`, "lease"},
			{path + "/finish", `{` + fence + `}`, "outcome"}, {path + "/finish", `{` + fence + `,"outcome":"done"}`, "outcome"},
			{path + "/finish", `{` + fence + `,"outcome":"failed","result":1}`, "result"}, {path + "/finish", `{` + fence + `,"outcome":"succeeded","permanent":true}`, "outcome"},
			{path + "/finish", `{` + fence + `,"outcome":"failed","retry_after":"25h"}`, "retry_after"},
		} {
			if p := problem(s, s.send("POST", c.path, c.body), 422); p.Field != c.field {
				s.Errorf("%s %s: %+v", c.path, c.body, p)
			}
		}
		if p := problem(s, s.send("POST", "/v1/queues/http/lease", `{}`), 404); p.Code != "unknown_queue" {
			s.Errorf("%+v", p)
		}
		if p := problem(s, s.send("POST", path+"/heartbeat", `{"fence":12}`), 409); p.Code != "stale_fence" {
			s.Errorf("%+v", p)
		}
	})
}

// TestWorkersKeepLimits: of two runs one is leased; the other comes, without an attempt
// lost, once the first has ended.
func TestWorkersKeepLimits(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		want[api.QueueLimit](s, s.send("PUT", "/v1/queues/test/limit", `{"concurrency":1}`), 200)
		made := s.create(`{"name":"a","spec":"@daily","overlap":"allow","job":{"queue":"test"}}`)
		first, second := s.offer(made.ID), s.offer(made.ID)
		got := s.leaseRuns(`{"max":5}`)
		if len(got) != 1 || got[0].RunID != first.ID() {
			s.Fatalf("leased %+v", got)
		}
		if more := s.leaseRuns(`{"max":5}`); len(more) != 0 {
			s.Fatalf("leased beyond the limit: %+v", more)
		}
		limits := want[api.List[api.QueueLimit]](s, s.send("GET", "/v1/queues", nil), 200).Items
		if limits[0].Running != 1 || limits[0].Waiting != 1 {
			s.Errorf("%+v", limits)
		}
		want[api.Run](s, s.send("POST", "/v1/runs/"+got[0].RunID+"/finish", fmt.Sprintf(`{"fence":%d,"outcome":"failed","permanent":true}`, got[0].Fence)), 200)
		got = s.leaseRuns(`{}`)
		if len(got) != 1 || got[0].RunID != second.ID() || got[0].Attempt != 1 {
			s.Errorf("after the end: %+v", got)
		}
	})
}
