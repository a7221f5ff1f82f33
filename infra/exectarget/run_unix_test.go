//go:build unix

package exectarget_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/exectarget"
)

type result struct {
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output"`
}

func execution(t *testing.T, payload map[string]any) core.Execution {
	t.Helper()
	raw, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return core.Execution{
		Key: core.RunKey{
			Region:     "local",
			ScheduleID: uuid.MustParse("01980000-0000-7000-8000-000000000001"),
			Slot:       time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC),
		},
		Attempt: 2,
		Fence:   65537,
		Payload: raw,
	}
}

func decode(t *testing.T, raw json.RawMessage) result {
	t.Helper()
	if len(raw) > core.MaxResultBytes {
		t.Errorf("result of %d bytes is too long", len(raw))
	}
	var r result
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("result %q: %v", raw, err)
	}
	return r
}

func TestExecuteReturnsOutputAndExitCode(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		payload map[string]any
		want    result
		err     string // empty: success
	}{
		{"both outputs in order", map[string]any{"command": "echo a; echo b >&2; echo c"}, result{0, "a\nb\nc\n"}, ""},
		{"a failure", map[string]any{"command": "echo no room; exit 3"}, result{3, "no room\n"}, "exit status 3: no room"},
		{"a silent failure", map[string]any{"command": "false"}, result{1, ""}, "exit status 1"},
		{"a signal", map[string]any{"command": "kill -9 $$"}, result{137, ""}, "signal: killed"},
		{"a pipe", map[string]any{"command": "printf '%s\n' b a | sort"}, result{0, "a\nb\n"}, ""},
		{"input", map[string]any{"command": "cat", "stdin": "a\nb"}, result{0, "a\nb"}, ""},
		{"no input", map[string]any{"command": "cat"}, result{0, ""}, ""},
		{"input that is not read", map[string]any{"command": "echo a", "stdin": strings.Repeat("x", 200<<10)}, result{0, "a\n"}, ""},
		{"a directory", map[string]any{"command": "pwd -P", "dir": dir}, result{0, dir + "\n"}, ""},
		{"a shell", map[string]any{"command": "ignored", "shell": "/bin/echo"}, result{0, "-c ignored\n"}, ""},
		{"no text", map[string]any{"command": `printf 'a\377\000b'`}, result{0, "a\uFFFD\uFFFDb"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw, err := exectarget.New(exectarget.Config{}).Execute(t.Context(), execution(t, tt.payload))
			if diff := cmp.Diff(tt.want, decode(t, raw)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.err, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if core.IsPermanent(err) {
				t.Errorf("error %v is permanent, want one that may be retried", err)
			}
		})
	}
}

func TestExecuteSaysWhyNothingRan(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		payload map[string]any
		prefix  string
	}{
		{"no such command", map[string]any{"command": "no-such-command-here"}, "exit status 127, command not found: "},
		{"not executable", map[string]any{"command": "/etc/passwd"}, "exit status 126, command not executable: "},
		{"no such shell", map[string]any{"command": "date", "shell": "/no/such/shell"}, "start command: "},
		{"no such directory", map[string]any{"command": "date", "dir": "/no/such/dir"}, "start command: its folder: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := exectarget.New(exectarget.Config{}).Execute(t.Context(), execution(t, tt.payload))
			if err == nil || !strings.HasPrefix(err.Error(), tt.prefix) {
				t.Errorf("error %v, want one that begins with %q", err, tt.prefix)
			}
		})
	}
}

func TestExecuteBoundsTheOutput(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, command, last string }{
		{"lines", `yes 0123456789 | head -c 3000000; echo end; exit 3`, "end\n"},
		{"characters of two bytes", `yes é | tr -d '\n' | head -c 100000; printf x; exit 3`, "éx"},
		{"bytes that JSON escapes", `yes | head -c 100000 | tr 'y\n' '\001\002'; echo end; exit 3`, "end\n"},
		{"no text", `yes | head -c 100000 | tr 'y\n' '\377a'; echo end; exit 3`, "end\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw, err := exectarget.New(exectarget.Config{}).Execute(t.Context(), execution(t, map[string]any{"command": tt.command}))
			if err == nil || !strings.HasPrefix(err.Error(), "exit status 3: ") || !strings.HasSuffix(err.Error(), strings.TrimSpace(tt.last)) {
				t.Errorf("error %.40q ... does not hold status and end of output", err)
			}
			if n := len(err.Error()); n > core.MaxErrorBytes || n < core.MaxErrorBytes-8 || !utf8.ValidString(err.Error()) {
				t.Errorf("error of %d bytes, valid %v, want close to the limit", n, utf8.ValidString(err.Error()))
			}
			out := decode(t, raw).Output
			if !strings.HasSuffix(out, tt.last) || len(raw) < 8<<10 {
				t.Errorf("%d bytes of result end with %.20q, want the last 8 KiB", len(raw), out[max(len(out)-20, 0):])
			}
			if strings.Contains(tt.name, "two bytes") && strings.Contains(out, "\uFFFD") {
				t.Error("a character was cut in two")
			}
		})
	}
}

func TestExecuteKeepsOurEnvironmentApart(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	target := exectarget.New(exectarget.Config{Environ: []string{
		"DATABASE_URL=secret", "FENCEPOST_API_KEY=secret", "FENCEPOST_URL=secret", "AWS_SECRET_ACCESS_KEY=secret",
		"PATH=/usr/bin:/bin", "HOME=" + home, "LANG=C", "USER=somebody", "LOGNAME=somebody",
	}})
	e := execution(t, map[string]any{"command": "env; pwd", "env": map[string]string{"LANG": "de_DE.UTF-8", "MODE": "a=b"}})
	raw, err := target.Execute(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(decode(t, raw).Output) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch name {
		case "PWD", "OLDPWD", "SHLVL", "_": // the shell's own
		default:
			got[name] = value
		}
	}
	want := map[string]string{
		"PATH": "/usr/bin:/bin", "HOME": home, "LANG": "de_DE.UTF-8", "USER": "somebody", "LOGNAME": "somebody", "SHELL": "/bin/sh", "MODE": "a=b",
		"FENCEPOST_RUN_ID":        e.Key.ID(),
		"FENCEPOST_SCHEDULE_ID":   "01980000-0000-7000-8000-000000000001",
		"FENCEPOST_SCHEDULED_FOR": "2027-01-05T09:00:00Z",
		"FENCEPOST_ATTEMPT":       "2",
		"FENCEPOST_FENCE":         "65537",
		home:                      "", // of pwd
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestExecuteRunsConcurrently(t *testing.T) {
	t.Parallel()
	target := exectarget.New(exectarget.Config{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			e := execution(t, map[string]any{"command": `printf %s "$FENCEPOST_ATTEMPT $N"`, "env": map[string]string{"N": strconv.Itoa(i)}})
			e.Attempt = i
			raw, err := target.Execute(t.Context(), e)
			if err != nil {
				t.Error(err)
				return
			}
			if diff := cmp.Diff(fmt.Sprintf(`{"exit_code":0,"output":"%d %d"}`, i, i), string(raw)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	wg.Wait()
}
