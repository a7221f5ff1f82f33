package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

const rows = `{"name":"a","spec":"@daily","job":{"queue":"mails"}}

{"name":"b","spec":"61 * * * *","job":{"queue":"mails"}}
{"name":"c","spec":"@daily","job":{"queue":"mails"}
[]
{"name":"a","spec":"@hourly","job":{"queue":"mails","payload":"<&>"}}
{"name":"d","spec":"@daily","job":{"queue":"mails"},"color":"red","timeout":5}`

func TestImportJSONL(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = rows
	const refusals = `line 3	refused	spec: minute, column 1, "61": not a number from 0 to 59; .*
line 4	refused	the line is not JSON
line 5	refused	the line is not a JSON object
line 7	refused	color: is not a field here; timeout: must be a string with a unit, such as "90s"
`
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--dry-run"}, "dry run, nothing was changed: 1 created, 1 replaced, 0 unchanged, 4 refused\n"},
		{nil, "1 created, 1 replaced, 0 unchanged, 4 refused\n"},
	} {
		r := s.run(append([]string{"import", "jsonl", "-"}, c.args...)...)
		if r.code != 1 || r.err != "fencepost: 4 lines were refused\n" {
			t.Errorf("%d %s", r.code, r.err)
		}
		if !strings.HasPrefix(r.out, "line 3\trefused\tspec: ") || !strings.HasSuffix(r.out, c.want) || strings.Count(r.out, "\n") != 5 {
			t.Error(r.out)
		}
		for line := range strings.Lines(strings.SplitN(refusals, "\n", 2)[1]) {
			if !strings.Contains(r.out, line) {
				t.Errorf("want %sgot %s", line, r.out)
			}
		}
	}
	s.in = `{"name":"a","spec":"@hourly","job":{"queue":"mails","payload":"<&>"}}`
	if out := s.ok("import", "jsonl", "-"); out != "0 created, 0 replaced, 1 unchanged, 0 refused\n" {
		t.Error(out)
	}
}

// TestExportIsTakenBack: in both forms, without any change, and to another
// installation.
func TestExportIsTakenBack(t *testing.T) {
	t.Parallel()
	s, other := newShell(t), newShell(t)
	s.in = `schedules:
- {name: defaults, spec: 0 3 * * *, job: {queue: mails}}
- {name: "http: 1", spec: "@daily", job: {http: {url: "https://example.com/?a=1&b=<2>", headers: {a: b}}}}
- {name: http by payload, spec: "@daily", exact: true, timeout: 15m, job: {queue: http, payload: {url: x}}}
- {name: odd http, spec: "@daily", timeout: 0s, job: {queue: http, payload: [1]}}
- {name: команда, spec: "H H * * *", time_zone: Asia/Tokyo, paused: true, job: {queue: exec, payload: {command: "a\nb\n", n: [1.0, 1e3, "1", yes]}}}
- {name: interval, spec: every 90s, anchor: 2027-01-05T09:00:00Z, overlap: allow, retry: {max_attempts: 1}, job: {queue: mails, payload: null}}
- {name: phase, spec: "@every 1d", misfire_grace: 2m, window: 5m, job: {queue: mails, payload: "null"}}
- {name: once, spec: "at 2099-10-25T02:30", time_zone: Europe/Berlin, dst_overlap: both, dst_gap: run_after, catch_up_within: 1h, job: {queue: mails, payload: "yes"}}
- {name: " ", spec: "CRON_TZ=EST5EDT 0 0 L * ?", job: {queue: mails, payload: {"": {}, "<<": [], "y": "~"}}}
`
	if out := s.ok("apply", "-f", "-"); !strings.HasSuffix(out, "9 created, 0 replaced, 0 unchanged, 0 refused\n") {
		t.Fatal(out)
	}
	yaml, lines := s.ok("export"), s.ok("export", "--format", "jsonl")
	const unchanged = "0 created, 0 replaced, 9 unchanged, 0 refused\n"
	s.in = yaml
	if out := s.ok("apply", "-f", "-"); out != unchanged {
		t.Errorf("%s of %s", out, yaml)
	}
	s.in = lines
	if out := s.ok("import", "jsonl", "-"); out != unchanged {
		t.Errorf("%s of %s", out, lines)
	}
	other.in = lines
	if out := other.ok("import", "jsonl", "-"); out != "9 created, 0 replaced, 0 unchanged, 0 refused\n" {
		t.Errorf("%s of %s", out, lines)
	}
	other.in = yaml
	if out := other.ok("apply", "-f", "-"); out != unchanged {
		t.Errorf("%s of %s", out, yaml)
	}
	if diff := cmp.Diff(yaml, other.ok("export")); diff != "" {
		t.Errorf("the other installation has something else: %s", diff)
	}
	if n := strings.Count(other.ok("schedules", "list"), "\tpaused\t"); n != 1 {
		t.Errorf("%d schedules are paused there", n)
	}
	says(t, s.run("export", "--format", "xml"), 2, "", "fencepost: --format must be yaml, jsonl or crontab (see fencepost export --help)\n")
}

