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
	zone  string // of CRON_TZ; empty before there is one
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
	for _, line := range lines {
		if strings.HasPrefix(line, "CRON_TZ=") {
			w.zone = cmp.Or(e.Zone, "UTC")
		}
	}
	w.shell, w.env = cmp.Or(e.Shell, w.shell), maps.Clone(e.Env)
	if w.env == nil {
		w.env = map[string]string{}
	}
	return nil
}

// lines returns the lines of an entry, or why there are none. That they say what
// the entry says is seen by reading them.
func (w *Writer) lines(e *Entry) (lines []string, why string) {
	for name := range w.env {
		if _, ok := e.Env[name]; !ok {
			return nil, "a crontab cannot take back the variable " + name + ", which is set above"
		}
	}
	if w.shell != "" && e.Shell == "" {
		return nil, "a crontab cannot take back SHELL, which is set above"
	}
	// Under CRON_TZ, TZ is a variable as others are.
	_, ownTZ := e.Env["TZ"]
	if cmp.Or(e.Zone, "UTC") != cmp.Or(w.zone, "UTC") || ownTZ && w.zone == "" {
		lines = append(lines, "CRON_TZ="+cmp.Or(e.Zone, "UTC"))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		if old, ok := w.env[name]; !ok || old != e.Env[name] {
			lines = append(lines, name+"="+quoted(e.Env[name]))
		}
	}
	if e.Shell != w.shell {
		lines = append(lines, "SHELL="+e.Shell)
	}
	lines = append(lines, e.Spec+" "+escape(e.Command)+percents(e.Stdin))
	if !w.readsBack(lines, e) {
		return nil, "its command, input or variables have no form in a crontab"
	}
	return lines, ""
}

func (w *Writer) readsBack(lines []string, e *Entry) bool {
	p := newParser(Options{Check: func(string, string) error { return nil }})
	p.env, p.shell, p.dir = maps.Clone(w.env), w.shell, w.env["HOME"]
	if w.zone != "" {
		p.cronTZ = &zone{name: w.zone}
	}
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

// quoted puts quotes around a value that would lose something without.
func quoted(value string) string {
	if value != "" && strings.Trim(value, spaces) == value && !strings.ContainsAny(value[:1], `"'`) {
		return value
	}
	if strings.Contains(value, `"`) {
		return "'" + value + "'"
	}
	return `"` + value + `"`
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
