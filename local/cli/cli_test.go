package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/database/dbtest"
	"github.com/fencepost/fencepost/local/cli"
)

const region = "local"

func TestMain(m *testing.M) {
	os.Exit(dbtest.Main(m, func(ctx context.Context, url string) error {
		if _, err := database.Migrate(ctx, url, region, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		db, err := database.Open(ctx, database.Config{URL: url, Region: region})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.EnsurePartitions(ctx)
	}))
}

// testTarget takes every payload; the tests execute none.
type testTarget struct{ core.Target }

func (testTarget) Check(json.RawMessage) error { return nil }

// shell runs commands against an API over a database of its own.
type shell struct {
	testing.TB
	db       *database.DB
	url      string // of the database
	env      map[string]string
	in       string
	terminal bool
	ctx      context.Context // nil: the test's
	clock    core.Clock      // nil: the system's
}

func newShell(t *testing.T) *shell {
	t.Helper()
	url := dbtest.New(t)
	db, err := database.Open(t.Context(), database.Config{URL: url, Region: region, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	target := testTarget{}
	handler, err := api.New(api.Config{
		Service: schedules.New(db, region, map[string]core.Target{"exec": target, "http": target, "mails": target}),
		Keys:    db, Ready: db.Ping, Inspect: db.Inspect, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), Version: "v1.2.3",
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	key, hash := api.NewKey()
	if err := db.AddKey(t.Context(), core.APIKey{Hash: hash, TenantID: uuid.New(), Name: "test", Scopes: []string{"admin"}}); err != nil {
		t.Fatal(err)
	}
	return &shell{TB: t, db: db, url: url, env: map[string]string{"FENCEPOST_URL": server.URL, "FENCEPOST_API_KEY": key, "TZ": "UTC"}}
}

// result is what a command left behind.
type result struct {
	code     int
	out, err string
}

func (s *shell) run(args ...string) result {
	s.Helper()
	var out, errs bytes.Buffer
	ctx := s.ctx
	if ctx == nil {
		ctx = s.Context()
	}
	var clk core.Clock = clock.System{}
	if s.clock != nil {
		clk = s.clock
	}
	code := cli.Run(ctx, cli.System{
		Args: args, In: strings.NewReader(s.in), Out: &out, Err: &errs, Terminal: s.terminal, Version: "v1.2.3",
		Getenv: func(name string) string { return s.env[name] }, Clock: clk,
	})
	return result{code, out.String(), errs.String()}
}

// ok runs a command that must succeed without a word on standard error.
func (s *shell) ok(args ...string) string {
	s.Helper()
	r := s.run(args...)
	if r.code != 0 || r.err != "" {
		s.Fatalf("%q: exit code %d: %s%s", args, r.code, r.out, r.err)
	}
	return r.out
}

// matches compares line by line; each line of want is an expression.
func matches(t testing.TB, want, got string) {
	t.Helper()
	if !regexp.MustCompile("^" + want + "$").MatchString(got) {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
}

const (
	uuidText = `[0-9a-f-]{36}`
	timeText = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
)

func TestLifeOfASchedule(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	out := s.ok("schedules", "create", "--name", "report", "--spec", "0 3 * * *", "--time-zone", "Europe/Berlin", "--command", "make report",
		"--overlap", "allow", "--timeout", "90s", "--max-attempts", "2", "--window", "5m")
	matches(t, `created report: `+uuidText+`; next run at `+timeText+"; note: overlap allow: .*\n", out)
	matches(t, uuidText+"\treport\tactive\t0 3 \\* \\* \\*\tEurope/Berlin\tnone\t"+timeText+"\n", s.ok("schedules", "list"))
	var got api.Schedule
	if err := json.Unmarshal([]byte(s.ok("schedules", "get", "report", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Timeout != "1m30s" || got.Retry.MaxAttempts != 2 || got.Window != "5m" || got.Overlap != "allow" || got.Job.Queue != "exec" {
		t.Errorf("schedule is %+v", got)
	}
	matches(t, "paused report\n", s.ok("schedules", "pause", "report"))
	matches(t, uuidText+"\treport\tpaused\t.*\t\n", s.ok("schedules", "list"))
	matches(t, "resumed report; next run at "+timeText+"\n", s.ok("schedules", "resume", got.ID))
	matches(t, "triggered report: run_[0-9a-z]+\n", s.ok("schedules", "trigger", "report"))
	matches(t, "deleted report\n", s.ok("schedules", "delete", "report"))
	if r := s.run("schedules", "get", "report"); r.code != 1 || r.err != "fencepost: no schedule has the id or name \"report\"\n" || r.out != "" {
		t.Errorf("%+v", r)
	}
	if out := s.ok("schedules", "list"); out != "" {
		t.Errorf("list prints %q", out)
	}
}

func TestTablesOnATerminal(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.terminal = true
	s.ok("schedules", "create", "--name", "a", "--spec", "every 15m", "--queue", "mails", "--payload", `{"to": [1]}`)
	s.ok("schedules", "create", "--name", "b", "--spec", "@daily", "--queue", "mails")
	matches(t, `ID +NAME  STATE   SPEC +TIME ZONE  LAST RUN  NEXT RUN
`+uuidText+`  a     active  every 15m +UTC +none +`+timeText+`
`+uuidText+`  b     active  @daily +UTC +none +`+timeText+`
`, s.ok("schedules", "list"))
	matches(t, `(?s)id +`+uuidText+`\nname +a\nstate +active\n.*payload +\{"to":\[1\]\}\n.*retries +5 attempts, 10s times 2 up to 1h, equal jitter\n.*`, s.ok("schedules", "get", "a"))
	r := s.run("schedules", "list", "--limit", "1")
	matches(t, `there are more: go on with --cursor [A-Za-z0-9_-]{34}`+"\n", r.err)
	cursor := strings.Fields(r.err)[7]
	if out := s.ok("schedules", "list", "--cursor", cursor); strings.Contains(out, " a ") || !strings.Contains(out, " b ") {
		t.Errorf("second page is %s", out)
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "a", "--spec", "@daily", "--command", "false")
	var run api.Run
	if err := json.Unmarshal([]byte(s.ok("schedules", "trigger", "a", "--json")), &run); err != nil {
		t.Fatal(err)
	}
	key, err := core.ParseRunID(run.ID)
	if err != nil {
		t.Fatal(err)
	}
	started, err := s.db.Start(t.Context(), []core.Delivery{{Message: core.Message{Key: key, Fence: run.Fence}, Token: uuid.New()}}, 60e9)
	if err != nil || len(started) != 1 {
		t.Fatal(started, err)
	}
	_, err = s.db.Finish(t.Context(), []core.Outcome{{
		Held: core.Held{Key: key, Fence: started[0].Fence}, State: core.RunDead, Reason: core.ReasonPermanent, Error: "exit 1\n\x1b[31mred",
	}})
	if err != nil {
		t.Fatal(err)
	}
	matches(t, timeText+"\tdead\tmanual\t1/5\t"+timeText+"\t"+timeText+"\tpermanent: exit 1 \uFFFD\\[31mred\t"+run.ID+"\n", s.ok("runs", "list", "a"))
	matches(t, `(?s)id +`+run.ID+`\n.*reason +permanent\n.*attempts +1 of 5\n.*attempt 1 +`+timeText+` exit 1 \.\.\.\nerror:\n  exit 1\n  \x{FFFD}\[31mred\n`, s.ok("runs", "get", run.ID))
	var detail api.RunDetail
	if err := json.Unmarshal([]byte(s.ok("runs", "get", run.ID, "--json")), &detail); err != nil || len(detail.Attempts) != 1 {
		t.Errorf("%+v %v", detail, err)
	}
	var list api.List[api.Run]
	if err := json.Unmarshal([]byte(s.ok("runs", "list", "a", "--json", "--to", "2020-01-01T00:00:00Z")), &list); err != nil || len(list.Items) != 0 {
		t.Errorf("%+v %v", list, err)
	}
	if r := s.run("runs", "get", "run_x"); r.code != 1 || r.err != "fencepost: no such schedule or run\n" {
		t.Errorf("%+v", r)
	}
}

func TestCreateForms(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for i, c := range []struct {
		args []string
		want string // queue and payload
	}{
		{[]string{"--command", `echo "é" > x`}, `exec {"command":"echo \"é\" > x"}`},
		{[]string{"--url", "https://x.example"}, `http {"url":"https://x.example"}`},
		{[]string{"--url", "https://x.example", "--method", "PUT", "--header", "A: b:c", "--header", "B:", "--body", `{"a": 1}`},
			`http {"method":"PUT","url":"https://x.example","headers":{"A":"b:c","B":""},"body":{"a":1}}`},
		{[]string{"--url", "https://x.example", "--body", "5"}, `http {"url":"https://x.example","body":"5"}`},
		{[]string{"--url", "https://x.example", "--body", ""}, `http {"url":"https://x.example","body":""}`},
		{[]string{"--queue", "mails"}, `mails null`},
		{[]string{"--queue", "mails", "--payload", `[1]`}, `mails [1]`},
	} {
		args := append([]string{"schedules", "create", "--json", "--name", string(rune('a' + i)), "--spec", "@daily"}, c.args...)
		var got api.Schedule
		if err := json.Unmarshal([]byte(s.ok(args...)), &got); err != nil {
			t.Fatal(err)
		}
		queue, payload, _ := strings.Cut(c.want, " ")
		if diff := cmp.Diff(decode(t, payload), decode(t, string(got.Job.Payload))); diff != "" || queue != got.Job.Queue {
			t.Errorf("%q: %s %s", c.args, got.Job.Queue, diff)
		}
	}
}

func decode(t testing.TB, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return v
}

func TestWrongUseExitsWith2(t *testing.T) {
	t.Parallel()
	s := &shell{TB: t} // nothing is asked
	create := []string{"schedules", "create", "--name", "n", "--spec", "@daily"}
	for want, args := range map[string][]string{
		`unknown command "x" for "fencepost" (see fencepost --help)`:                                                              {"x"},
		`unknown command "x" for "fencepost schedules" (see fencepost schedules --help)`:                                          {"schedules", "x"},
		`a command is missing after "fencepost runs" (see fencepost runs --help)`:                                                 {"runs"},
		`unknown command "schedule" for "fencepost"; did you mean schedules? (see fencepost --help)`:                              {"schedule"},
		`unknown command "lists" for "fencepost schedules"; did you mean list? (see fencepost schedules --help)`:                  {"schedules", "lists"},
		`unknown flag: --x (see fencepost schedules list --help)`:                                                                 {"schedules", "list", "--x"},
		`accepts 1 arg(s), received 0 (see fencepost schedules get --help)`:                                                       {"schedules", "get"},
		`required flag(s) "name", "spec" not set (see fencepost schedules create --help)`:                                         {"schedules", "create", "--command", "x"},
		`--payload is not valid JSON (see fencepost schedules create --help)`:                                                     append(create, "--queue", "q", "--payload", "{"),
		`--payload goes with --queue only (see fencepost schedules create --help)`:                                                append(create, "--command", "q", "--payload", "1"),
		`--method, --header and --body go with --url only (see fencepost schedules create --help)`:                                append(create, "--command", "q", "--body", ""),
		`--header must look like "Name: value" (see fencepost schedules create --help)`:                                           append(create, "--url", "q", "--header", "x"),
		`--max-attempts must be at least 1 (see fencepost schedules create --help)`:                                               append(create, "--command", "q", "--max-attempts", "0"),
		`--command, --url or --queue is empty (see fencepost schedules create --help)`:                                            append(create, "--command", ""),
		`accepts 1 arg(s), received 2 (see fencepost import crontab --help)`:                                                      {"import", "crontab", "a", "b"},
		`invalid argument "x" for "--limit" flag: strconv.ParseInt: parsing "x": invalid syntax (see fencepost runs list --help)`: {"runs", "list", "a", "--limit", "x"},
	} {
		if r := s.run(args...); r.code != 2 || r.err != "fencepost: "+want+"\n" || r.out != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for _, args := range [][]string{append(create, "--command", "a", "--url", "b"), create} {
		if r := s.run(args...); r.code != 2 || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestFailuresExitWith1(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "n", "--spec", "@daily", "--command", "true")
	for want, args := range map[string][]string{
		"name: another schedule has this name; choose another or edit that one": {"schedules", "create", "--name", "n", "--spec", "@daily", "--command", "x"},
		"overlap: must be skip, allow, queue_one or cancel_previous":            {"schedules", "create", "--name", "m", "--spec", "@daily", "--command", "x", "--overlap", "x"},
		"limit: must be a whole number from 1 to 1000":                          {"schedules", "list", "--limit", "0"},
		"open /nowhere: no such file or directory":                              {"import", "crontab", "/nowhere"},
	} {
		if r := s.run(args...); r.code != 1 || r.err != "fencepost: "+want+"\n" || r.out != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	lost := &shell{TB: t, env: map[string]string{"XDG_CONFIG_HOME": t.TempDir()}}
	if r := lost.run("schedules", "list"); r.code != 1 || !strings.Contains(r.err, "start one with fencepost up, or set FENCEPOST_URL") {
		t.Errorf("%+v", r)
	}
}

func TestProfileIsRead(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "fencepost", "profile.json")
	text, err := json.Marshal(map[string]string{"url": s.env["FENCEPOST_URL"], "key": s.env["FENCEPOST_API_KEY"]})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = map[string]string{"XDG_CONFIG_HOME": dir}
	s.ok("schedules", "list")
}
