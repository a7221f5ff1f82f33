package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// meddle returns the shell for one whose requests pass somebody who does something
// before the first one of a method goes on.
func (s *shell) meddle(method string, do func()) *shell {
	s.Helper()
	to, err := url.Parse(s.env["FENCEPOST_URL"])
	if err != nil {
		s.Fatal(err)
	}
	var once sync.Once
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method {
			once.Do(do)
		}
		proxy.ServeHTTP(w, r)
	}))
	s.Cleanup(server.Close)
	other := *s
	other.env = map[string]string{"FENCEPOST_URL": server.URL, "FENCEPOST_API_KEY": s.env["FENCEPOST_API_KEY"], "TZ": "UTC"}
	return &other
}

// TestPruneRaces: what somebody changes between the list and the write stays as that
// person left it.
func TestPruneRaces(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	const job = "schedules:\n  - name: a\n    spec: '@daily'\n    job: {queue: mails}\n"
	s.ok("apply", "-f", write(t, dir, "old.yaml", "set: old\n"+job))
	none, other := write(t, dir, "none.yaml", "set: old\nschedules: []\n"), write(t, dir, "other.yaml", "set: other\n"+job)
	r := s.meddle("DELETE", func() { s.ok("apply", "-f", other) }).run("apply", "-f", none, "--prune")
	says(t, r, 1, "pruned a\n", "fencepost: prune \"a\": somebody changed it meanwhile; apply again to go on\n")
	if got := s.schedules()["a"].Labels["fencepost.io/set"]; got != "other" {
		t.Errorf("it is of the set %q", got)
	}

	importing := func(s *shell, text string, flags ...string) string {
		s.in = text
		return s.run(append([]string{"import", "crontab", "-", "--source", "t"}, flags...)...).out
	}
	importing(s, "0 9 * * * date\n0 10 * * * who\n")
	var who, date string
	for name := range s.schedules() {
		switch {
		case strings.HasPrefix(name, "who-"):
			who = name
		case strings.HasPrefix(name, "date-"):
			date = name
		}
	}
	label := func(name string) func() { return func() { s.ok("schedules", "edit", name, "--timeout", "7m") } }
	if out := importing(s.meddle("PATCH", label(who)), "0 9 * * * date\n", "--prune"); !strings.Contains(out, "somebody changed it meanwhile") {
		t.Error(out)
	}
	if got := s.schedules()[who]; got.State != "active" || got.Timeout != "7m" {
		t.Errorf("%+v", got)
	}
	if out := importing(s.meddle("PUT", label(date)), "X=1\n0 9 * * * date\n"); !strings.Contains(out, "0 created, 1 updated, 0 unchanged") {
		t.Error(out)
	}
	if got := s.schedules()[date]; got.Timeout != "7m" || !strings.Contains(string(got.Job.Payload), `"X"`) {
		t.Errorf("%+v", got)
	}
}

// TestApplyPrunes: a set owns what its files made, and loses what they no longer
// have; nothing else is touched.
func TestApplyPrunes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	const job = "    spec: '@daily'\n    job: {queue: mails}\n"
	both := write(t, dir, "both.yaml", "set: billing\nschedules:\n  - name: a\n"+job+"  - name: b\n"+job+"    labels: {team: x}\n")
	one := write(t, dir, "one.yaml", "set: billing\nschedules:\n  - name: a\n"+job)
	none := write(t, dir, "none.yaml", "schedules:\n  - name: a\n"+job)
	bad := write(t, dir, "bad.yaml", "set: billing\nschedules:\n  - name: a\n    spec: '60 * * * *'\n    job: {queue: mails}\n")
	s.ok("apply", "-f", both)
	s.ok("schedules", "create", "--name", "by hand", "--spec", "@daily", "--queue", "mails")
	if got := s.schedules()["b"].Labels; got["fencepost.io/set"] != "billing" || got["team"] != "x" {
		t.Errorf("labels %v", got)
	}
	says(t, s.run("apply", "-f", both, "--prune"), 0, "0 created, 0 replaced, 2 unchanged, 0 refused\n", "")
	says(t, s.run("apply", "-f", one, "--prune", "--dry-run"), 0, "pruned b\ndry run, nothing was changed: 0 created, 0 replaced, 1 unchanged, 1 pruned, 0 refused\n", "")
	if r := s.run("apply", "-f", bad, "--prune"); r.code != 1 || strings.Contains(r.out, "pruned") || len(s.schedules()) != 3 {
		t.Errorf("%+v", r)
	}
	if r := s.run("apply", "-f", none, "--prune"); r.code != 1 || !strings.Contains(r.err, "names no set") {
		t.Errorf("%+v", r)
	}
	says(t, s.run("apply", "-f", one), 0, "0 created, 0 replaced, 1 unchanged, 0 refused\n", "")
	says(t, s.run("apply", "-f", one, "--prune"), 0, "pruned b\n0 created, 0 replaced, 1 unchanged, 1 pruned, 0 refused\n", "")
	if all := s.schedules(); len(all) != 2 || all["by hand"].Name == "" {
		t.Errorf("left are %v", all)
	}
}

