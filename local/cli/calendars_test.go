package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const frozen = `calendars:
  - name: freeze
    time_zone: Europe/Berlin
    ranges:
      - from: 2026-12-23T18:00
        to: "2027-01-02"
    weekly:
      - days:
          - sat
          - sun
schedules:
  - name: deploy
    spec: 0 9 * * *
    calendars: [freeze]
    job: {queue: mails}
`

// TestApplyCalendars: calendars are made before the schedules that name them, shown
// with their differences, and come back from an export.
func TestApplyCalendars(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	path := write(t, dir, "frozen.yaml", frozen)
	const planned = `created calendar freeze
  + time_zone: "Europe/Berlin"
  + ranges: [{"from":"2026-12-23T18:00","to":"2027-01-02"}]
  + weekly: [{"days":["sat","sun"]}]
created deploy
  + name: "deploy"
  + spec: "0 9 * * *"
  + calendars: ["freeze"]
  + job.queue: "mails"
`
	says(t, s.run("apply", "-f", path, "--dry-run"), 0, planned+"dry run, nothing was changed: 1 created, 0 replaced, 0 unchanged, 0 refused\n", "")
	if out := s.ok("calendars", "list"); out != "" {
		t.Errorf("a dry run made %s", out)
	}
	says(t, s.run("apply", "-f", path), 0, planned+"1 created, 0 replaced, 0 unchanged, 0 refused\n", "")
	says(t, s.run("apply", "-f", path), 0, "0 created, 0 replaced, 1 unchanged, 0 refused\n", "")
	exported := s.ok("export")
	again := write(t, dir, "again.yaml", exported)
	says(t, s.run("apply", "-f", again), 0, "0 created, 0 replaced, 1 unchanged, 0 refused\n", "")
	if !strings.Contains(exported, "calendars:\n  - name: freeze\n") {
		t.Error(exported)
	}

	other := strings.Replace(frozen, "18:00", "20:00", 1)
	says(t, s.run("apply", "-f", write(t, dir, "other.yaml", other)), 0, `replaced calendar freeze
  - ranges: [{"from":"2026-12-23T18:00","to":"2027-01-02"}]
  + ranges: [{"from":"2026-12-23T20:00","to":"2027-01-02"}]
0 created, 0 replaced, 1 unchanged, 0 refused
`, "")
	wrong := write(t, dir, "wrong.yaml", strings.Replace(strings.Replace(frozen, "2027-01-02", "soon", 1), "[freeze]", "[freeze, frost]", 1))
	says(t, s.run("apply", "-f", wrong), 1, wrong+`:6:9: freeze: ranges[0].to: must be a date such as 2027-01-02, or 2027-01-02T06:00 on the zone's clocks
`+wrong+`:14:25: deploy: calendars[1]: is neither a calendar of yours nor one of these files
`, "fencepost: nothing was applied: 2 schedules and calendars were refused\n")
}

// TestCalendars: a calendar is put, shown as it can be put back, and deleted.
func TestCalendars(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	path := write(t, t.TempDir(), "k.yaml", "note: maintenance\ndates: [2026-12-25, \"2026-12-26\"]\n")
	says(t, s.run("calendars", "put", "k", "-f", path), 0, "created calendar k: 2 dates\n", "")
	says(t, s.run("calendars", "put", "k", "-f", path), 0, "unchanged calendar k: 2 dates\n", "")
	shown := s.ok("calendars", "get", "k")
	if diff := cmp.Diff("note: maintenance\ndates:\n  - \"2026-12-25\"\n  - \"2026-12-26\"\n", shown); diff != "" {
		t.Error(diff)
	}
	s.in = shown
	says(t, s.run("calendars", "put", "k", "-f", "-"), 0, "unchanged calendar k: 2 dates\n", "")
	if out := s.ok("calendars", "list"); !strings.HasPrefix(out, "k\tUTC\t2 dates\tmaintenance\t") {
		t.Error(out)
	}
	s.ok("schedules", "create", "--name", "a", "--spec", "@daily", "--queue", "mails", "--calendar", "k")
	says(t, s.run("calendars", "delete", "k"), 1, "", "fencepost: 1 schedule names this calendar; take it from calendars there first\n")
	if out := s.ok("schedules", "edit", "a", "--calendar", ""); !strings.Contains(out, "version 2") {
		t.Error(out)
	}
	says(t, s.run("calendars", "delete", "k"), 0, "deleted calendar k\n", "")
	says(t, s.run("calendars", "get", "k"), 1, "", "fencepost: no such calendar\n")
	if r := s.run("calendars", "put", "k", "-f", write(t, t.TempDir(), "bad.yaml", "dates:\n\t- x")); r.code != 1 || !strings.Contains(r.err, "bad.yaml:2:1:") {
		t.Errorf("%+v", r)
	}
}
