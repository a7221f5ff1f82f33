// Package crontab reads the crontabs that people already have, and exists so
// that moving them is one command which says, line by line, what it took and
// what it did not.
package crontab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fencepost/fencepost/core"
)

// The bounds of a file. Crontabs are written by hand; these are far above.
const (
	MaxLines     = 10_000
	MaxLineBytes = 16 << 10
)

// Line is a line of the file and what became of it: an entry, a setting for the
// entries below, or a reason why it was refused or left alone. Exactly one of the
// last four fields is set.
type Line struct {
	// Number counts from 1.
	Number int
	// Text is the line as it stands in the file, without its end.
	Text string
	// Foreign marks a refused line that nothing could make right, such as @reboot.
	Foreign bool

	// Entry is what the line asks for; nil if it was not taken.
	Entry *Entry
	// Setting says what the line changes for the entries below it.
	Setting string
	// Refused says why the line was not taken, for the reader of a report.
	Refused string
	// Ignored says why the line asks for nothing: comments, blanks, mail.
	Ignored string
}

// Entry is one scheduled command.
type Entry struct {
	// Spec is the five fields with single blanks between them, or the macro.
	Spec string
	// Zone is the IANA name of the time zone; empty is UTC.
	Zone string
	// User runs the command; empty in a user's own crontab.
	User string
	// Command is the rest of the line up to a % that is not escaped, as the shell
	// gets it: \% became %.
	Command string
	// Stdin is what comes after that %, with newlines for every further one.
	Stdin string
	// Env are the variables set above the line, without those below.
	Env map[string]string
	// Shell and Dir are SHELL and HOME set above the line; empty if they are not.
	Shell, Dir string
}

// Options say how a file is to be read.
type Options struct {
	// System says that a user stands before each command, as in /etc/crontab.
	System bool
	// Zone is the time zone until a line sets another; empty is UTC.
	Zone string
	// Check judges a spec in a zone; its error becomes the reason. It is called
	// with an empty spec for a zone alone. Required.
	Check func(spec, zone string) error
}

// Parse reads a crontab and returns every line of it in order. It fails only if r
// does, for a zone of o that is none, for a file that is no text, or beyond
// MaxLines or MaxLineBytes; then it returns no line, so that no file is taken in
// part.
func Parse(r io.Reader, o Options) ([]Line, error) {
	if err := o.Check("", o.Zone); err != nil {
		return nil, err
	}
	var lines []Line
	p := newParser(o)
	begin := bufio.NewReader(r)
	if head, _ := begin.Peek(headBytes); bytes.IndexByte(head, 0) >= 0 { // reading on meets its error again
		return nil, core.Invalid("", "is no text file: its beginning holds a NUL byte")
	}
	s := bufio.NewScanner(begin)
	s.Buffer(nil, MaxLineBytes+len("\r\n"))
	for s.Scan() {
		switch {
		case len(lines) == MaxLines:
			return nil, core.Invalid("", "has more than %d lines; split it", MaxLines)
		case len(s.Bytes()) > MaxLineBytes:
			return nil, tooLong(len(lines) + 1)
		case strings.Contains(s.Text(), "\x00"):
			return nil, core.Invalid("", "is no text file: line %d holds a NUL byte", len(lines)+1)
		}
		line := Line{Number: len(lines) + 1, Text: s.Text()}
		p.read(&line)
		lines = append(lines, line)
	}
	if err := s.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, tooLong(len(lines) + 1)
	} else if err != nil {
		return nil, fmt.Errorf("read line %d: %w", len(lines)+1, err)
	}
	return lines, nil
}

func tooLong(number int) error {
	return core.Invalid("", "line %d is longer than %d bytes", number, MaxLineBytes)
}

// headBytes are looked at first, so that a program given by mistake is called by
// its name, however long its first line is.
const headBytes = 512

// parser is what the lines so far have set for those below.
type parser struct {
	Options
	env map[string]string
	// cronTZ and tz are CRON_TZ, which counts if it is set, and TZ.
	cronTZ, tz *zone
	// shell and dir are SHELL and HOME.
	shell, dir string
	// refusedShell says why entries cannot be taken until another line sets a
	// good one.
	refusedShell string
}

func newParser(o Options) *parser { return &parser{Options: o, env: map[string]string{}} }

const blanks = " \t"

// read fills in what becomes of the line.
func (p *parser) read(l *Line) {
	text := l.Text
	if l.Number == 1 {
		text = strings.TrimPrefix(text, "\ufeff") // some editors' mark of UTF-8
	}
	text = strings.TrimLeft(text, blanks)
	v, isVariable := readVariable(text)
	switch {
	case text == "":
		l.Ignored = "blank"
	case text[0] == '#':
		l.Ignored = "comment"
	case !utf8.ValidString(text):
		l.Refused = "it is not UTF-8 text"
	case isVariable:
		p.set(l, v)
	default:
		p.entry(l, strings.TrimPrefix(text, silent))
	}
}

// silent before an entry keeps cron from logging it.
const silent = "-"

// entry reads a line that schedules a command.
func (p *parser) entry(l *Line, text string) {
	spec, rest, why := splitSpec(text)
	zone := p.zone()
	switch {
	case why != "":
		l.Refused, l.Foreign = why, spec == reboot
		return
	case zone.refused != "":
		l.Refused = zone.refused
		return
	case p.refusedShell != "":
		l.Refused = p.refusedShell
		return
	}
	e := &Entry{Spec: spec, Zone: zone.name, Env: maps.Clone(p.env), Shell: p.shell, Dir: p.dir}
	if p.System {
		if e.User, rest = cutField(rest); !isUser(e.User) {
			l.Refused = "the sixth field is no user name; without --system there is none"
			return
		}
	}
	if e.Command, e.Stdin = splitInput(cutOptions(rest)); strings.TrimSpace(e.Command) == "" {
		l.Refused = "there is no command; it comes after five fields or one macro" + map[bool]string{true: ", and a user"}[p.System]
		return
	}
	if err := p.Check(spec, zone.name); err != nil {
		l.Refused = err.Error()
		return
	}
	l.Entry = e
}

// reboot is the one macro that names no time.
const reboot = "@reboot"

// splitSpec cuts text into five fields, or one macro, and the rest. Of a macro
// that it refuses it still returns the name.
func splitSpec(text string) (spec, rest, why string) {
	if strings.HasPrefix(text, "@") {
		macro, rest := cutField(text)
		switch macro {
		case "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually":
			return macro, rest, ""
		case reboot:
			return macro, "", "@reboot cannot be imported: it has no time, and nothing starts with the machine here"
		}
		return macro, "", "there is no such macro; there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"
	}
	var fields [5]string
	rest = text
	for i := range fields {
		if rest == "" {
			return "", "", "a schedule has five fields before the command"
		}
		if fields[i], rest = cutField(rest); strings.ContainsFunc(fields[i], odd) {
			return "", "", "its fields hold a blank that is neither a space nor a tab, or a control character"
		}
	}
	return strings.Join(fields[:], " "), rest, ""
}

// odd reports whether a character would cut a field in two for others than cron.
func odd(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// cutField returns text up to the first blank, and what follows the blanks.
func cutField(text string) (field, rest string) {
	end := strings.IndexAny(text, blanks)
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimLeft(text[end:], blanks)
}

// cutOptions drops the options that some crons take before a command: they are
// about mail and logs.
func cutOptions(text string) string {
	for {
		option, rest := cutField(text)
		if rest == "" || option != "-n" && option != "-q" {
			return text
		}
		text = rest
	}
}
