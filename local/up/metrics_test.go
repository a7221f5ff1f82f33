package up_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/local/up"
)

// read returns the status and the text of a page.
func read(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// freePort returns an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestMetrics: a run is seen in the metrics from its claim to its end, odd requests make
// no new series, and an address of their own is the only one then.
func TestMetrics(t *testing.T) {
	t.Parallel()
	i := start(t, dataDir(t), "")
	i.call("POST", "/v1/schedules", `{"name":"m","spec":"* * * * * *","job":{"queue":"exec","payload":{"command":"true"}}}`, 201)
	for n := range 100 {
		read(t, fmt.Sprintf("%s/v1/odd%d?x=%d", i.url, n, n))
		i.call("GET", fmt.Sprintf("/v1/runs/run_%d", n), "", 404)
	}
	want := []string{
		`fencepost_finished_attempts_total{queue="exec",state="succeeded"}`, `fencepost_start_lag_seconds_count{queue="exec"}`,
		`fencepost_claimed_runs_total{queue="exec",state="queued"}`, `fencepost_dispatched_runs_total{queue="exec"}`,
		`fencepost_held_shards 64`, `fencepost_build_info{version="test"} 1`, `process_open_fds`, `go_goroutines`,
		`fencepost_http_request_duration_seconds_count{code="404",route="GET /v1/runs/{id}"} 100`,
		`fencepost_http_request_duration_seconds_count{code="404",route="none"} 100`,
	}
	i.until("the run is in the metrics", func() bool {
		_, text := read(t, i.url+"/metrics")
		for _, line := range want {
			if !strings.Contains(text, line) {
				return false
			}
		}
		return true
	})
	_, text := read(t, i.url+"/metrics")
	if n := strings.Count(text, "fencepost_http_request_duration_seconds_count"); n > 10 {
		t.Errorf("%d series of requests", n)
	}
}

// TestMetricsApart: with an address of their own, metrics are there and nowhere else;
// without one they are not shown to other machines.
func TestMetricsApart(t *testing.T) {
	t.Parallel()
	address := freePort(t)
	i := startWith(t, up.Config{DataDir: dataDir(t), MetricsListen: address}, "")
	if code, text := read(t, "http://"+address+"/metrics"); code != 200 || !strings.Contains(text, "fencepost_build_info") {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := read(t, i.url+"/metrics"); code != 404 {
		t.Errorf("beside the API: %d", code)
	}
	if code, _ := read(t, "http://"+address+"/v1/info"); code != 404 {
		t.Errorf("the API beside the metrics: %d", code)
	}
}
