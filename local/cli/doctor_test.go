package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/cron"
)

// claims makes a claimer that is alive and holds n shards.
func (s *shell) claims(n int) {
	s.Helper()
	_, _, err := s.db.RenewShards(s.Context(), "claimer", time.Hour)
	if err == nil {
		_, err = s.db.TakeShards(s.Context(), "claimer", time.Hour, n)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// execute changes what only time or a fault changes.
func (s *shell) execute(sql string, args ...any) {
	s.Helper()
	conn, err := pgx.Connect(s.Context(), s.url)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = conn.Close(s.Context()) }()
	if _, err := conn.Exec(s.Context(), sql, args...); err != nil {
		s.Fatal(err)
	}
}

const healthy = `ok	version	fencepost v1.2.3, go.*
ok	zone data	IANA \S+, embedded
ok	api	http://127.0.0.1:\d+ is ready, version v1.2.3
ok	zone data of the API	IANA \S+
ok	clock of the API	\d.\d+ s (?:behind|ahead of) the database's, give or take \d.\d+ s
`

const healthyDatabase = `ok	database	(?:PostgreSQL|CockroachDB) .*, answers within .*
ok	migrations	the schema is number \d+, the newest that this release knows
ok	partitions	(?:made until \d{4}-\d\d-\d\d, [78].\d days ahead|none needed)
ok	claimers	1 claimer is alive in local, all 64 shards are held
`

const healthyClock = `ok	clock of this machine	\d.\d+ s (?:behind|ahead of) the database's, give or take \d.\d+ s
`

func TestDoctor(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.claims(core.Shards)
	matches(t, healthy+healthyClock+healthyDatabase+`ok	waiting	nothing has waited for more than a minute
ok	alerts	none is open
`, s.ok("doctor"))
	s.env["DATABASE_URL"] = s.url
	out := s.ok("doctor")
	matches(t, healthy+healthyDatabase+healthyClock+`ok	waiting	nothing has waited for more than a minute in local
ok	alerts	none is open in local
`, out)
	if !strings.Contains(out, "IANA "+cron.ZoneVersion()+", embedded") {
		t.Error(out)
	}
}

// TestDoctorWithoutAnAnswer: whoever does not answer is named, and what is not
// known is not called good.
func TestDoctorWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.claims(core.Shards)
	key := s.env["FENCEPOST_API_KEY"]
	s.env["FENCEPOST_API_KEY"] = "fp_wrong"
	s.problem("api", "answers, but not to this key: the API key is not valid")
	s.env["FENCEPOST_API_KEY"] = key
	url := s.env["FENCEPOST_URL"]
	s.env["FENCEPOST_URL"] = "http://127.0.0.1:1"
	s.problem("api", "nothing answers at http://127.0.0.1:1; start it with fencepost up")
	if out := s.ok("doctor", "--database-url", s.url); !strings.Contains(out, "warning\tapi\tnothing answers") || !strings.Contains(out, "ok\tpartitions\t") {
		t.Error(out)
	}
	s.problem("database", "is the URL right, and the server up?", "--database-url", "postgres://x@127.0.0.1:1/x")
	s.env["FENCEPOST_URL"] = url
	s.db.Close()
	s.problem("api", "the database does not answer")
}

// problem runs doctor, which must report one, and nothing else that is bad.
func (s *shell) problem(name, says string, args ...string) {
	s.Helper()
	r := s.run(append([]string{"doctor", "--json"}, args...)...)
	var got struct {
		OK     bool
		Checks []struct{ Name, Status, Detail, Remedy string }
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		s.Fatalf("%v: %s", err, r.out)
	}
	found := 0
	for _, c := range got.Checks {
		if c.Status == "problem" {
			found++
		}
		if c.Status == "problem" && (c.Name != name || !strings.Contains(c.Detail+"; "+c.Remedy, says)) {
			s.Errorf("want a problem of %s that says %q: %+v", name, says, c)
		}
	}
	if found != 1 || got.OK || r.code != 1 || r.err != "fencepost: there is a problem\n" {
		s.Errorf("%d problems, exit code %d: %s%s", found, r.code, r.out, r.err)
	}
}

// TestDoctorSaysWhatWaits: a run that nobody takes is named with its queue, although
// it is published again and again, and so is a schedule that cannot be claimed.
func TestDoctorSaysWhatWaits(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "a", "--spec", "@yearly", "--queue", "mails")
	s.problem("claimers", "none has ever been at work: nothing runs; start one with fencepost up --roles claimer")
	s.claims(core.Shards)
	s.execute("UPDATE claimers SET expires_at = now()")
	s.problem("claimers", "none is alive in local: nothing runs there; start one with fencepost up --roles claimer --region local")
	s.claims(core.Shards)
	s.ok("schedules", "trigger", "a")
	s.execute("UPDATE runs SET queued_at = now() - INTERVAL '90 minutes', wake_at = now() + INTERVAL '9 minutes'")
	s.problem("waiting", "(for 1h30m); no executor serves this queue")
	s.problem("waiting", "1 run is queued on mails in local, the first since 20", "--database-url", s.url)
	s.execute("UPDATE runs SET state = 'running', wake_at = now() - INTERVAL '2 minutes'")
	s.problem("waiting", "1 run is running on mails, the first overdue since 20")
	s.execute("UPDATE runs SET state = 'succeeded', wake_at = NULL")
	s.execute("UPDATE timers SET fire_at = now() - INTERVAL '2 minutes'")
	s.problem("waiting", "1 schedule is due, the first since 20")
	s.park("a", "the database\nrefused it")
	s.problem("alerts", " cannot be claimed and is tried again each hour, since 20")
	s.problem("alerts", ": the database; refused it; edit it, or", "--database-url", s.url)
	s.execute("UPDATE timers SET fire_at = now() + INTERVAL '1 day'")
	s.ok("doctor")
}

