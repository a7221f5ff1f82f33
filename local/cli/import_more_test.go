package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/infra/exectarget"
)

// summary imports text as a file of this name and returns the report's last line.
func (s *shell) summary(source, text string, args ...string) string {
	s.Helper()
	s.in = text
	r := s.run(append([]string{"import", "crontab", "-", "--source", source}, args...)...)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	return lines[len(lines)-1]
}

// patch edits the schedule whose name begins so.
func (s *shell) patch(prefix, body string) {
	s.Helper()
	for name, got := range s.schedules() {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		r, err := http.NewRequestWithContext(s.Context(), http.MethodPatch, s.env["FENCEPOST_URL"]+"/v1/schedules/"+got.ID, strings.NewReader(body))
		if err != nil {
			s.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.env["FENCEPOST_API_KEY"])
		r.Header.Set("Content-Type", "application/json")
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			s.Fatal(err)
		}
		if err := w.Body.Close(); err != nil || w.StatusCode != http.StatusOK {
			s.Fatalf("edit %s: status %d, %v", name, w.StatusCode, err)
		}
		return
	}
	s.Fatalf("there is no schedule %s", prefix)
}

// TestImportingAgainChangesNothing: neither do lines that moved, nor whole files
// that are somewhere else now.
func TestImportingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	text, err := os.ReadFile(filepath.Join("..", "crontab", "testdata", "user.crontab"))
	if err != nil {
		t.Fatal(err)
	}
	const none = "0 created, 22 unchanged, 1 refused"
	if got := s.summary("a", string(text)); got != "22 created, 0 unchanged, 1 refused" {
		t.Fatal(got)
	}
	first := s.schedules()
	lines := strings.SplitAfter(string(text), "\n")
	moved := slices.Concat(lines[:6], lines[7:], lines[6:7]) // from above CRON_TZ=UTC to below it
	slices.Reverse(moved[19:])
	for _, got := range []string{
		s.summary("a", string(text)), s.summary("a", strings.Join(moved, "")), s.summary("a", string(text), "--prune"), s.summary("b", string(text), "--prune"),
	} {
		if got != none {
			t.Errorf("%s, want %s", got, none)
		}
	}
	if diff := cmp.Diff(first, s.schedules()); diff != "" || len(first) != 22 {
		t.Errorf("%d schedules, changed (-first +now):\n%s", len(first), diff)
	}
}

// TestImportKeepsWhatPeopleSet: a crontab knows no limits, so that importing it
// again does not undo them; what it does know is brought back.
func TestImportKeepsWhatPeopleSet(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const line = "0 9 * * * aa\n"
	s.summary("a", line)
	s.patch("aa", `{"timeout":"10m","retry":{"max_attempts":3},"overlap":"skip","window":"5m","exact":false,"misfire_grace":"2h","dst_gap":"skip","dst_overlap":"both",
		"labels":{"team":"x","fencepost.io/crontab":"a"}}`)
	set := s.schedules()
	if got := s.summary("a", line); got != "0 created, 1 unchanged, 0 refused" {
		t.Error(got)
	}
	if diff := cmp.Diff(set, s.schedules()); diff != "" {
		t.Errorf("importing again changed (-set +now):\n%s", diff)
	}
	s.patch("aa", `{"spec":"0 10 * * *","time_zone":"Asia/Tokyo","job":{"queue":"mails"}}`)
	if got := s.summary("a", line); got != "0 created, 1 updated, 0 unchanged, 0 refused" {
		t.Error(got)
	}
	if diff := cmp.Diff(set, s.schedules(), cmpopts.IgnoreFields(api.Schedule{}, "Version", "UpdatedAt")); diff != "" {
		t.Errorf("the line did not come back (-set +now):\n%s", diff)
	}
}

