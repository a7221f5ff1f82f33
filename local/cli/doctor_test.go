package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/core/cron"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	matches(t, `ok	version	fencepost v1.2.3, go.*
ok	zone data	IANA `+cron.ZoneVersion()+`, embedded
ok	api	http://127.0.0.1:\d+ is version v1.2.3
ok	zone data of the API	IANA `+cron.ZoneVersion()+`
ok	waiting	nothing has waited for more than a minute
ok	database	(?:PostgreSQL|CockroachDB) .*, schema \d+, answers within .*
ok	clock	database is [+-]0.\d+ s off, give or take 0.\d+ s
ok	partitions	(?:made until \d{4}-\d\d-\d\d, [78].\d days ahead|none needed)
`, s.ok("doctor"))
	s.env["DATABASE_URL"] = s.url
	if out := s.ok("doctor"); !strings.Contains(out, "ok\tdatabase of the API\t") || !strings.Contains(out, "ok\tdatabase\t") {
		t.Errorf("with both: %s", out)
	}
	delete(s.env, "DATABASE_URL")
	s.db.Close()
	r := s.run("doctor", "--json")
	var got struct {
		OK     bool
		Checks []struct{ Name, Status, Detail string }
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	if last := got.Checks[len(got.Checks)-1]; got.OK || last.Name != "database" || last.Status != "failed" {
		t.Errorf("without the database: %s", r.out)
	}
	if r.code != 1 || r.err != "fencepost: at least one check failed\n" {
		t.Errorf("%d %s", r.code, r.err)
	}
}

func TestDoctorLooksAtADatabaseWithoutAnAPI(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["FENCEPOST_URL"] = "http://127.0.0.1:1"
	out := s.ok("doctor", "--database-url", s.url)
	if !strings.Contains(out, "warn\tapi\tnothing answers") || !strings.Contains(out, "ok\tpartitions\t") {
		t.Error(out)
	}
	if r := s.run("doctor"); r.code != 1 || !strings.Contains(r.out, "failed\tapi\tnothing answers") {
		t.Errorf("%+v", r)
	}
	if r := s.run("doctor", "--database-url", "postgres://x@127.0.0.1:1/x"); r.code != 1 || !strings.Contains(r.out, "failed\tdatabase\t") {
		t.Errorf("%+v", r)
	}
}

// TestDoctorSaysWhatWaits: a run that nobody starts is named with its queue.
func TestDoctorSaysWhatWaits(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "a", "--spec", "@yearly", "--queue", "mails")
	s.ok("schedules", "trigger", "a")
	conn, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "UPDATE runs SET wake_at = wake_at - INTERVAL '10 minutes', queued_at = queued_at - INTERVAL '10 minutes'"); err != nil {
		t.Fatal(err)
	}
	r := s.run("doctor")
	if r.code != 1 || !strings.Contains(r.out, "failed\twaiting\t1 run is queued on mails since ") {
		t.Errorf("%+v", r)
	}
}
