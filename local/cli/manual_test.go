package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/fencepost/fencepost/core/api"
)

// TestManualRuns triggers with a payload of one run's own, and cancels.
func TestManualRuns(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "report", "--spec", "@daily", "--command", "make report", "--overlap", "allow")
	var run api.Run
	if err := json.Unmarshal([]byte(s.ok("schedules", "trigger", "report", "--payload", `{"command": "make old"}`, "--json")), &run); err != nil {
		t.Fatal(err)
	}
	matches(t, `(?s)id +`+run.ID+`\n.*state +queued\n.*payload +\{"command":"make old"\}\n.*`, s.ok("runs", "get", run.ID))
	for range 2 {
		matches(t, run.ID+" is canceled\n", s.ok("runs", "cancel", run.ID))
	}
	matches(t, `(?s).*reason +requested\n.*`, s.ok("runs", "get", run.ID))
	matches(t, `triggered report: run_[0-9a-z]+\n`, s.ok("schedules", "trigger", "report"))
	for problem, args := range map[string][]string{
		`fencepost: --payload is not JSON (see fencepost schedules trigger --help)` + "\n": {"schedules", "trigger", "report", "--payload", "{"},
		"fencepost: no such schedule or run\n":                                             {"runs", "cancel", "run_x"},
	} {
		if r := s.run(args...); r.code == 0 || r.err != problem {
			t.Errorf("%q: %d %s", args, r.code, r.err)
		}
	}
}
