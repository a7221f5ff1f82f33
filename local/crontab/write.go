package crontab

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Writer writes entries as a crontab that Parse takes back. What a crontab cannot
// say it writes as a comment with the reason. Make it with NewWriter; it is not
// safe for concurrent use.
type Writer struct {
	w     io.Writer
	zone  string
	shell string
	env   map[string]string
}

// NewWriter returns a writer that begins an empty crontab.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w, env: map[string]string{}} }

// Write writes an entry and the settings that it needs above it. why, unless it is
// empty, says why it is left out.
func (w *Writer) Write(name string, e *Entry, why string) error {
	var lines []string
	if why == "" {
		lines, why = w.lines(e)
	}
	if why != "" {
		_, err := fmt.Fprintf(w.w, "# %s is left out: %s\n", printable(name), why)
		return err
	}
	if _, err := io.WriteString(w.w, strings.Join(lines, "\n")+"\n"); err != nil {
		return err
	}
	w.zone, w.shell, w.env = e.Zone, cmp.Or(e.Shell, w.shell), maps.Clone(e.Env)
	if w.env == nil {
		w.env = map[string]string{}
	}
	return nil
}

// lines returns the lines of an entry, or why there are none. That they say what
// the entry says is seen by reading them.
func (w *Writer) lines(e *Entry) (lines []string, why string) {
	for name := range w.env {
		if _, ok := e.Env[name]; !ok && name != "TZ" {
			return nil, "a crontab cannot take back the variable " + name + ", which is set above"
		}
	}
	if w.shell != "" && e.Shell == "" {
		return nil, "a crontab cannot take back SHELL, which is set above"
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		if old, ok := w.env[name]; (!ok || old != e.Env[name]) && name != "TZ" {
			lines = append(lines, name+"="+quoted(e.Env[name]))
		}
	}
	if e.Shell != w.shell {
		lines = append(lines, "SHELL="+e.Shell)
	}
	if cmp.Or(e.Zone, "UTC") != cmp.Or(w.zone, "UTC") {
		lines = append(lines, "CRON_TZ="+cmp.Or(e.Zone, "UTC"))
	}
	lines = append(lines, e.Spec+" "+escape(e.Command)+input(e.Stdin))
	if !w.readsBack(lines, e) {
		return nil, "its command, input or variables have no form in a crontab"
	}
	return lines, ""
}

func (w *Writer) readsBack(lines []string, e *Entry) bool {
	p := &parser{Options: Options{Check: func(string, string) error { return nil }}, zone: w.zone, env: maps.Clone(w.env), shell: w.shell, dir: w.env["HOME"]}
	var got *Entry
	for _, text := range lines {
		if len(text) > MaxLineBytes || strings.ContainsAny(text, "\n\r\x00") {
			return false
		}
		l := Line{Text: text}
		p.read(&l)
		got = l.Entry
	}
	if got == nil {
		return false
	}
	want := *e
	want.Zone, got.Zone = cmp.Or(want.Zone, "UTC"), cmp.Or(got.Zone, "UTC")
	if len(want.Env) == 0 && len(got.Env) == 0 {
		want.Env, got.Env = nil, nil
	}
	return reflect.DeepEqual(&want, got)
}

func quoted(value string) string {
	if value == "" || strings.Trim(value, blanks) != value || strings.ContainsAny(value[:1], `"'`) {
		return `"` + value + `"`
	}
	return value
}

func escape(text string) string { return strings.ReplaceAll(text, "%", `\%`) }

// input returns what follows a command that reads text, which ends with a newline.
func input(text string) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range lines {
		lines[i] = escape(lines[i])
	}
	return "%" + strings.Join(lines, "%")
}

// printable keeps a name on its line.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, name)
}
