package cli_test

import (
	"fmt"
	"strings"
	"testing"
)

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
# careful is left out: a crontab cannot keep its overlap, timeout, max_attempts
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
