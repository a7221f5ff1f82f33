package cli_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"

	"github.com/fencepost/fencepost/local/cli"
)

// help returns what a command prints about itself.
func (s *shell) help(args ...string) string {
	s.Helper()
	return s.ok(append(args, "--help")...)
}

// program finds where an example calls the program.
var program = regexp.MustCompile(`(?:^ *|[ (])fencepost `)

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

// TestEveryCommandHasExamplesThatWork: each line of them, as a shell splits it, is a
// command with flags and arguments that it takes, and one of those below it if it
// only holds others.
func TestEveryCommandHasExamplesThatWork(t *testing.T) {
	t.Parallel()
	all := cli.CommandExamples()
	if len(all) < 25 {
		t.Fatalf("only %d commands were found", len(all))
	}
	for path, examples := range all {
		if examples == "" {
			t.Errorf("%s has no example", path)
		}
		if !program.MatchString(examples) {
			t.Errorf("%s does not show itself: %s", path, examples)
		}
		for line := range strings.Lines(examples) {
			for _, own := range program.Split(strings.TrimSpace(line), -1)[1:] {
				words, err := shellWords(own)
				if err != nil {
					t.Errorf("%s: %v: %s", path, err, line)
					continue
				}
				found, err := cli.Parse(words)
				if err != nil || found != path && !strings.HasPrefix(found, path+" ") && !strings.Contains(line, " | ") {
					t.Errorf("%s: the example is of %q, %v: %s", path, found, err, line)
				}
			}
		}
	}
}

// TestExamplesThatDoNotWork: the test above finds them.
func TestExamplesThatDoNotWork(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"schedules lists", "schedules list --nonsense", "schedules get", "schedules get a b", "schedules create --name a --command x",
		"schedules list --label a,!b", "runs tail *", "runs list \"a", "runs list $(x)", "schedules list --limit many",
	} {
		words, err := shellWords(line)
		if err == nil {
			_, err = cli.Parse(words)
		}
		if err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

// shellWords splits the first command of a line as a shell does, and refuses what
// an interactive one would change.
func shellWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case strings.ContainsRune("|<>;)", r):
			if begun {
				words = append(words, word.String())
			}
			return words, nil
		case strings.ContainsRune("!*?[]{}$&`(\\~#", r):
			return nil, fmt.Errorf("a shell changes %q", r)
		case r == ' ':
			if begun {
				words = append(words, word.String())
			}
			begun = false
			word.Reset()
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is open")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
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
	for _, wrong := range [][]string{{"completion"}, {"completion", "tcsh"}} {
		if r := s.run(wrong...); r.code != 2 {
			t.Errorf("%q: %+v", wrong, r)
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
	if got.Spec != "0 4 * * *" || got.TimeZone != "Europe/Berlin" || got.Timeout != "1m30s" || got.Retry.MaxAttempts != 2 || got.Job.Queue != "exec" || got.Version != 3 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(map[string]string{"env": "test", "tier": "1"}, got.Labels); diff != "" {
		t.Error(diff)
	}
	s.ok("schedules", "edit", "b", "--max-delay", "5m", "--multiplier", "1.5", "--jitter", "full", "--total-timeout", "2h")
	got = s.schedules()["b"]
	if diff := cmp.Diff(api.Retry{MaxAttempts: 2, InitialDelay: "10s", MaxDelay: "5m", Multiplier: 1.5, Jitter: "full"}, got.Retry); diff != "" || got.TotalTimeout != "2h" {
		t.Errorf("total timeout %s, retries %s", got.TotalTimeout, diff)
	}
	if out := s.ok("schedules", "edit", "b", "--spec", "* 4 * * *", "--overlap", "allow"); !strings.Contains(out, "; note: every minute of the hour, 60 runs in each; \"0 4 * * *\" runs once in each; overlap allow: ") {
		t.Error(out)
	}
	for _, args := range [][]string{{"b"}, {"b", "--payload", "1"}, {"b", "--command", "x", "--url", "y"}, {"b", "--nonsense"}} {
		if r := s.run(append([]string{"schedules", "edit"}, args...)...); r.code != 2 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := s.run("schedules", "edit", "b", "--spec", "60 * * * *"); r.code != 1 || s.schedules()["b"].Version != 5 {
		t.Errorf("%+v", r)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	s := &shell{TB: t}
	matches(t, `fencepost v1\.2\.3 go\S+ \S+/\S+`+"\n", s.ok("version"))
}
