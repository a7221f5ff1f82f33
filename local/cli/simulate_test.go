package cli_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSimulate plays the examples, whose assertions hold; the output of one is in
// testdata/simulate.txt.
func TestSimulate(t *testing.T) {
	t.Parallel()
	s := &shell{TB: t}
	examples, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, name := range examples {
		s.ok("simulate", "-f", name)
	}
	got := s.ok("simulate", "-f", "../examples/clock-change.yaml", "--rows", "30")
	golden := filepath.Join("testdata", "simulate.txt")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-update writes %s anew (-want +got):\n%s", golden, diff)
	}
	var document struct {
		Rows       []struct{ Schedule, State, Sentence string }
		Schedules  []struct{ Name string }
		Assertions []struct{ Passed bool }
	}
	if err := json.Unmarshal([]byte(s.ok("simulate", "-f", "../examples/clock-change.yaml", "--json")), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Rows) < 40 || len(document.Schedules) != 5 || len(document.Assertions) != 11 || document.Rows[0].Sentence == "" {
		t.Errorf("%d rows, %d schedules, %d assertions", len(document.Rows), len(document.Schedules), len(document.Assertions))
	}
}

const simulated = `schedules:
  - {name: a, spec: "0 * * * *", overlap: queue_one, timeout: 3h, job: {queue: q}}
  - {name: b, spec: "30 * * * *", calendars: [closed], paused: true, job: {http: {url: "https://example.com"}}}
calendars:
  - {name: closed, dates: ["2026-06-01"]}
simulate:
  from: "2026-06-01T00:30"
  to: "2026-06-01T06:30"
  run_time: 90m
  jobs: {b: {fail: 2}}
  assert:
`

// given plays a file from standard input.
func given(t *testing.T, file string, args ...string) result {
	t.Helper()
	s := &shell{TB: t, in: file}
	return s.run(append([]string{"simulate", "-f", "-"}, args...)...)
}

// TestSimulateChecks: what does not hold is told with what was found, and exits
// with 1; flags go before the file.
func TestSimulateChecks(t *testing.T) {
	t.Parallel()
	for assertion, want := range map[string]string{
		`- {schedule: a, runs: 4, skipped: {overlap: 1}, max_alive: 1, at_least: 4, at_most: 4, state: active}`:     "",
		`- {schedule: a, runs_at: ["2026-06-01T02:00"], no_runs_between: ["2026-06-01T01:30", "2026-06-01T02:00"]}`: "",
		`- {schedule: b, runs: 0, state: paused}`:                                    "",
		`- {schedule: a, runs: 3}`:                                                   "FAILED  a  runs: 3  (4 runs)",
		`- {schedule: a, at_least: 5}`:                                               "FAILED  a  at_least: 5  (4 runs)",
		`- {schedule: a, at_most: 2}`:                                                "FAILED  a  at_most: 2  (4 runs)",
		`- {schedule: a, skipped: {misfire: 1}}`:                                     "FAILED  a  skipped misfire: 1  (0 slots)",
		`- {schedule: a, max_alive: 0}`:                                              "FAILED  a  max_alive: 0  (1 at once)",
		`- {schedule: a, runs_at: ["2026-06-01T02:30"]}`:                             "FAILED  a  runs_at: 2026-06-01T02:30  (no slot)",
		`- {schedule: a, no_runs_between: ["2026-06-01T01:00", "2026-06-01T02:00"]}`: "FAILED  a  no_runs_between: 2026-06-01T01:00 and 2026-06-01T02:00  (1 runs)",
		`- {schedule: b, state: active}`:                                             "FAILED  b  state: active  (paused)",
	} {
		r := given(t, simulated+"    "+assertion+"\n")
		if want == "" && r.code != 0 || want != "" && (r.code != 1 || !strings.Contains(r.out, want) || !strings.Contains(r.err, "1 assertion of 1 failed")) {
			t.Errorf("%s: exit code %d\n%s%s", assertion, r.code, r.out, r.err)
		}
	}
	r := given(t, simulated+"    - {schedule: a, runs: 1}\n", "--to", "2026-06-01T03:00", "--outage", "2026-06-01T00:45..2026-06-01T02:30")
	if r.code != 0 || !strings.Contains(r.out, "to catch up, 30m after the slot") {
		t.Errorf("with flags: %+v", r)
	}
}

// TestSimulateRefuses names what is wrong by its place, and exits with 2.
func TestSimulateRefuses(t *testing.T) {
	t.Parallel()
	s := &shell{TB: t}
	const one = "schedules:\n  - {name: a, spec: \"0 * * * *\", job: {queue: q}}\n"
	const times = "simulate:\n  from: 2026-06-01T00:30:00Z\n  to: 2026-06-02T00:30:00Z\n"
	for file, want := range map[string]string{
		one: "from: is required; give it by --from, --to",
		one + "simulate:\n  from: now\n  to: 2026-06-02\n":                                          `stdin:4:3: simulate: from: must be a time such as`,
		one + "simulate:\n  from: 2026-06-02\n  to: 2026-06-01\n":                                   `stdin:5:3: simulate: to: must be after from`,
		one + times + "  outage: []\n":                                                              `stdin:6:3: simulate: outage: is not a field here`,
		one + times + "  assert:\n    - {schedule: b, runs: 1}\n":                                   `stdin:7:8: simulate: assert[0].schedule: is not the name`,
		one + times + "  assert:\n    - {schedule: a}\n":                                            `stdin:7:7: simulate: assert[0]: asserts nothing`,
		one + times + "  assert:\n    - {schedule: a, runs: many}\n":                                `simulate: assert.runs: must not be a string`,
		one + times + "  assert:\n    - {schedule: a, skipped: {misfires: 1}}\n":                    `simulate: assert[0].skipped.misfires: is not why a slot is skipped`,
		one + times + "  jobs: {c: {fail: 1}}\n":                                                    `stdin:6:10: simulate: jobs.c: is not a schedule of the file`,
		one + times + "  run_time: soon\n":                                                          `stdin:6:3: simulate: run_time: is not a duration`,
		"schedules:\n  - {name: a, spec: \"60 * * * *\", job: {queue: q}}\n" + times:                `stdin:2:15: a: spec: minute field, column 1, "60"`,
		"schedules:\n  - {name: a, spec: \"0 * * * *\", job: {http: {url: nowhere}}}\n" + times:     `a: job.http.url: `,
		"schedules:\n  - {name: a, spec: \"0 * * * *\", overlaps: skip, job: {queue: q}}\n" + times: `a: overlaps: is not a field here`,
		"schedules: 1\n": `stdin:1:1: schedules: must be a list`,
	} {
		if r := given(t, file); r.code != 2 || !strings.Contains(r.out+r.err, want) {
			t.Errorf("%s: exit code %d, want %q\n%s%s", file, r.code, want, r.out, r.err)
		}
	}
	for _, args := range [][]string{{"simulate"}, {"simulate", "-f", "nowhere.yaml"}, {"simulate", "-f", "../examples/clock-change.yaml", "--outage", "x"}, {"simulate", "-f", "../examples/clock-change.yaml", "--time-zone", "Mars"}} {
		if r := s.run(args...); r.code != 2 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
