package api_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// TestQueueLimits: a tenant limits its runs of a queue and sees what holds for all.
func TestQueueLimits(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		const path = "/v1/queues/test/limit"
		list := func() []api.QueueLimit {
			return want[api.List[api.QueueLimit]](s, s.send("GET", "/v1/queues", nil), 200).Items
		}
		admin := s.keys.(core.LimitAdmin)
		must := func(err error) {
			if err != nil {
				s.Fatal(err)
			}
		}
		must(admin.SetLimit(context.Background(), core.Limit{Queue: "test", Concurrency: 9}))
		must(admin.SetLimit(context.Background(), core.Limit{Queue: "test", TenantID: uuid.New(), Concurrency: 5}))
		all := api.QueueLimit{Queue: "test", Of: "all", Concurrency: 9}
		if diff := cmp.Diff([]api.QueueLimit{all}, list()); diff != "" {
			s.Error(diff)
		}
		mine := want[api.QueueLimit](s, s.send("PUT", path, `{"concurrency":0}`), 200)
		mine = want[api.QueueLimit](s, s.send("PUT", path, `{"concurrency":3}`), 200)
		if diff := cmp.Diff(api.QueueLimit{Queue: "test", Of: "tenant", Concurrency: 3}, mine); diff != "" {
			s.Error(diff)
		}
		if diff := cmp.Diff([]api.QueueLimit{all, mine}, list()); diff != "" {
			s.Error(diff)
		}
		for body, field := range map[string]string{
			`{}`: "concurrency", `{"concurrency":-1}`: "concurrency", `{"concurrency":1001}`: "concurrency", `{"concurrency":"3"}`: "concurrency",
			`{"concurrency":1,"x":1}`: "x",
		} {
			if p := problem(s, s.send("PUT", path, body), 422); p.Field != field {
				s.Errorf("%s: %+v", body, p)
			}
		}
		if p := problem(s, s.send("PUT", "/v1/queues/htpp/limit", `{"concurrency":3}`), 422); p.Field != "queue" {
			s.Errorf("%+v", p)
		}
		want[struct{}](s, s.send("DELETE", path, nil), 204)
		problem(s, s.send("DELETE", path, nil), 404)
		if diff := cmp.Diff([]api.QueueLimit{all}, list()); diff != "" {
			s.Error(diff)
		}
	})
}
