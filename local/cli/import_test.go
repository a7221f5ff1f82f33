package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

const table = `# a comment
MAILTO=me
*/5 * * * * date
*/5 * * * * date

60 * * * * false
@daily /bin/backup --full
`

func TestImportCrontab(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = table
	r := s.run("import", "crontab", "-")
	const entry = `-[0-9a-f]{12}`
	matches(t, `line 1	ignored	comment or blank
line 2	refused	not applied: .*
line 3	created	date`+entry+`; next run at `+timeText+`
line 4	created	date`+entry+`-2; next run at `+timeText+`
line 5	ignored	comment or blank
line 6	refused	.*
line 7	created	bin-backup-full`+entry+`; next run at `+timeText+`
3 created, 0 unchanged, 2 refused
`, r.out)
	if r.code != 1 || r.err != "fencepost: 2 of 7 lines were refused\n" {
		t.Errorf("%d %s", r.code, r.err)
	}
	var list api.List[api.Schedule]
	if err := json.Unmarshal([]byte(s.ok("schedules", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, got := range list.Items {
		if got.MaxAttempts != 1 || got.Overlap != "allow" || got.Timeout != "0s" || got.Misfire != "run_once" || got.Job.Queue != "exec" || got.Window != "0s" || !got.Exact || got.Spread != "0s" {
			t.Errorf("%+v", got)
		}
	}
	if len(list.Items) != 3 {
		t.Fatalf("%+v", list.Items)
	}
	if diff := cmp.Diff(decode(t, `{"command":"/bin/backup --full"}`), decode(t, string(list.Items[2].Job.Payload))); diff != "" {
		t.Error(diff)
	}

	again := s.run("import", "crontab", "-")
	if again.code != 1 || !strings.HasSuffix(again.out, "0 created, 3 unchanged, 2 refused\n") {
		t.Errorf("%+v", again)
	}
	if after := s.ok("schedules", "list"); strings.Count(after, "\n") != 3 {
		t.Errorf("schedules are now %s", after)
	}
}

func TestImportCrontabFromAFileInAZone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	path := filepath.Join(t.TempDir(), "crontab")
	if err := os.WriteFile(path, []byte("0 9 * * * date\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := s.ok("import", "crontab", path, "--time-zone", "Europe/Berlin"); !strings.HasSuffix(out, "1 created, 0 unchanged, 0 refused\n") {
		t.Error(out)
	}
	matches(t, ".*\tEurope/Berlin\t.*\n", s.ok("schedules", "list"))
	if out := s.ok("import", "crontab", path, "--time-zone", "Europe/Berlin"); !strings.HasSuffix(out, "0 created, 1 unchanged, 0 refused\n") {
		t.Error(out)
	}
	if r := s.run("import", "crontab", path); r.code != 1 || !strings.Contains(r.out, "exists with another time zone; delete it first") {
		t.Errorf("%+v", r)
	}
	if r := s.run("import", "crontab", path, "--time-zone", "Nowhere"); r.code != 1 || !strings.Contains(r.out, "0 created, 0 unchanged, 1 refused") {
		t.Errorf("%+v", r)
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