// park lets a claim of a schedule have been refused.
func (s *shell) park(name, detail string) {
	s.Helper()
	id, err := uuid.Parse(s.schedules()[name].ID)
	if err != nil {
		s.Fatal(err)
	}
	read, _, err := s.db.ReadTimers(s.Context(), []uuid.UUID{id})
	if err != nil || len(read) != 1 {
		s.Fatal(err, read)
	}
	t := read[0].Timer
	if err := s.db.Park(s.Context(), t.Shard, core.Move{ScheduleID: id, FireAt: t.FireAt, Fence: t.Fence}, detail); err != nil {
		s.Fatal(err)
	}
}

// TestDoctorJudges: each kind of trouble has a line that says what helps.
func TestDoctorJudges(t *testing.T) {
	t.Parallel()
	now := time.Now()
	soon, past := now.Add(30*time.Hour), now.Add(-time.Hour)
	for name, c := range map[string]struct {
		change func(*api.Info)
		says   string
	}{
		"another release":   {func(i *api.Info) { i.Version = "v2" }, `warning	api	\S+ is ready, but version v2, and this program is v1.2.3; use the same release for both`},
		"another zone data": {func(i *api.Info) { i.ZoneData = "1999a" }, `warning	zone data of the API	IANA 1999a; previews of this program may differ from what runs: .*`},
		"clocks":            {func(i *api.Info) { i.Database.ClockOffset = 2 }, `warning	clock of the API	2.000 s behind the database's, give or take 0.001 s; let NTP set both; .*`},
		"own clock": {func(i *api.Info) { i.Database.Time = i.Database.Time.Add(-time.Hour) },
			`warning	clock of this machine	3[56]\d\d.\d{3} s ahead of the database's, .*`},
		"no database":      {func(i *api.Info) { i.Database = nil }, `problem	database	does not answer the API; look at it yourself with --database-url`},
		"old schema":       {func(i *api.Info) { i.Database.Schema = 7 }, `problem	migrations	the schema is number 7, this release needs 8; run fencepost migrate`},
		"new schema":       {func(i *api.Info) { i.Database.Schema = 9 }, `warning	migrations	the schema is number 9, this release knows 8; finish .*`},
		"few partitions":   {func(i *api.Info) { i.Database.PartitionsUntil = &soon }, `warning	partitions	made until \S+, 1.2 days ahead; .*fencepost migrate.*`},
		"no partitions":    {func(i *api.Info) { i.Database.PartitionsUntil = &past }, `problem	partitions	none since \S+: .*`},
		"shards":           {func(i *api.Info) { i.Database.Regions[0].Shards = 63 }, `warning	claimers	2 claimers are alive in x, 63 of 64 shards are held; .*`},
		"nobody looked":    {func(i *api.Info) { i.Overdue = nil }, `warning	waiting	could not be looked for`},
		"no alerts looked": {func(i *api.Info) { i.Alerts = nil }, `warning	alerts	could not be looked for`},
		"exec": {func(i *api.Info) { i.Overdue = []api.Overdue{{What: "queued", Queue: "exec", Count: 12, Since: past}} },
			`problem	waiting	12 runs are queued on exec, the first since \S+ \(for 1h\S*\); .*--allow-exec`},
		"too much to tell": {func(i *api.Info) { i.Overdue = make([]api.Overdue, 100) }, `problem	waiting	80 more kinds of it`},
		"another alert": {func(i *api.Info) { i.Alerts = []api.Alert{{Kind: "silent", Name: "a", ScheduleID: "x", Since: now}} },
			`problem	alerts	schedule a \(x\) has the alert silent, since 20\S+`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info := api.Info{Version: "v1.2.3", ZoneData: cron.ZoneVersion(), Overdue: []api.Overdue{}, Alerts: []api.Alert{}, Database: &api.DatabaseInfo{
				Server: "PostgreSQL 15.18", Schema: 8, Known: 8, Time: time.Now(), RoundTrip: 0.002, Regions: []api.RegionInfo{{Name: "x", Claimers: 2, Shards: 64}},
			}}
			c.change(&info)
			r := doctorOf(t, info)
			bad := 0
			for line := range strings.Lines(r.out) {
				if !strings.HasPrefix(line, "ok\t") {
					bad++
				}
			}
			if !regexp.MustCompile("(?m)^"+c.says+"$").MatchString(r.out) || bad == 0 || name != "too much to tell" && bad > 1 {
				t.Errorf("want a line %s: %s", c.says, r.out)
			}
			if want := strings.Contains(r.out, "problem\t"); want != (r.code == 1) {
				t.Errorf("exit code %d: %s", r.code, r.out)
			}
		})
	}
}

// doctorOf runs doctor on an API that says this.
func doctorOf(t *testing.T, info api.Info) result {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = info
		if r.URL.Path == "/readyz" {
			answer = api.Health{Status: "ok"}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	s := &shell{TB: t, env: map[string]string{"FENCEPOST_URL": server.URL, "FENCEPOST_API_KEY": "fp_x"}}
	return s.run("doctor")
}
