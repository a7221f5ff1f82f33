package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/core/api"
)

// TestBackfills shows first what would run, asks, and follows what runs.
func TestBackfills(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "a", "--spec", "0 9 * * *", "--queue", "mails")
	order := []string{"schedules", "backfill", "a", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-04T00:00:00Z"}
	const planned = `2026-03-01T09:00:00Z\s+runs\n2026-03-02T09:00:00Z\s+runs\n2026-03-03T09:00:00Z\s+runs\n3 runs, 0 left alone\n`
	matches(t, planned, s.ok(append(order, "--dry-run")...))
	if r := s.run(order...); r.code != 2 || !strings.Contains(r.err, "--yes") {
		t.Errorf("without a terminal: %+v", r)
	}
	s.terminal, s.in = true, "n\n"
	matches(t, `(?s).*Run 3 slots\? \[y/N\] nothing was run\n`, s.ok(order...))
	s.in = "y\n"
	matches(t, `(?s).*Run 3 slots\? \[y/N\] backfill [0-9a-f-]{36}: 3 runs\n`, s.ok(order...))
	s.terminal = false
	matches(t, `(?s)`+planned+`backfill [0-9a-f-]{36}: 3 runs\n`, s.ok(append(order, "--yes", "--order", "ascending")...))
	var list api.List[api.Backfill]
	if err := json.Unmarshal([]byte(s.ok("backfills", "list", "a", "--json")), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	id := list.Items[0].ID
	matches(t, `(?s)id +`+id+`\n.*state +running\n.*made +0 of 3\n.*`, strings.ReplaceAll(s.ok("backfills", "get", id), "\t", "  "))
	matches(t, `(?s).*state +canceled\n.*`, strings.ReplaceAll(s.ok("backfills", "cancel", id, "--cancel-runs"), "\t", "  "))
	if out := s.ok("backfills", "list", "a"); strings.Count(out, "canceled")+strings.Count(out, "running") != 2 {
		t.Error(out)
	}
	for _, args := range [][]string{{"schedules", "backfill", "a"}, append(order, "--payload", "{"), append(order, "--concurrency", "1000"), {"backfills", "get", "x"}} {
		if r := s.run(args...); r.code == 0 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