// TestExportLeavesOutDefaults holds the exporter's idea of the defaults to the
// API's.
func TestExportLeavesOutDefaults(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = `{"name":"a","spec":"0 3 * * *","job":{"queue":"mails"}}
{"name":"b","spec":"every 1h","job":{"http":{"url":"x"}}}
`
	s.ok("import", "jsonl", "-")
	if diff := cmp.Diff(s.in, s.ok("export", "--format", "jsonl")); diff != "" {
		t.Error(diff)
	}
}

// skipping is a clock that passes over what commands sleep.
type skipping struct {
	core.Clock
	now time.Time
}

func (c *skipping) Now() time.Time { return c.now }

func (c *skipping) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}

// tired is an API that cannot decide about items at first.
func tired(t *testing.T, times int64) *shell {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in api.BatchInput
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		n := asked.Add(1)
		out := api.BatchResult{}
		for i := range in.Items {
			item := api.BatchItem{Status: 201, Outcome: "created"}
			if i > 0 && n <= times {
				item = api.BatchItem{Status: 503, Problem: &api.Problem{Status: 503, Code: "unavailable", Detail: "busy"}}
			}
			out.Items = append(out.Items, item)
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &shell{TB: t, env: map[string]string{"FENCEPOST_URL": server.URL, "FENCEPOST_API_KEY": "fp_x"}}
}

func TestBusyAPIsAreAskedAgain(t *testing.T) {
	t.Parallel()
	s := tired(t, 1)
	s.clock = &skipping{now: time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC)}
	for i := range 2500 {
		s.in += fmt.Sprintf(`{"name":"n%d"}`+"\n", i)
	}
	r := s.run("import", "jsonl", "-")
	if r.code != 0 || r.out != "2500 created, 0 replaced, 0 unchanged, 0 refused\n" {
		t.Errorf("%+v", r)
	}
	// It took more than a second, so it said how far it was.
	if !strings.HasPrefix(r.err, "1000 lines: 1000 created, 0 replaced, 0 unchanged, 0 refused; 1000 lines/s\n") {
		t.Errorf("%+v", r)
	}
	s.env["FENCEPOST_URL"] = tired(t, 1000).env["FENCEPOST_URL"]
	says(t, s.run("import", "jsonl", "-"), 1, "", "fencepost: after line 0: the API could not decide about some schedules; run it again to go on, lines that are in stay as they are\n")
}

// TestImportEndsWithItsContext: Ctrl-C says up to where lines are in.
func TestImportOfAFileThatIsCutOff(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	s.ctx = ctx
	s.in = rows
	r := s.run("import", "jsonl", "-")
	if r.code != 1 || !strings.HasPrefix(r.err, "fencepost: after line 0: ") {
		t.Errorf("%+v", r)
	}
}
