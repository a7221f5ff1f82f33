// Package crontab reads the crontabs that people already have, and exists so
// that moving them is one command which says, line by line, what it took and
// what it did not.
package crontab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
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
// does, for a file that is no text, or beyond MaxLines or MaxLineBytes; then it
// returns no line, so that no file is taken in part.
func Parse(r io.Reader, o Options) ([]Line, error) {
	var lines []Line
	p := &parser{Options: o, zone: o.Zone, env: map[string]string{}}
	if err := o.Check("", o.Zone); err != nil {
		p.refusedZone = "the time zone was refused: " + err.Error()
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, MaxLineBytes+len("\r\n"))
	for s.Scan() {
		switch {
		case len(lines) == MaxLines:
			return nil, core.Invalid("", "has more than %d lines; split it", MaxLines)
		case len(s.Bytes()) > MaxLineBytes:
			return nil, tooLong(len(lines) + 1)
		case strings.Contains(s.Text(), "\x00"):
			return nil, core.Invalid("", "line %d holds a NUL byte: this is no text file, and so no crontab", len(lines)+1)
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

// parser is what the lines so far have set for those below.
type parser struct {
	Options
	zone string
	env  map[string]string
	// shell and dir are SHELL and HOME.
	shell, dir string
	// refusedZone and refusedShell say why entries cannot be taken until another
	// line sets a good one.
	refusedZone, refusedShell string
}

const blanks = " \t"

// read fills in what becomes of the line.
func (p *parser) read(l *Line) {
	text := strings.TrimLeft(l.Text, blanks)
	name, value, isVariable := variable(text)
	switch {
	case !utf8.ValidString(text):
		l.Refused = "it is not UTF-8 text"
	case text == "":
		l.Ignored = "blank"
	case text[0] == '#':
		l.Ignored = "comment"
	case isVariable:
		p.set(l, name, value)
	default:
		p.entry(l, text)
	}
}

// entry reads a line that schedules a command.
func (p *parser) entry(l *Line, text string) {
	spec, rest, why := splitSpec(text)
	switch {
	case why != "":
		l.Refused, l.Foreign = why, spec == reboot
		return
	case p.refusedZone != "":
		l.Refused = p.refusedZone
		return
	case p.refusedShell != "":
		l.Refused = p.refusedShell
		return
	}
	e := &Entry{Spec: spec, Zone: p.zone, Env: maps.Clone(p.env), Shell: p.shell, Dir: p.dir}
	if p.System {
		if e.User, rest = cutField(rest); !isUser(e.User) {
			l.Refused = "the sixth field is no user name; without --system there is none"
			return
		}
	}
	if e.Command, e.Stdin = split(rest); strings.TrimSpace(e.Command) == "" {
		l.Refused = "there is no command; it comes after five fields or one macro" + map[bool]string{true: ", and a user"}[p.System]
		return
	}
	if err := p.Check(spec, p.zone); err != nil {
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
	if text[0] == '@' {
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
		fields[i], rest = cutField(rest)
	}
	return strings.Join(fields[:], " "), rest, ""
}

// cutField returns text up to the first blank, and what follows the blanks.
func cutField(text string) (field, rest string) {
	end := strings.IndexAny(text, blanks)
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimLeft(text[end:], blanks)
}

// split cuts a command at its first % that is not escaped, as cron does: what
// follows is its input, whose own % are newlines, and which ends with one. A
// backslash escapes the character after it, but only \% loses it.
func split(text string) (command, stdin string) {
	var b strings.Builder
	escaped, cut := false, -1
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped && c != '%':
			b.WriteByte('\\')
		case c == '%' && !escaped && cut < 0:
			cut = b.Len()
			continue
		case c == '%' && !escaped:
			c = '\n'
		}
		if escaped = c == '\\' && !escaped; !escaped {
			b.WriteByte(c)
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	whole := b.String()
	if cut < 0 {
		return whole, ""
	}
	if command, stdin = whole[:cut], whole[cut:]; stdin != "" && !strings.HasSuffix(stdin, "\n") {
		stdin += "\n"
	}
	return command, stdin
}
