package telemetry_test

import (
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/telemetry"
)

// events are one of each kind, with the line that it makes.
var events = map[core.Event]string{
	{Kind: core.EventDue, N: 3}:                                                  `fencepost_due_timers_total 3`,
	{Kind: core.EventClaim, Took: 3 * time.Millisecond}:                          `fencepost_claim_duration_seconds_bucket{le="0.004"} 1`,
	{Kind: core.EventClaimed, Queue: "q", State: core.RunSkipped, N: 2}:          `fencepost_claimed_runs_total{queue="q",state="skipped"} 2`,
	{Kind: core.EventHeld, Queue: "q", N: 4}:                                     `fencepost_held_runs_total{queue="q"} 4`,
	{Kind: core.EventDispatched, Queue: "q", N: 5}:                               `fencepost_dispatched_runs_total{queue="q"} 5`,
	{Kind: core.EventUndelivered, Queue: "q", N: 6}:                              `fencepost_undelivered_runs_total{queue="q"} 6`,
	{Kind: core.EventRepublished, Queue: "q", N: 7}:                              `fencepost_republished_runs_total{queue="q"} 7`,
	{Kind: core.EventRetried, Queue: "q", N: 8}:                                  `fencepost_retried_runs_total{queue="q"} 8`,
	{Kind: core.EventLost, Queue: "q", N: 9}:                                     `fencepost_lost_runs_total{queue="q"} 9`,
	{Kind: core.EventStarted, Queue: "q", N: 1, Took: 15 * time.Millisecond}:     `fencepost_start_lag_seconds_bucket{queue="q",le="0.02"} 1`,
	{Kind: core.EventFinished, Queue: "q", State: core.RunSucceeded, N: 1}:       `fencepost_finished_attempts_total{queue="q",state="succeeded"} 1`,
	{Kind: core.EventDead, Queue: "q", N: 1}:                                     `fencepost_dead_runs_total{queue="q"} 1`,
	{Kind: core.EventStale, What: "finish", N: 2}:                                `fencepost_stale_writes_refused_total{write="finish"} 2`,
	{Kind: core.EventLeaseLost, Queue: "q", N: 3}:                                `fencepost_lost_leases_total{queue="q"} 3`,
	{Kind: core.EventRequest, What: "GET /v1/runs/{id}", N: 404, Took: 1}:        `fencepost_http_request_duration_seconds_count{code="404",route="GET /v1/runs/{id}"} 1`,
	{Kind: core.EventRequest, N: 404, Took: 1}:                                   `fencepost_http_request_duration_seconds_count{code="404",route="none"} 1`,
	{Kind: core.EventFailed, What: "claimer"}:                                    `fencepost_failed_rounds_total{stage="claimer"} 1`,
	{Kind: core.EventShards, N: 64}:                                              `fencepost_held_shards 64`,
	{Kind: core.EventLive, N: 12}:                                                `fencepost_live_attempts 12`,
	{Kind: core.EventOffset, Took: -1500 * time.Millisecond}:                     `fencepost_database_clock_ahead_seconds -1.5`,
	{Kind: core.EventStarted, Queue: "q", N: 1, Took: -1 /* of no known time */}: `fencepost_start_lag_seconds_count{queue="q"} 1`,
}

func text(m *telemetry.Metrics) string {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// TestSeries: each kind of event makes its series rise, the names keep to the
// conventions, and the package tells of all of them and of no other.
func TestSeries(t *testing.T) {
	t.Parallel()
	m := telemetry.New("1.2.3")
	kinds := map[core.EventKind]bool{}
	for e := range events {
		m.Observe(e)
		kinds[e.Kind] = true
	}
	for kind := core.EventDue; kind <= core.EventOffset; kind++ {
		if !kinds[kind] {
			t.Errorf("no event of kind %d here", kind)
		}
	}
	got := text(m)
	for e, line := range events {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("%+v does not make %s", e, line)
		}
	}
	if problems, err := promlint.New(strings.NewReader(got)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v %+v", err, problems)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range families {
		if strings.HasPrefix(name, "fencepost_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	source, err := os.ReadFile("telemetry.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := regexp.MustCompile(`(?m)^//\t(fencepost_\w+)`).FindAllStringSubmatch(string(source), -1)
	var told []string
	for _, d := range documented {
		told = append(told, d[1])
	}
	slices.Sort(told)
	if diff := cmp.Diff(told, names); diff != "" {
		t.Errorf("the series that the package tells of (-) and those that there are (+):\n%s", diff)
	}
}
