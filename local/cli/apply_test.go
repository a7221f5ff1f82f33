package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write writes a file and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// says compares the result of a command.
func says(t *testing.T, r result, code int, out, err string) {
	t.Helper()
	if diff := cmp.Diff(result{code, out, err}, r, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
}

const nightly = `defaults:
  time_zone: Europe/Berlin
schedules:
  - name: report
    spec: "30 2 * * 1-5"
    timeout: 1h
    job: {queue: mails, payload: {to: [a], subject: "Report"}}
  - name: team/disk usage
    spec: '*/5 * * * *'
    job:
      http: {url: "https://example.com"}
`

func TestApply(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	path := write(t, t.TempDir(), "nightly.yaml", nightly)
	const planned = `created report
  + name: "report"
  + spec: "30 2 * * 1-5"
  + timeout: "1h"
  + job.payload.subject: "Report"
  + job.payload.to: ["a"]
  + job.queue: "mails"
  + time_zone: "Europe/Berlin"
created team/disk usage
  + name: "team/disk usage"
  + spec: "*/5 * * * *"
  + job.http.url: "https://example.com"
  + time_zone: "Europe/Berlin"
`
	says(t, s.run("apply", "-f", path, "--dry-run"), 0, planned+"dry run, nothing was changed: 2 created, 0 replaced, 0 unchanged, 0 refused\n", "")
	if out := s.ok("schedules", "list"); out != "" {
		t.Errorf("the dry run made %s", out)
	}
	says(t, s.run("apply", "-f", path), 0, planned+"2 created, 0 replaced, 0 unchanged, 0 refused\n", "")
	says(t, s.run("apply", "-f", path), 0, "0 created, 0 replaced, 2 unchanged, 0 refused\n", "")

	s.ok("schedules", "pause", "report")
	s.in = strings.NewReplacer("30 2", "30 3", `    timeout: 1h`+"\n", "", "[a]", "[a, b]", "Report", "Report 2").Replace(nightly)
	const changes = `replaced report
  - spec: "30 2 * * 1-5"
  + spec: "30 3 * * 1-5"
  - job.payload.subject: "Report"
  + job.payload.subject: "Report 2"
  - job.payload.to: ["a"]
  + job.payload.to: ["a","b"]
  - timeout: "1h"
  + timeout: "15m"
`
	says(t, s.run("apply", "-f", "-", "--dry-run"), 0, changes+"dry run, nothing was changed: 0 created, 1 replaced, 1 unchanged, 0 refused\n", "")
	says(t, s.run("apply", "-f", "-"), 0, changes+"0 created, 1 replaced, 1 unchanged, 0 refused\n", "")
	if out := s.ok("schedules", "list"); !strings.Contains(out, "report\tpaused") {
		t.Errorf("what a person paused goes on: %s", out)
	}
}

// TestApplyIsAllOrNothing: mistakes are told with their places, and whoever makes
// one gets nothing applied.
func TestApplyIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	good := write(t, dir, "a.yaml", nightly)
	for text, want := range map[string]string{
		"schedules:\n- name: x\n  spec: 5\n  job: {queue: mails}\n":                                      "3:3: x: spec: must be a string",
		"schedules:\n- name: x\n  spec: '@daily'\n  timeout: 90\n  job: {queue: mails}\n":                `4:3: x: timeout: must be a string with a unit, such as "90s"`,
		"schedules:\n- name: x\n  spec: '@daily'\n  colour: red\n  job: {queue: mails}\n":                "4:3: x: colour: is not a field here",
		"schedules:\n- name: x\n  spec: '@daily'\n  job:\n    queue: none\n":                             "5:5: x: job.queue: is not one that this installation serves; known are exec, http, mails",
		"schedules:\n- spec: '@daily'\n  name: x\n  job: {http: {url: a}, queue: b}\n":                   "4:3: x: job: must have either http, or queue and payload, but not both",
		"schedules:\n- name: x\n  spec: in 3d\n  job: {queue: mails}\n":                                  `3:3: x: spec: counts from now, so that it would ask for another time whenever it is put; write the time, such as "at 2027-01-05T09:00"`,
		"schedules:\n- name: x\n  spec: '@daily'\n":                                                      "2:3: x: job: is required",
		"schedules:\n- name: x\n  spec: '@daily'\n  exact: maybe\n  retries: 1\n  job: {queue: mails}\n": "4:3: x: exact: must be true or false\nFILE:5:3: x: retries: is not a field here",
		"defaults:\n  overlap: maybe\nschedules:\n- name: x\n  spec: '@daily'\n  job: {queue: mails}\n":  "2:3: x: overlap: must be skip, allow, queue_one or cancel_previous",
	} {
		path := write(t, dir, "b.yaml", text)
		want = strings.ReplaceAll("FILE:"+want+"\n", "FILE", path)
		says(t, s.run("apply", "-f", good, "-f", path), 1, want, "fencepost: nothing was applied: 1 schedule was refused\n")
	}
	for text, want := range map[string]string{
		"schedules:\n- name: report\n":     "FILE:2:3: report: is in GOOD too",
		"schedules:\n- nam: x\n":           "FILE:2:3: schedules[0]: name is required",
		"schedules:\n\t- name: x\n":        "FILE:2:1: the line is indented with a tab; YAML takes blanks only",
		"schedules:\n- name: x\n  name: y": "FILE:3:3: schedules[0].name: is there twice",
		"\x00\x01binary":                   "FILE:1:1: the file is not text in UTF-8",
	} {
		path := write(t, dir, "b.yaml", text)
		want = strings.NewReplacer("FILE", path, "GOOD", good).Replace(want + "\n")
		says(t, s.run("apply", "-f", good, "-f", path), 1, want, "fencepost: nothing was applied: 1 mistake\n")
	}
	if out := s.ok("schedules", "list"); out != "" {
		t.Errorf("something was applied: %s", out)
	}
	s.in = "schedules: [5, 6]\n"
	says(t, s.run("apply", "-f", "-"), 1, "stdin:1:13: schedules[0]: must be a mapping\nstdin:1:16: schedules[1]: must be a mapping\n", "fencepost: nothing was applied: 2 mistakes\n")
}