// TestTwoCrontabsShareALine: the schedule of a line that two crontabs have stays
// the first one's, and neither takes it from the other.
func TestTwoCrontabsShareALine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const both, own = "0 9 * * * aa\n", "0 9 * * * bb\n"
	owner := func() string {
		t.Helper()
		for name, got := range s.schedules() {
			if strings.HasPrefix(name, "aa") {
				return got.Labels["fencepost.io/crontab"] + " " + got.State
			}
		}
		return ""
	}
	for _, step := range []struct {
		source, text string
		args         []string
		want, owner  string
	}{
		{"a", both, nil, "1 created, 0 unchanged, 0 refused", "a active"},
		{"b", both + own, nil, "1 created, 1 unchanged, 0 refused", "a active"},
		{"b", "X=1\n" + both + own, nil, "0 created, 1 updated, 0 unchanged, 1 refused", "a active"},
		{"b", own, []string{"--prune"}, "0 created, 1 updated, 0 unchanged, 0 refused", "a active"},
		{"a", "", []string{"--prune"}, "0 created, 0 unchanged, 1 paused, 0 refused", "a paused"},
		{"b", both + own, []string{"--dry-run"}, "dry run, nothing was done: 0 created, 1 resumed, 1 unchanged, 0 refused", "a paused"},
		{"b", both + own, nil, "0 created, 1 resumed, 1 unchanged, 0 refused", "b active"},
		{"a", "", []string{"--prune"}, "0 created, 0 unchanged, 0 refused", "b active"},
	} {
		if got := s.summary(step.source, step.text, step.args...); got != step.want || owner() != step.owner {
			t.Fatalf("%+v: %s, of %s", step, got, owner())
		}
	}
	s.in = "X=1\n" + both
	if r := s.run("import", "crontab", "-", "--source", "c"); !strings.Contains(r.out, "; it is of the crontab b, with other variables, input or user; if that is this file, name it: --source 'b'\n") {
		t.Errorf("%+v", r)
	}
}

// TestImportReportsAsJSON: a program reads what a person does.
func TestImportReportsAsJSON(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["TZ"] = ":Europe/Berlin"
	s.in = "0 9 * * * root date\n\n60 9 * * * root date\n@reboot root x\nCRON_TZ=UTC\n1 9 * * * app date\n"
	r := s.run("import", "crontab", "-", "--system", "--source", "s", "--json")
	const want = `{
  "dry_run": false,
  "lines": [
    {"line": 1, "verdict": "created", "name": "date-HASH", "next_run_at": "TIME", "user": "root"},
    {"line": 2, "verdict": "ignored", "text": "blank"},
    {"line": 3, "verdict": "refused", "text": "spec: minute field, column 1, \"60\": out of range; use 0 to 59"},
    {"line": 4, "verdict": "refused", "text": "@reboot cannot be imported: it has no time, and nothing starts with the machine here"},
    {"line": 5, "verdict": "set", "text": "time zone UTC for the entries below"},
    {"line": 6, "verdict": "created", "name": "date-HASH", "next_run_at": "TIME", "user": "app"}
  ],
  "counts": {"created": 2, "ignored": 1, "refused": 2, "set": 1, "unchanged": 0},
  "notes": [
    "imported lines run as cron runs them: exactly on time, once (max_attempts 1), beside each other (overlap allow), without a time limit",
    "users: app, root; only a fencepost that runs as root can run commands as others than itself",
    "1 line is in UTC, since nothing above sets a zone; cron on this machine would use Europe/Berlin: --time-zone Europe/Berlin"
  ]
}`
	got := regexp.MustCompile(timeText).ReplaceAllString(regexp.MustCompile(`date-[0-9a-f]{12}`).ReplaceAllString(r.out, "date-HASH"), "TIME")
	if diff := cmp.Diff(decode(t, want), decode(t, got)); diff != "" || r.code != 1 || r.err != "fencepost: 2 of 6 lines were refused\n" {
		t.Errorf("%d %s (-want +got):\n%s", r.code, r.err, diff)
	}
	if r := s.run("import", "crontab", "-", "--system", "--source", "s", "--time-zone", "UTC"); strings.Contains(r.out, "since nothing above sets a zone") {
		t.Errorf("told of the zone that was asked for: %s", r.out)
	}
}