// TestApplyTakesOver: a schedule moves from one set to another, and the set that it
// left does not prune it.
func TestApplyTakesOver(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	const job = "    spec: '@daily'\n    job: {queue: mails}\n"
	old := write(t, dir, "old.yaml", "set: old\nschedules:\n  - name: a\n"+job+"  - name: b\n"+job)
	left := write(t, dir, "left.yaml", "set: old\nschedules:\n  - name: a\n"+job)
	other := write(t, dir, "other.yaml", "set: other\nschedules:\n  - name: b\n"+job)
	s.ok("apply", "-f", old)
	const moved = `replaced b
  - labels.fencepost.io/set: "old"
  + labels.fencepost.io/set: "other"
`
	says(t, s.run("apply", "-f", other, "--prune"), 0, moved+"0 created, 1 replaced, 0 unchanged, 0 refused\n", "")
	says(t, s.run("apply", "-f", left, "--prune"), 0, "0 created, 0 replaced, 1 unchanged, 0 refused\n", "")
	empty := write(t, dir, "empty.yaml", "set: other\nschedules: []\n")
	says(t, s.run("apply", "-f", empty, "-f", left, "--prune"), 0, "pruned b\n0 created, 0 replaced, 1 unchanged, 1 pruned, 0 refused\n", "")
}

// TestExportOfTooMuch: what apply would not take back is said to be so.
func TestExportOfTooMuch(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var b strings.Builder
	for i := range 45 {
		fmt.Fprintf(&b, `{"name":"n%d","spec":"@daily","job":{"queue":"mails","payload":"%s"}}`+"\n", i, strings.Repeat("x", 240<<10))
	}
	s.in = b.String()
	if r := s.run("import", "jsonl", "-"); r.out != "45 created, 0 replaced, 0 unchanged, 0 refused\n" { // with progress, if it takes long
		t.Error(r)
	}
	r := s.run("export")
	if r.code != 0 || strings.Count(r.out, "- name:") != 45 || r.err != "apply takes files of up to 10 MiB; cut this one, or use --format jsonl\n" {
		t.Errorf("%d %s", r.code, r.err)
	}
	if out := s.ok("export", "--format", "jsonl"); out != s.in {
		t.Errorf("%d bytes were exported of %d", len(out), len(s.in))
	}
}

// TestExportAsACrontab: what came from a crontab goes back into one, and importing
// that changes nothing.
func TestExportAsACrontab(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = "0 9 * * mon-fri date +\\%F%in\nX=1\nCRON_TZ=Europe/Berlin\n@daily cd /srv && ./x\n"
	s.ok("import", "crontab", "-", "--source", "t")
	s.ok("schedules", "create", "--name", "hook", "--spec", "H * * * *", "--url", "https://example.com")
	s.ok("schedules", "create", "--name", "careful", "--spec", "0 5 * * *", "--command", "x")
	once := []string{"--overlap", "allow", "--max-attempts", "1", "--command", "x"}
	s.ok(append([]string{"schedules", "create", "--name", "timed", "--spec", "0 5 * * *", "--timeout", "1h"}, once...)...)
	s.ok(append([]string{"schedules", "create", "--name", "spread", "--spec", "@daily", "--timeout", "0s"}, once...)...)
	s.ok("schedules", "create", "--name", "hashed", "--spec", "0 H * * *", "--command", "x")
	out := s.ok("export", "--format", "crontab")
	matches(t, `0 9 \* \* mon-fri date \+\\%F%in
CRON_TZ=Europe/Berlin
X=1
@daily cd /srv && \./x
# hook is left out: its job is no command
# careful is left out: a crontab cannot keep its overlap, timeout, retry.max_attempts
# timed is left out: a crontab cannot keep its timeout
# spread is left out: a crontab cannot keep its exact
# hashed is left out: no crontab has its spec: 0 H \* \* \*
`, out)
	s.in = out
	if r := s.ok("import", "crontab", "-", "--source", "t"); !strings.HasSuffix(r, "0 created, 2 unchanged, 0 refused\n") {
		t.Error(r)
	}
	if got := s.ok("export", "--label", "fencepost.io/crontab=t", "--format", "jsonl"); strings.Count(got, "\n") != 2 {
		t.Error(got)
	}
}
