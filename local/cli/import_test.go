package cli_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

var update = flag.Bool("update", false, "write the golden reports anew")

const table = `# a comment
MAILTO=me
*/5 * * * * date
*/5 * * * * date

60 * * * * false
GREETING = "good  day"
@daily /bin/backup --full%yes%a\%b
`

const semantics = "imported lines run as cron runs them: exactly on time, once (max_attempts 1), beside each other (overlap allow), without a time limit\n"

func (s *shell) schedules() map[string]api.Schedule {
	s.Helper()
	var list api.List[api.Schedule]
	if err := json.Unmarshal([]byte(s.ok("schedules", "list", "--json")), &list); err != nil {
		s.Fatal(err)
	}
	all := map[string]api.Schedule{}
	for _, got := range list.Items {
		all[got.Name] = got
	}
	return all
}

func TestImportCrontab(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = table
	if r := s.run("import", "crontab", "-", "--dry-run"); r.code != 1 || !strings.HasSuffix(r.out, "dry run, nothing was done: 3 created, 0 unchanged, 1 refused\n") || len(s.schedules()) != 0 {
		t.Errorf("%+v", r)
	}
	r := s.run("import", "crontab", "-")
	const entry = `-[0-9a-f]{12}`
	matches(t, `line 1	ignored	comment
line 2	ignored	MAILTO: nothing is mailed; .*
line 3	created	date`+entry+`; next run at `+timeText+`
line 4	created	date`+entry+`-2; next run at `+timeText+`
line 5	ignored	blank
line 6	refused	spec: minute field, column 1, "60": .*
line 7	set	GREETING for the entries below
line 8	created	bin-backup-full`+entry+`; next run at `+timeText+`
`+regexp.QuoteMeta(semantics)+`3 created, 0 unchanged, 1 refused
`, r.out)
	if r.code != 1 || r.err != "fencepost: 1 of 8 lines were refused\n" {
		t.Errorf("%d %s", r.code, r.err)
	}
	all := s.schedules()
	for name, got := range all {
		if got.Retry.MaxAttempts != 1 || got.Overlap != "allow" || got.Timeout != "0s" || got.Misfire != "run_once" || got.Job.Queue != "exec" || got.Window != "0s" || !got.Exact || got.Spread != "0s" {
			t.Errorf("%+v", got)
		}
		if strings.HasPrefix(name, "bin-backup") {
			want := `{"command":"/bin/backup --full","stdin":"yes\na%b\n","env":{"GREETING":"good  day"}}`
			if diff := cmp.Diff(decode(t, want), decode(t, string(got.Job.Payload))); diff != "" {
				t.Error(diff)
			}
		}
	}
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	again := s.run("import", "crontab", "-")
	if again.code != 1 || !strings.HasSuffix(again.out, "0 created, 3 unchanged, 1 refused\n") {
		t.Errorf("%+v", again)
	}
	if diff := cmp.Diff(all, s.schedules()); diff != "" {
		t.Errorf("importing again changed something: %s", diff)
	}
}

// TestImportFollowsTheFile: a moved line changes nothing, a changed variable
// updates, a line that left the file is paused with --prune only, and goes on when
// it is back, unless a person decided otherwise.
func TestImportFollowsTheFile(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	last := func(text string, args ...string) string {
		t.Helper()
		s.in = text
		lines := strings.Split(strings.TrimSpace(s.run(append([]string{"import", "crontab", "-"}, args...)...).out), "\n")
		return lines[len(lines)-1]
	}
	state := func(prefix string) string {
		t.Helper()
		for name, got := range s.schedules() {
			if strings.HasPrefix(name, prefix) {
				return got.State
			}
		}
		return "missing"
	}
	const a, b, c = "0 1 * * * aa\n", "0 2 * * * bb\n", "0 3 * * * cc\n"
	for _, step := range []struct {
		text string
		args []string
		want string
	}{
		{a + b + c, nil, "3 created, 0 unchanged, 0 refused"},
		{c + "# moved\n" + b + a, nil, "0 created, 3 unchanged, 0 refused"},
		{a + "X=1\n" + b + c, nil, "0 created, 2 updated, 1 unchanged, 0 refused"},
		{a + "X=1\n" + b + c, nil, "0 created, 3 unchanged, 0 refused"},
		{a + b, nil, "0 created, 1 updated, 1 unchanged, 1 left, 0 refused"},
		{a + b, []string{"--prune", "--dry-run"}, "dry run, nothing was done: 0 created, 2 unchanged, 1 paused, 0 refused"},
		{a + b + "nonsense\n", []string{"--prune"}, "0 created, 2 unchanged, 1 left, 1 refused"},
		{a + b + "@reboot x\n", []string{"--prune", "--source", "another"}, "0 created, 2 unchanged, 1 refused"},
		{a + b, []string{"--prune"}, "0 created, 2 unchanged, 1 paused, 0 refused"},
		{a + b, []string{"--prune"}, "0 created, 2 unchanged, 0 refused"},
	} {
		if got := last(step.text, step.args...); got != step.want {
			t.Fatalf("%q %q: %s, want %s", step.text, step.args, got, step.want)
		}
	}
	if got := state("cc"); got != "paused" {
		t.Errorf("what left the file is %s", got)
	}
	if got := last(a + b + c); got != "0 created, 1 resumed, 2 unchanged, 0 refused" || state("cc") != "active" {
		t.Errorf("back in the file: %s, %s", got, state("cc"))
	}
	for name := range s.schedules() {
		if strings.HasPrefix(name, "bb") {
			s.ok("schedules", "pause", name)
		}
	}
	if got := last(a+b+c, "--prune"); got != "0 created, 3 unchanged, 0 refused" || state("bb") != "paused" {
		t.Errorf("paused by a person: %s, %s", got, state("bb"))
	}
}

