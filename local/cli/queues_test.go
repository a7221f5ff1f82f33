package cli_test

import (
	"strings"
	"testing"
)

// TestQueueLimits: a limit is set, shown and ended; that of all tenants with access to
// the database alone.
func TestQueueLimits(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if out := s.ok("queues", "list"); out != "" {
		t.Errorf("%q", out)
	}
	if out := s.ok("queues", "limit", "http", "3"); out != "queue http runs 3 at once\n" {
		t.Errorf("%q", out)
	}
	all := []string{"--all-tenants", "--database-url", s.url, "--region", region}
	if out := s.ok(append([]string{"queues", "limit", "http", "9"}, all...)...); out != "queue http runs 9 at once, of all tenants\n" {
		t.Errorf("%q", out)
	}
	if out := s.ok("queues", "list"); out != "http\tall\t9\t0\t0\nhttp\ttenant\t3\t0\t0\n" {
		t.Errorf("%q", out)
	}
	if out := s.ok("queues", "unlimit", "http"); !strings.Contains(out, "no limit of yours") {
		t.Errorf("%q", out)
	}
	s.ok(append([]string{"queues", "unlimit", "http"}, all...)...)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"limit", "http", "x"}, `N must be a whole number, not "x"`},
		{[]string{"limit", "http", "1001"}, "concurrency: must be from 0 to 1000"},
		{[]string{"limit", "htpp", "1"}, "is not one that this installation serves"},
		{[]string{"limit", "http", "1", "--all-tenants"}, "--all-tenants needs --database-url"},
		{[]string{"unlimit", "http"}, "no limit of yours"},
		{append([]string{"unlimit", "http"}, all...), "no limit of all tenants"},
	} {
		if r := s.run(append([]string{"queues"}, tt.args...)...); r.code == 0 || !strings.Contains(r.err, tt.want) {
			t.Errorf("%s: %+v", tt.args, r)
		}
	}
}
