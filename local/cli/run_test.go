package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

// columns finds the padding after the name of a field.
var columns = regexp.MustCompile(`(?m)^([a-z0-9][a-z0-9 ]*?) {2,}`)

// TestRunsGetShowsWhatAJobPrinted: outputs and bodies come line by line, and no
// terminal obeys them.
func TestRunsGetShowsWhatAJobPrinted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  api.RunDetail
		want string
	}{
		"exec": {
			api.RunDetail{Run: api.Run{Result: []byte(`{"exit_code":0,"output":"one\n\tt\u001b[31mwo\n\nend\n"}`)}},
			"exit code\t0\noutput:\n  one\n          t\uFFFD[31mwo\n\n  end\n",
		},
		"exec without output": {api.RunDetail{Run: api.Run{Result: []byte(`{"exit_code":0,"output":""}`)}}, "exit code\t0\noutput:\n  (nothing)\n"},
		"http":                {api.RunDetail{Run: api.Run{Result: []byte(`{"status":200,"body":"<p>\r\n"}`)}}, "status\t200\nbody:\n  <p>\n"},
		"others":              {api.RunDetail{Run: api.Run{Result: []byte(`{"rows":[1, 2],"output":{"a":1}}`)}}, "output\t{\"a\":1}\nrows\t[1,2]\n"},
		"no object":           {api.RunDetail{Run: api.Run{Result: []byte(`[1, 2]`)}}, "result\t[1,2]\n"},
		"null":                {api.RunDetail{Run: api.Run{Result: []byte(`null`)}}, ""},
		"nothing":             {api.RunDetail{}, ""},
		"errors": {
			api.RunDetail{Run: api.Run{Attempt: 2, Error: "exit 1\nb\n"}, Attempts: []api.Attempt{{Number: 1, Error: "exit 2\na"}, {Number: 2, Error: "exit 1\nb\n"}}},
			"attempt 1\texit 2 ...\nattempt 2\texit 1 ...\nerror:\n  exit 1\n  b\nerror of attempt 1:\n  exit 2\n  a\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := columns.ReplaceAllString(serving(t, c.run).ok("runs", "get", "x"), "$1\t")
			_, got, _ = strings.Cut(got, "created\t0001-01-01T00:00:00Z\n")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// serving returns a shell whose API answers everything so.
func serving(t *testing.T, answer any) *shell {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &shell{TB: t, env: map[string]string{"FENCEPOST_URL": server.URL, "FENCEPOST_API_KEY": "fp_x"}}
}

// TestRangesAreShown: a row of skipped slots shows the first, the last and how
// many.
func TestRangesAreShown(t *testing.T) {
	t.Parallel()
	from, to := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	for count, want := range map[int64]string{301: "(301)", 10_000: "(at least 10000)"} {
		run := api.Run{ID: "x", State: "skipped", Cause: "schedule", Reason: "misfire", ScheduledFor: to, RangeFrom: &from, RangeCount: count}
		slots := "2026-12-01T00:00:00Z .. 2026-12-01T05:00:00Z " + want
		if out := serving(t, map[string]any{"id": "a", "name": "a", "items": []api.Run{run}}).ok("runs", "list", "a"); out != slots+"\tskipped\tschedule\t0/0\t\t\tmisfire\tx\n" {
			t.Error(out)
		}
		if out := serving(t, run).ok("runs", "get", "x"); !strings.Contains(columns.ReplaceAllString(out, "$1\t"), "slot\t"+slots+"\n") {
			t.Error(out)
		}
	}
}

// TestCompletionOfRuns: the shell is offered the last runs, to cancel only those
// that are alive, and nothing that commands a terminal.
func TestCompletionOfRuns(t *testing.T) {
	t.Parallel()
	done, alive := "succeeded", "running"
	s := serving(t, api.List[api.Schedule]{Items: []api.Schedule{
		{Name: "a", LastRun: &api.LastRun{ID: "run_a"}, LastState: &done},
		{Name: "b\x1b[31m", LastRun: &api.LastRun{ID: "run_b"}, LastState: &alive},
		{Name: "c"},
		{Name: "d", LastRun: &api.LastRun{ID: "run_d"}},
	}})
	for line, want := range map[string]string{
		"runs get run_":                   "run_a\ta succeeded\nrun_b\tb\uFFFD[31m running\n",
		"runs get run_b":                  "run_b\tb\uFFFD[31m running\n",
		"runs get run_b x":                "",
		"runs cancel run_":                "run_b\tb\uFFFD[31m running\n",
		"schedules pause ":                "a\nc\nd\n",
		"runs tail a ":                    "a\nc\nd\n",
		"runs list a --state d":           "queued\nrunning\nretrying\nsucceeded\ndead\nskipped\ncanceled\n",
		"schedules edit a --overlap q":    "skip\nallow\nqueue_one\ncancel_previous\n",
		"schedules create --dst-gap run_": "auto\nrun_after\nskip\n",
	} {
		out := s.run(append([]string{"__complete"}, strings.Split(line, " ")...)...).out
		got, _, _ := strings.Cut(out, ":")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
		if !strings.HasSuffix(out, ":4\n") { // no names of files
			t.Errorf("%q: %s", line, out)
		}
	}
}
