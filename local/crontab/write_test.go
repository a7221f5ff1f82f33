package crontab_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/local/crontab"
)

// TestWrittenCrontabsAreReadBack: what is written says what was meant, and the
// rest is said to be left out.
func TestWrittenCrontabsAreReadBack(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := crontab.NewWriter(&b)
	entries := []crontab.Entry{
		{Spec: "*/5 * * * *", Command: `date +%F # "x"`},
		{Spec: "@daily", Command: "cat", Stdin: "a%b\n\nc\n", Zone: "Europe/Berlin"},
		{Spec: "0 9 * * *", Command: `echo a\b\`, Zone: "Europe/Berlin", Env: map[string]string{"A": " x ", "B": "y"}},
		{Spec: "0 9 * * *", Command: "no a", Env: map[string]string{"B": "y"}},
		{Spec: "1 9 * * *", Command: "x", Env: map[string]string{"A": "", "B": `"y"`}, Shell: "/bin/bash"},
		{Spec: "2 9 * * *", Command: "y", Env: map[string]string{"A": "", "B": `"y"`}},
		{Spec: "3 9 * * *", Command: `a\%b`, Env: map[string]string{"A": "", "B": `"y"`}, Shell: "/bin/bash"},
		{Spec: "4 9 * * *", Command: "two\nlines", Env: map[string]string{"A": "", "B": `"y"`}, Shell: "/bin/bash"},
		{Spec: "5 9 * * *", Command: "cat", Stdin: "no end", Env: map[string]string{"A": "", "B": `"y"`}, Shell: "/bin/bash"},
		{Spec: "6 9 * * *", Command: "z", Zone: "UTC", Env: map[string]string{"A": "", "B": `"y"`, "HOME": "/srv"}, Dir: "/srv", Shell: "/bin/sh"},
		{Spec: "7 9 * * *", Command: "z", Zone: "UTC", Env: map[string]string{"A": "", "B": `"y"`, "HOME": "/srv", "TZ": "no zone"}, Dir: "/srv", Shell: "/bin/sh"},
		{Spec: "8 9 * * *", Command: "z", Zone: "UTC", Env: map[string]string{"A": "'\"", "B": `"y"`, "HOME": "/srv", "TZ": "no zone"}, Dir: "/srv", Shell: "/bin/sh"},
	}
	for _, e := range entries {
		if err := w.Write("n", &e, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write("other\nname", &entries[0], "its job is not a command"); err != nil {
		t.Fatal(err)
	}
	const want = `*/5 * * * * date +\%F # "x"
CRON_TZ=Europe/Berlin
@daily cat%a\%b%%c
A=" x "
B=y
0 9 * * * echo a\b\
# n is left out: a crontab cannot take back the variable A, which is set above
CRON_TZ=UTC
A=""
B='"y"'
SHELL=/bin/bash
1 9 * * * x
# n is left out: a crontab cannot take back SHELL, which is set above
# n is left out: its command, input or variables have no form in a crontab
# n is left out: its command, input or variables have no form in a crontab
# n is left out: its command, input or variables have no form in a crontab
HOME=/srv
SHELL=/bin/sh
6 9 * * * z
TZ=no zone
7 9 * * * z
# n is left out: its command, input or variables have no form in a crontab
# other name is left out: its job is not a command
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzWrite(f *testing.F) {
	f.Add("date", "a\n", "A", "b", "Europe/Berlin")
	f.Fuzz(func(t *testing.T, command, stdin, name, value, zone string) {
		var b strings.Builder
		e := crontab.Entry{Spec: "* * * * *", Command: command, Stdin: stdin, Zone: zone, Env: map[string]string{name: value}}
		if err := crontab.NewWriter(&b).Write("n", &e, ""); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(b.String(), "# n is left out") {
			return
		}
		lines, err := crontab.Parse(strings.NewReader(b.String()), crontab.Options{Check: func(string, string) error { return nil }})
		if err != nil || len(lines) == 0 || lines[len(lines)-1].Entry == nil {
			t.Fatalf("%+v is written as %q: %v", e, b.String(), err)
		}
		if got := lines[len(lines)-1].Entry; got.Command != command || got.Stdin != stdin || got.Env[name] != value {
			t.Fatalf("%+v is written as %q, which is %+v", e, b.String(), got)
		}
	})
}
