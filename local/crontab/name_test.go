package crontab_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/local/crontab"
)

// The names are promised to stay: importing again must change nothing.
func TestNameIsStableAndReadable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		spec, command string
		counter       int
		want          string
	}{
		{"* * * * *", "date", 1, "date-"},
		{"* * * * *", "date", 2, "date-"},
		{"@daily", "/srv/app/bin/backup --full >> /var/log/x", 1, "srv-app-bin-backup-"},
		{"@daily", "éé ++", 1, ""},
		{"@daily", strings.Repeat("X", 300) + " y", 1, "xxxxxxxxxxxxxxxxxxxx-y-"},
	}
	for _, tt := range tests {
		name := crontab.Name(&crontab.Entry{Spec: tt.spec, Command: tt.command}, tt.counter)
		pattern := "^" + tt.want + "[0-9a-f]{12}"
		if tt.counter > 1 {
			pattern += "-2"
		}
		if !regexp.MustCompile(pattern + "$").MatchString(name) {
			t.Errorf("%.40s: name %q, want %s", tt.command, name, pattern)
		}
	}
	if diff := cmp.Diff("date-5fdec930ea24", crontab.Name(&crontab.Entry{Spec: "* * * * *", Command: "date"}, 1)); diff != "" {
		t.Errorf("a name of an earlier import (-want +got):\n%s", diff)
	}
}

func TestNamesDiffer(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("w", 100)
	seen := map[string]string{}
	for _, e := range []crontab.Entry{
		{Spec: "* * * * *", Command: "a b c d e", Zone: "Europe/Berlin"},
		{Spec: "* * * * *", Command: "a b c d e"}, {Spec: "* * * * *", Command: "a b c d f"},
		{Spec: "@daily", Command: "a b c d e"}, {Spec: "* * * * *", Command: "a  b c d e"}, {Spec: "* * * * *", Command: "A b c d e"},
		{Spec: "@daily", Command: strings.Repeat(word+" ", 10)},
	} {
		for _, counter := range []int{1, 2, 3, 10_000} {
			name := crontab.Name(&e, counter)
			if other, ok := seen[name]; ok {
				t.Errorf("%v has the name of %s", e, other)
			}
			if len(name) > 120 {
				t.Errorf("name of %d bytes", len(name))
			}
			seen[name] = e.Command
		}
	}
}