// TestImportReports compares the whole reports of three files.
func TestImportReports(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"user": nil, "system": {"--system"}, "broken": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			file := filepath.Join("..", "crontab", "testdata", name+".crontab")
			args := append([]string{"import", "crontab", file, "--source", "test"}, args...)
			r := s.run(args...)
			got := regexp.MustCompile(timeText).ReplaceAllString(r.out, "TIME")
			golden := filepath.Join("testdata", name+".report")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if failed := strings.Contains(got, "\trefused\t"); (r.code == 1) != failed {
				t.Errorf("exit code %d: %s", r.code, r.err)
			}
			again := s.run(args...)
			if strings.Contains(again.out, "\tcreated\t") || strings.Contains(again.out, "\tupdated\t") {
				t.Errorf("again: %s", again.out)
			}
		})
	}
}

func TestImportCrontabFromAFileInAZone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	path := filepath.Join(t.TempDir(), "crontab")
	if err := os.WriteFile(path, []byte("0 9 * * * date\n0 9 * * * root date\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.run("import", "crontab", path, "--time-zone", "Europe/Berlin")
	if r.code != 1 || !strings.HasSuffix(r.out, "1 created, 0 unchanged, 1 refused\n") || !strings.Contains(r.out, "import the file with --system") {
		t.Errorf("%+v", r)
	}
	matches(t, ".*\tEurope/Berlin\t.*\n", s.ok("schedules", "list"))
	// The zone is a part of what it is: in another one it is another schedule.
	if r := s.run("import", "crontab", path); !strings.HasSuffix(r.out, "1 created, 0 unchanged, 1 left, 1 refused\n") {
		t.Errorf("%+v", r)
	}
	if r := s.run("import", "crontab", path, "--time-zone", "Nowhere"); r.code != 2 || r.out != "" || !strings.Contains(r.err, "--time-zone: zone \"Nowhere\"") {
		t.Errorf("%+v", r)
	}
}

// TestImportWritesNothingOfABadFile: a file that is none is refused whole.
func TestImportWritesNothingOfABadFile(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for name, text := range map[string]string{
		"binary": "0 9 * * * date\n\x7fELF\x00\x01", "100,000 lines": strings.Repeat("0 9 * * * date\n", 100_000), "a long line": "0 9 * * * date\n0 9 * * * " + strings.Repeat("x", 20_000),
	} {
		s.in = text
		if r := s.run("import", "crontab", "-"); r.code != 1 || r.out != "" || !strings.HasPrefix(r.err, "fencepost: read the crontab: ") || len(s.schedules()) != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestImportEndsWhereTheAPIFails(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = table
	s.env["FENCEPOST_API_KEY"] = "fp_wrong"
	r := s.run("import", "crontab", "-")
	if r.code != 1 || r.out != "" || !strings.HasPrefix(r.err, "fencepost: the API key is not valid; set FENCEPOST_API_KEY") {
		t.Errorf("%+v", r)
	}
}

func TestSampleIsTakenWhole(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	out := s.ok("import", "crontab", "../sample.crontab")
	if !strings.Contains(out, ", 0 unchanged, 0 refused\n") || strings.Contains(out, "0 created") {
		t.Error(out)
	}
}
