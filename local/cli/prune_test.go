package cli_test

import (
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

// TestExportAsACrontab: what came from a crontab goes back into one, and importing
// that changes nothing.
func TestExportAsACrontab(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = "0 9 * * mon-fri date +\\%F%in\nX=1\nCRON_TZ=Europe/Berlin\n@daily cd /srv && ./x\n"
	s.ok("import", "crontab", "-", "--source", "t")
	s.ok("schedules", "create", "--name", "hook", "--spec", "H * * * *", "--url", "https://example.com")
	s.ok("schedules", "create", "--name", "careful", "--spec", "0 5 * * *", "--command", "x")
	s.ok("schedules", "create", "--name", "hashed", "--spec", "0 H * * *", "--command", "x")
	out := s.ok("export", "--format", "crontab")
	matches(t, `0 9 \* \* mon-fri date \+\\%F%in
CRON_TZ=Europe/Berlin
X=1
@daily cd /srv && \./x
# hook is left out: its job is no command
# careful is left out: cron would run it beside itself, without retries and exactly on time
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
