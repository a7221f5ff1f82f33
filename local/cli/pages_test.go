package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

// names lists schedules and returns their names.
func (s *shell) names(args ...string) []string {
	s.Helper()
	var list api.List[api.Schedule]
	if err := json.Unmarshal([]byte(s.ok(append([]string{"schedules", "list", "--json"}, args...)...)), &list); err != nil {
		s.Fatal(err)
	}
	names := []string{}
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

func TestListFlags(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "mail a", "--spec", "@daily", "--queue", "mails", "--label", "team=x", "-l", "env=test,tier=1")
	s.ok("schedules", "create", "--name", "mail b", "--spec", "@daily", "--queue", "mails", "--label", "team=y")
	s.ok("schedules", "create", "--name", "date", "--spec", "@daily", "--command", "date")
	s.ok("schedules", "pause", "date")
	for _, c := range []struct{ args, want []string }{
		{[]string{"--label", "team=x"}, []string{"mail a"}},
		{[]string{"-l", "team,!env"}, []string{"mail b"}},
		{[]string{"-l", "env=test,tier=1,team!=y"}, []string{"mail a"}},
		{[]string{"--state", "paused,completed"}, []string{"date"}},
		{[]string{"--state", "active", "--queue", "mails", "--name-prefix", "mail"}, []string{"mail a", "mail b"}},
		{[]string{"--queue", "none"}, []string{}},
	} {
		if diff := cmp.Diff(c.want, s.names(c.args...)); diff != "" {
			t.Errorf("%q: %s", c.args, diff)
		}
	}
	s.terminal = true
	matches(t, `(?s).*labels +env=test,team=x,tier=1\n.*`, s.ok("schedules", "get", "mail a"))
	for want, args := range map[string][]string{
		"fencepost: limit: must be a whole number from 1 to 1000\n":                                                                      {"--limit", "0"},
		"fencepost: state: must be one or more of active, paused, completed, with commas between them\n":                                 {"--state", "x"},
		"fencepost: labels: must be conditions such as team=payments,env!=test,owner,!legacy with commas between them\n":                 {"-l", "a b"},
		"fencepost: cursor: is not a cursor of this list with these filters; take next_cursor as it is, or leave it out to begin anew\n": {"--cursor", "x"},
	} {
		if r := s.run(append([]string{"schedules", "list"}, args...)...); r.code == 0 || r.err != want {
			t.Errorf("%q: %d %q, want %q", args, r.code, r.err, want)
		}
	}
}

// TestListFillsShortPages: a page that the API ends early is no reason to bother a
// person.
func TestListFillsShortPages(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"limit=3":          `{"items":[],"next_cursor":"a"}`,
		"cursor=a&limit=3": `{"items":[{"id":"1"},{"id":"2"}],"next_cursor":"b"}`,
		"cursor=b&limit=1": `{"items":[{"id":"3"}],"next_cursor":"c"}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.RawQuery]
		if !ok {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	s := newShell(t)
	s.env["FENCEPOST_URL"] = server.URL
	r := s.run("schedules", "list", "--limit", "3")
	if r.code != 0 || r.err != "there are more: go on with --cursor c\n" || len(r.out) == 0 {
		t.Errorf("%+v", r)
	}
}