// TestImportRefusesASourceThatNoLabelHolds: it could never be found again.
func TestImportRefusesASourceThatNoLabelHolds(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = "0 9 * * * date\n"
	for _, source := range []string{"a,b", " a", "a\n", strings.Repeat("x", 201)} {
		if r := s.run("import", "crontab", "-", "--source", source); r.code != 2 || r.out != "" || !strings.Contains(r.err, "--source must be") || len(s.schedules()) != 0 {
			t.Errorf("%q: %+v", source, r)
		}
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("d,", 100), strings.Repeat("é=", 60))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tab ")
	if err := os.WriteFile(path, []byte(s.in), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ok("import", "crontab", path)
	if out := s.ok("import", "crontab", path); !strings.HasSuffix(out, "0 created, 1 unchanged, 0 refused\n") || strings.Contains(out, "it is of the crontab") {
		t.Errorf("a path that is no label: %s", out)
	}
}

// TestImportedLinesRunAsUnderCron: what is stored reaches the command: its
// variables, input, shell and folder.
func TestImportedLinesRunAsUnderCron(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.summary("a", `SHELL=/bin/sh
HOME = "`+home+`"
GREETING='good  day'
TZ=Europe/Berlin
* * * * * pwd -P; echo "$GREETING,$TZ,$SHELL,$HOME" \% ; cat%100\%%  two%%end
`)
	all := s.schedules()
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	for _, got := range all {
		raw, err := exectarget.New(exectarget.Config{}).Execute(t.Context(), core.Execution{
			Key: core.RunKey{Region: "r", ScheduleID: uuid.New()}, Payload: got.Job.Payload,
		})
		if err != nil {
			t.Fatal(err)
		}
		var result struct{ Output string }
		if err := json.Unmarshal(raw, &result); err != nil {
			t.Fatal(err)
		}
		want := home + "\ngood  day,Europe/Berlin,/bin/sh," + home + " %\n100%\n  two\n\nend\n"
		if diff := cmp.Diff(want, result.Output); diff != "" || got.TimeZone != "Europe/Berlin" {
			t.Errorf("in %s (-want +got):\n%s", got.TimeZone, diff)
		}
	}
}

// The tests below are named after reports of what other schedulers did.

// TestBugH22: a range of days may end on Sunday, and one that wraps is refused
// with the field's name rather than taken and never run.
func TestBugH22(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = "0 0 * * sat-sun a\n0 0 * * 6-7 b\n0 0 * * 5-1 c\n"
	r := s.run("import", "crontab", "-")
	if r.code != 1 || !strings.Contains(r.out, "line 3\trefused\tspec: day of week field") || !strings.HasSuffix(r.out, "2 created, 0 unchanged, 1 refused\n") {
		t.Errorf("%+v", r)
	}
}

// TestBugH28: a line that is only a zone makes no schedule and no panic.
func TestBugH28(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, line := range []string{"TZ=0", "TZ=UTC", "TZ=", "CRON_TZ=America/New_York", "TZ=UTC "} {
		s.in = line
		if r := s.run("import", "crontab", "-"); !strings.Contains(r.out, "0 created, 0 unchanged") || len(s.schedules()) != 0 {
			t.Errorf("%q: %+v", line, r)
		}
	}
}

// TestBugH29: blanks and tabs before and between the fields do not count, and no
// other blank does as one.
func TestBugH29(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = "0 0 12 9 * date\n0 0 12 9 *  date\n 0 0 12 9 * date\n0\t0  12 9 *\tdate\n0\u00a00 12 9 * date x\n0 ０ 12 9 * date x\n"
	r := s.run("import", "crontab", "-")
	if !strings.HasSuffix(r.out, "4 created, 0 unchanged, 2 refused\n") {
		t.Errorf("%+v", r)
	}
	for _, got := range s.schedules() {
		if got.Spec != "0 0 12 9 *" {
			t.Errorf("%+v", got)
		}
	}
}
