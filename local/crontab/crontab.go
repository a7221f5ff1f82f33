// Package crontab reads the crontabs that people already have, and exists so
// that moving them is one command which says, line by line, what it took and
// what it did not.
package crontab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fencepost/fencepost/core"
)

// The bounds of a file. Crontabs are written by hand; these are far above.
const (
	MaxLines     = 10_000
	MaxLineBytes = 16 << 10
)

// Line is a line of the file and what became of it: an entry, or a reason why
// not, or nothing to do. Exactly one of the last three fields is set.
type Line struct {
	// Number counts from 1.
	Number int
	// Text is the line as it stands in the file, without its end.
	Text string
	// Entry is what the line asks for; nil if it was not taken.
	Entry *Entry
	// Refused says why the line was not taken, for the reader of a report.
	Refused string
	// Ignorable marks comments and empty lines.
	Ignorable bool
}

// Entry is one scheduled command.
type Entry struct {
	// Spec is the five fields with single blanks between them, or the macro.
	Spec string
	// Command is the rest of the line, as the shell gets it: \% became %.
	Command string
}

// Parse reads a user's crontab, five fields and a command a line, and returns
// every line of it in order. check judges a spec; its error becomes the reason.
// Parse itself fails only if r does, or beyond MaxLines or MaxLineBytes; then
// it returns no line, so that no file is taken in part.
func Parse(r io.Reader, check func(spec string) error) ([]Line, error) {
	var lines []Line
	zone := 0 // number of the last line that sets a time zone
	s := bufio.NewScanner(r)
	s.Buffer(nil, MaxLineBytes+len("\r\n"))
	for s.Scan() {
		if len(lines) == MaxLines {
			return nil, core.Invalid("", "has more than %d lines", MaxLines)
		}
		if len(s.Bytes()) > MaxLineBytes {
			return nil, tooLong(len(lines) + 1)
		}
		line := Line{Number: len(lines) + 1, Text: s.Text()}
		if name, ok := variable(line.Text); ok && isZone(name) {
			zone = line.Number
		}
		line.read(zone, check)
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

// read fills in what becomes of the line. zone is the number of the line above
// that sets a time zone, zero if there is none.
func (l *Line) read(zone int, check func(spec string) error) {
	text := strings.TrimLeft(l.Text, blanks)
	switch name, isVariable := variable(text); {
	case !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		l.Refused = "it is not UTF-8 text"
	case text == "" || text[0] == '#':
		l.Ignorable = true
	case isVariable && isZone(name):
		l.Refused = "time zones are not supported yet; the entries below it are left out"
	case isVariable:
		l.Refused = "not applied: commands run without this variable"
	default:
		l.Entry, l.Refused = readEntry(text, check)
		if l.Entry != nil && zone != 0 {
			l.Entry, l.Refused = nil, fmt.Sprintf("the time zone of line %d is not supported yet", zone)
		}
	}
}

const blanks = " \t"

// readEntry returns an entry, or why text is none.
func readEntry(text string, check func(spec string) error) (*Entry, string) {
	spec, command, why := splitSpec(text)
	if why != "" {
		return nil, why
	}
	if command == "" {
		return nil, "there is no command; it comes after five fields or one macro"
	}
	if err := check(spec); err != nil {
		return nil, err.Error()
	}
	command, ok := unescape(command)
	if !ok {
		return nil, `the command has a % that ends it and begins its input, which is not supported yet; write \% for the character itself`
	}
	return &Entry{Spec: spec, Command: command}, ""
}

// splitSpec cuts text into five fields, or one macro, and the rest.
func splitSpec(text string) (spec, command, why string) {
	if text[0] == '@' {
		macro, rest := cutField(text)
		switch macro {
		case "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually":
			return macro, rest, ""
		case "@reboot":
			return "", "", "@reboot has no time; nothing starts with the machine here"
		}
		return "", "", "there is no such macro; there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"
	}
	var fields [5]string
	rest := text
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

// unescape makes \% to % as cron does, and reports false if a % is not escaped.
// A backslash escapes the character after it, but only \% loses it.
func unescape(command string) (string, bool) {
	var b strings.Builder
	escaped := false
	for i := range len(command) {
		c := command[i]
		switch {
		case escaped && c != '%':
			b.WriteByte('\\')
		case c == '%' && !escaped:
			return "", false
		}
		if escaped = c == '\\' && !escaped; !escaped {
			b.WriteByte(c)
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	return b.String(), true
}

// variable returns the name that a line such as NAME = value sets. As for cron,
// the name is one word without an equals sign, or quoted.
func variable(text string) (name string, ok bool) {
	text = strings.TrimLeft(text, blanks)
	if text == "" || text[0] == '#' || text[0] == '=' {
		return "", false
	}
	var rest string
	if quote := text[0]; quote == '"' || quote == '\'' {
		if name, rest, ok = strings.Cut(text[1:], string(quote)); !ok {
			return "", false
		}
	} else {
		end := strings.IndexAny(text, blanks+"=")
		if end < 0 {
			return "", false
		}
		name, rest = text[:end], text[end:]
	}
	return name, strings.HasPrefix(strings.TrimLeft(rest, blanks), "=")
}

func isZone(name string) bool { return name == "CRON_TZ" || name == "TZ" }
