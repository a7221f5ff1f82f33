package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/schedules"
)

// limited returns an API with a rate limit.
func limited(t *testing.T, r api.RateLimit) *server {
	t.Helper()
	return newServer(t, &fakeStore{}, &fakeKeys{}, func(c *api.Config) { c.Rate = r })
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit api.RateLimit
		pass  time.Duration // between what fills the burst and the last requests
		want  string        // what these are answered
	}{
		{api.RateLimit{}, 0, "200 200 200 200"},
		{api.RateLimit{PerSecond: 2, Burst: 3}, 0, "429/1 429/1 429/1 429/1"},
		{api.RateLimit{PerSecond: 2, Burst: 3}, 499 * time.Millisecond, "429/1 429/1 429/1 429/1"},
		{api.RateLimit{PerSecond: 2, Burst: 3}, 500 * time.Millisecond, "200 429/1 429/1 429/1"},
		{api.RateLimit{PerSecond: 2, Burst: 3}, time.Hour, "200 200 200 429/1"},
		{api.RateLimit{PerSecond: 2, Burst: 3}, -time.Hour, "429/1 429/1 429/1 429/1"},
		{api.RateLimit{PerSecond: 0.1, Burst: 3}, 4500 * time.Millisecond, "429/6 429/6 429/6 429/6"},
		{api.RateLimit{PerSecond: 0.00001, Burst: 3}, 0, "429/3600 429/3600 429/3600 429/3600"},
		{api.RateLimit{PerSecond: 1.5}, 0, "429/1 429/1 429/1 429/1"}, // the burst is 3
	} {
		s := limited(t, c.limit)
		for range 3 {
			want[api.Schedule](s, s.send("GET", aSchedule, nil), 200)
		}
		s.clock.advance(c.pass)
		got := ""
		for range 4 {
			w := s.send("GET", aSchedule, nil)
			got += fmt.Sprint(" ", w.Code)
			if w.Code == 429 {
				got += "/" + w.Header().Get("Retry-After")
				if p := problem(s, w, 429); p.Code != "rate_limited" {
					t.Errorf("%+v: %s", c.limit, w.Body)
				}
			}
		}
		if diff := cmp.Diff(" "+c.want, got); diff != "" {
			t.Errorf("%+v, %s later: %s", c.limit, c.pass, diff)
		}
	}
}

func TestRateLimitIsEachTenants(t *testing.T) {
	t.Parallel()
	s := limited(t, api.RateLimit{PerSecond: 1, Burst: 2})
	tenant := uuid.New()
	one, two := s.as(s.addKey(tenant, "admin")), s.as(s.addKey(tenant, "worker"))
	want[api.Schedule](s, one.send("GET", aSchedule, nil), 200)
	problem(s, two.send("GET", aSchedule, nil), 403) // counts as well
	problem(s, one.send("GET", aSchedule, nil), 429)
	problem(s, two.send("GET", aSchedule, nil), 429)
	want[api.Schedule](s, s.send("GET", aSchedule, nil), 200) // another tenant
	want[api.Health](s, one.send("GET", "/healthz", nil), 200)
}

// TestRateLimitForgetsTenants: the memory for tenants is bounded.
func TestRateLimitForgetsTenants(t *testing.T) {
	t.Parallel()
	s := limited(t, api.RateLimit{PerSecond: 1, Burst: 1})
	keys := make([]string, 10_001)
	for i := range keys {
		keys[i] = s.addKey(uuid.New(), "read")
		want[api.Schedule](s, s.as(keys[i]).send("GET", aSchedule, nil), 200)
	}
	problem(s, s.as(keys[10_000]).send("GET", aSchedule, nil), 429)
	passed := 0
	for _, key := range keys {
		if s.as(key).send("GET", aSchedule, nil).Code == 200 {
			passed++
		}
	}
	if passed < 1000 || passed > 5000 {
		t.Errorf("%d of %d tenants were forgotten", passed, len(keys))
	}
}

func TestRateLimitMustMakeSense(t *testing.T) {
	t.Parallel()
	for _, r := range []api.RateLimit{{PerSecond: -1}, {PerSecond: 1, Burst: -1}} {
		if _, err := api.New(api.Config{Rate: r}); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
}

// TestQuotaIsRefused in each way that makes schedules, with what helps.
func TestQuotaIsRefused(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		store := s.keys.(core.ScheduleStore) // both stores are both
		service, err := schedules.NewLimited(store, region, map[string]core.Target{"test": testTarget{}}, schedules.Limits{Schedules: 2, MinInterval: time.Minute})
		if err != nil {
			s.Fatal(err)
		}
		s = newServer(s.TB, store, s.keys, func(c *api.Config) { c.Service = service })
		often := `{"name":"often","spec":"every 30s","job":{"queue":"test"}}`
		if p := problem(s, s.send("POST", "/v1/schedules", often), 409); p.Code != "quota_exceeded" || p.Field != "spec" || !strings.Contains(p.Detail, "1m is the smallest interval") {
			s.Errorf("%+v", p)
		}
		for _, name := range []string{"a", "b"} {
			s.create(daily(name))
		}
		item := `{"name":"c","spec":"@daily","job":{"queue":"test"}}`
		if p := problem(s, s.send("POST", "/v1/schedules", item), 409); p.Code != "quota_exceeded" || !strings.Contains(p.Detail, "may have 2 schedules here; delete some") {
			s.Errorf("%+v", p)
		}
		if p := problem(s, s.send("PUT", "/v1/schedules/by-name/c", wholePut), 409); p.Code != "quota_exceeded" {
			s.Errorf("%+v", p)
		}
		want[api.PutResult](s, s.send("PUT", "/v1/schedules/by-name/a", wholePut), 200)
		batch := want[api.BatchResult](s, s.send("POST", "/v1/schedules/batch", `{"mode":"put","items":[`+item+`,`+strings.Replace(item, `"c"`, `"b"`, 1)+`]}`), 200)
		if batch.Refused != 1 || batch.Replaced != 1 || batch.Items[0].Problem.Code != "quota_exceeded" || batch.Items[0].Status != 409 {
			s.Errorf("%+v", batch)
		}
	})
}
