package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// help returns what a command prints about itself.
func (s *shell) help(args ...string) string {
	s.Helper()
	return s.ok(append(args, "--help")...)
}

var (
	listedCommand = regexp.MustCompile(`(?m)^  ([a-z]+) {2,}[A-Z]`)
	flagOf        = regexp.MustCompile(`(?:^| )(--?[a-z][a-z-]*)`)
)

// TestHelp: what a newcomer sees first.
func TestHelp(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	got := s.help()
	golden := filepath.Join("testdata", "help.txt")
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
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryCommandHasExamplesThatExist: each command shows how it is used, by
// commands and flags that there are.
func TestEveryCommandHasExamplesThatExist(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	n := 0
	var visit func(path []string)
	visit = func(path []string) {
		text := s.help(path...)
		below := 0
		if strings.Contains(text, "Commands:") || strings.Contains(text, "[command]") {
			for _, m := range listedCommand.FindAllStringSubmatch(text, -1) {
				if m[1] != "help" && m[1] != "completion" {
					below++
					visit(append(append([]string{}, path...), m[1]))
				}
			}
		}
		if below > 0 {
			return
		}
		n++
		_, examples, ok := strings.Cut(text, "Examples:\n")
		if !ok {
			t.Errorf("%s has no example", strings.Join(path, " "))
			return
		}
		examples, _, _ = strings.Cut(examples, "\nFlags:")
		for _, line := range strings.Split(strings.TrimSpace(examples), "\n") {
			s.checkExample(path, line, text)
		}
	}
	visit(nil)
	if n < 20 {
		t.Errorf("only %d commands were found", n)
	}
}

// checkExample checks the flags of an example's own command.
func (s *shell) checkExample(path []string, line, help string) {
	s.Helper()
	at := strings.Index(line, "fencepost "+strings.Join(path, " "))
	if at < 0 && strings.Contains(line, "fencepost") {
		s.Errorf("%s: the example is of another command: %s", strings.Join(path, " "), line)
	}
	if at < 0 {
		return // it goes on from the line before
	}
	own := line[at:]
	for _, end := range []string{" | ", " > ", ")"} {
		own, _, _ = strings.Cut(own, end)
	}
	own = regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(own, "x")
	for _, m := range flagOf.FindAllStringSubmatch(own, -1) {
		if !strings.Contains(help, m[1]+" ") && !strings.Contains(help, m[1]+",") && !strings.Contains(help, m[1]+"\n") {
			s.Errorf("%s has no flag %s: %s", strings.Join(path, " "), m[1], line)
		}
	}
}

// TestCompletion: shells get a script, and the names of schedules.
func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := s.ok("completion", shell); !strings.Contains(out, "fencepost") {
			t.Errorf("%s: %s", shell, out)
		}
	}
	s.ok("schedules", "create", "--name", "nightly a", "--spec", "@daily", "--queue", "mails")
	s.ok("schedules", "create", "--name", "other", "--spec", "@daily", "--queue", "mails")
	if out := s.run("__complete", "runs", "list", "nig").out; !strings.HasPrefix(out, "nightly a\t@daily\n:") {
		t.Errorf("names are %q", out)
	}
	s.env["FENCEPOST_URL"] = "http://127.0.0.1:1"
	if out := s.run("__complete", "schedules", "get", "n").out; strings.Contains(out, "nightly") || !strings.HasPrefix(out, ":") {
		t.Errorf("without an API %q", out)
	}
}

// TestEdit: the given fields change, the others stay; a job is replaced whole.
func TestEdit(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "a", "--spec", "0 3 * * *", "--queue", "mails", "--payload", `{"a":1}`, "--timeout", "90s", "--label", "team=x")
	out := s.ok("schedules", "edit", "a", "--spec", "0 4 * * *", "--time-zone", "Europe/Berlin", "--exact=false", "--max-attempts", "2")
	matches(t, `edited a: version 2; next run at `+timeText+"\n", out)
	s.ok("schedules", "edit", "a", "--command", "date", "--rename", "b", "--label", "env=test", "--label", "tier=1")
	got := s.schedules()["b"]
	if got.Spec != "0 4 * * *" || got.TimeZone != "Europe/Berlin" || got.Timeout != "1m30s" || got.MaxAttempts != 2 || got.Job.Queue != "exec" || got.Version != 3 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(map[string]string{"env": "test", "tier": "1"}, got.Labels); diff != "" {
		t.Error(diff)
	}
	for _, args := range [][]string{{"b"}, {"b", "--payload", "1"}, {"b", "--command", "x", "--url", "y"}, {"b", "--nonsense"}} {
		if r := s.run(append([]string{"schedules", "edit"}, args...)...); r.code != 2 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := s.run("schedules", "edit", "b", "--spec", "60 * * * *"); r.code != 1 || s.schedules()["b"].Version != 3 {
		t.Errorf("%+v", r)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	s := &shell{TB: t}
	matches(t, `fencepost v1\.2\.3 go\S+ \S+/\S+`+"\n", s.ok("version"))
}
