package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// fail triggers a schedule and lets the run die.
func (s *shell) fail(name string) string {
	s.Helper()
	var run api.Run
	if err := json.Unmarshal([]byte(s.ok("schedules", "trigger", name, "--json")), &run); err != nil {
		s.Fatal(err)
	}
	key, err := core.ParseRunID(run.ID)
	if err != nil {
		s.Fatal(err)
	}
	started, err := s.db.Start(s.Context(), []core.Delivery{{Message: core.Message{Key: key, Fence: run.Fence}, Token: uuid.New()}}, time.Minute)
	if err != nil || len(started) != 1 {
		s.Fatalf("start: %v, %v", started, err)
	}
	o := core.Outcome{Held: core.Held{Key: key, Fence: started[0].Fence}, State: core.RunDead, Reason: core.ReasonPermanent, Error: "it failed"}
	if _, err := s.db.Finish(s.Context(), []core.Outcome{o}); err != nil {
		s.Fatal(err)
	}
	return run.ID
}

// TestRedrive: one by its id, and those that flags choose.
func TestRedrive(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for i := range 3 {
		s.ok("schedules", "create", "--name", fmt.Sprint("n-", i), "--spec", "@daily", "--queue", "mails")
	}
	s.ok("schedules", "create", "--name", "wide", "--spec", "@daily", "--queue", "mails", "--overlap", "allow")
	first := s.fail("n-0")
	for range 2 {
		matches(t, first+" is queued\n", s.ok("runs", "redrive", first))
	}
	old, last := s.fail("n-1"), s.fail("n-1")
	if r := s.run("runs", "redrive", old); r.code != 1 || !strings.Contains(r.err, "trigger the schedule instead") {
		t.Errorf("a superseded run: %+v", r)
	}
	matches(t, timeText+`\s+1\s+permanent: it failed\s+`+last+`\s+would be redriven\n1 would be redriven\n`, s.ok("runs", "redrive", "--schedule", "n-1", "--dry-run"))
	wide := []string{s.fail("wide"), s.fail("wide")}
	matches(t, `(?s).*`+wide[1]+`\s+redriven\n.*`+wide[0]+`\s+redriven\n2 redriven\n`, s.ok("runs", "redrive", "--name-prefix", "w", "--reason", "permanent"))
	var page api.List[api.RedriveItem]
	if err := json.Unmarshal([]byte(s.ok("runs", "redrive", "--queue", "mails", "--json")), &page); err != nil || len(page.Items) != 1 || page.Items[0].Run.State != "queued" {
		t.Errorf("%+v, %v", page, err)
	}
	matches(t, "0 redriven\n", s.ok("runs", "redrive", "--queue", "mails"))
	for _, args := range [][]string{{}, {first, "--queue", "mails"}, {first, "--dry-run"}, {"--dry-run"}, {"--queue", "mails", "--reason", "nonsense"}} {
		if r := s.run(append([]string{"runs", "redrive"}, args...)...); r.code == 0 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