func TestApplyFolders(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	write(t, dir, "b.yml", "schedules: [{name: b, spec: '@daily', job: {queue: mails}}]\n")
	write(t, dir, "a.json", "{\n\t\"schedules\": [{\"name\": \"a\", \"spec\": \"@daily\", \"job\": {\"queue\": \"mails\", \"payload\": \"\\ud83e\\udd80\\/\"}}]\n}\n")
	write(t, dir, "README.md", "# none\n")
	if err := os.Mkdir(filepath.Join(dir, "sub.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out := s.ok("apply", "-f", dir); !strings.HasPrefix(out, "created a\n") || !strings.HasSuffix(out, "2 created, 0 replaced, 0 unchanged, 0 refused\n") {
		t.Error(out)
	}
	empty := t.TempDir()
	says(t, s.run("apply", "-f", empty), 1, "", "fencepost: "+empty+" has no .yaml, .yml or .json files\n")
	says(t, s.run("apply", "-f", "/nowhere"), 1, "", "fencepost: open /nowhere: no such file or directory\n")
	says(t, s.run("apply"), 2, "", "fencepost: required flag(s) \"file\" not set (see fencepost apply --help)\n")
}

// TestApplyMany: a file of several batches.
func TestApplyMany(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var b strings.Builder
	b.WriteString("defaults: {job: {queue: mails}, spec: every 1h}\nschedules:\n")
	for i := range 2500 {
		fmt.Fprintf(&b, "- name: n%d\n", i)
	}
	s.in = b.String()
	for _, want := range []string{"2500 created, 0 replaced, 0 unchanged, 0 refused\n", "0 created, 0 replaced, 2500 unchanged, 0 refused\n"} {
		if out := s.ok("apply", "-f", "-"); !strings.HasSuffix(out, want) {
			t.Errorf("%.1000s", out)
		}
	}
	s.in += "- {name: last, spec: wrong}\n"
	r := s.run("apply", "-f", "-")
	if r.code != 1 || !strings.HasPrefix(r.out, "stdin:2503:16: last: spec: ") || strings.Count(r.out, "\n") != 1 {
		t.Errorf("%.1000s", r.out)
	}
}

func TestApplyWithoutAnAPI(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = nightly
	s.env["FENCEPOST_API_KEY"] = "fp_wrong"
	if r := s.run("apply", "-f", "-"); r.code != 1 || r.out != "" || !strings.HasPrefix(r.err, "fencepost: the API key is not valid") {
		t.Errorf("%+v", r)
	}
}
