package crontab

import (
	"cmp"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// spaces are what cron takes for blanks in a line that sets a variable.
const spaces = blanks + "\r\v\f"

// assignment is what a line such as NAME = value sets.
type assignment struct {
	name, value string
	// wrong says what is wrong with the value; empty if nothing is.
	wrong string
}

// readVariable reads a line that sets a variable, and reports whether it is one.
// As for cron, the name is one word without an equals sign, or quoted; a quoted
// value keeps its blanks and has nothing after it; nothing in it is expanded.
func readVariable(text string) (assignment, bool) {
	var a assignment
	var rest string
	if text == "" || text[0] == '#' || text[0] == '=' {
		return a, false
	} else if quote := text[0]; quote == '"' || quote == '\'' {
		end := strings.IndexByte(text[1:], quote)
		if end < 0 || strings.Contains(text[1:1+end], "=") {
			return a, false
		}
		a.name, rest = text[1:1+end], text[end+2:]
	} else {
		end := strings.IndexAny(text, spaces+"=")
		if end < 0 {
			return a, false
		}
		a.name, rest = text[:end], text[end:]
	}
	value, ok := strings.CutPrefix(strings.TrimLeft(rest, spaces), "=")
	a.setValue(strings.Trim(value, spaces))
	return a, ok
}

func (a *assignment) setValue(text string) {
	if a.value = text; text == "" || text[0] != '"' && text[0] != '\'' {
		return
	}
	switch end := strings.IndexByte(text[1:], text[0]); {
	case end < 0:
		a.wrong = "the quotes of its value do not end"
	case end+2 < len(text):
		a.wrong = "there is text after the quotes of its value"
	default:
		a.value = text[1 : 1+end]
	}
}

var (
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	userName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,30}\$?$`)
)

func isUser(name string) bool { return userName.MatchString(name) }

// set carries out a line that sets a variable for the entries below it.
func (p *parser) set(l *Line, a assignment) {
	switch a.name {
	case "CRON_TZ":
		p.setCronTZ(l, a)
	case "TZ":
		p.setTZ(l, a)
	case "SHELL":
		p.setShell(l, a)
	case "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING":
		l.Ignored = a.name + ": nothing is mailed; each run keeps the end of its output"
	case "RANDOM_DELAY", "START_HOURS_RANGE":
		l.Ignored = a.name + ": times are exact; a schedule's window spreads its starts"
	case "LOGNAME", "USER":
		l.Ignored = a.name + ": no crontab can set it"
	default:
		p.setOther(l, a)
	}
}

func (p *parser) setOther(l *Line, a assignment) {
	switch {
	case a.wrong != "":
		l.Refused = a.wrong + "; entries below run without it"
	case a.name == "HOME" && !path.IsAbs(a.value):
		l.Refused = "HOME must be an absolute path; entries below keep the one before"
	case !envName.MatchString(a.name):
		l.Refused = "the name of a variable has up to 64 letters, digits and underscores; entries below run without it"
	case strings.HasPrefix(a.name, "FENCEPOST_"):
		l.Refused = "variables that begin with FENCEPOST_ are set by Fencepost; entries below run without it"
	default:
		if a.name == "HOME" {
			p.dir = a.value
		}
		p.env[a.name] = a.value
		l.Setting = a.name + " for the entries below"
	}
}

func (p *parser) setShell(l *Line, a assignment) {
	if a.wrong == "" && !path.IsAbs(a.value) {
		a.wrong = "SHELL must be an absolute path"
	}
	if l.Refused = a.wrong; a.wrong != "" {
		p.refusedShell = "the SHELL above it was refused: line " + strconv.Itoa(l.Number)
		return
	}
	p.shell, p.refusedShell = a.value, ""
	l.Setting = "SHELL for the entries below"
}

// zone is a time zone that a line has set.
type zone struct {
	name string
	line int
	// refused says why no entry can be taken in it: at another time each would
	// be wrong.
	refused string
}

// zone returns the one that entries are in. As in cronie, TZ does not move them
// where CRON_TZ is set.
func (p *parser) zone() zone {
	switch {
	case p.cronTZ != nil:
		return *p.cronTZ
	case p.tz != nil:
		return *p.tz
	}
	return zone{name: p.Zone}
}

// readZone checks the zone that a line sets; nil for an empty one, which unsets
// it.
func (p *parser) readZone(l *Line, a assignment) *zone {
	if a.wrong == "" {
		if a.value == "" {
			return nil
		}
		if err := p.Check("", a.value); err != nil {
			a.wrong = err.Error()
		}
	}
	z := &zone{name: a.value, line: l.Number}
	if l.Refused = a.wrong; a.wrong != "" {
		z.refused = "the time zone above it was refused: " + a.name + " in line " + strconv.Itoa(l.Number)
	}
	return z
}

func (p *parser) setCronTZ(l *Line, a assignment) {
	if p.cronTZ = p.readZone(l, a); l.Refused == "" {
		p.settle(l)
	}
}

// setTZ sets a variable of the commands, and the time zone unless CRON_TZ is set.
func (p *parser) setTZ(l *Line, a assignment) {
	z := p.readZone(l, a)
	byCronTZ := p.cronTZ != nil && p.cronTZ.refused == ""
	switch {
	case byCronTZ && a.wrong != "":
		l.Refused = a.wrong + "; entries below run without it"
		return
	case byCronTZ:
		l.Refused = ""
		l.Setting = "TZ for the entries below; their times stay in the zone of CRON_TZ, line " + strconv.Itoa(p.cronTZ.line)
	case l.Refused == "":
		p.cronTZ = nil // it was refused, and this is the next good one
	}
	if p.tz = z; l.Refused == "" {
		p.env["TZ"] = a.value
	}
	if l.Refused == "" && !byCronTZ {
		p.settle(l)
	}
}

// settle says in which zone the entries below are now.
func (p *parser) settle(l *Line) {
	z := p.zone()
	if z.refused != "" { // a TZ that an unset CRON_TZ has brought back
		l.Setting = "no zone for the entries below: TZ in line " + strconv.Itoa(z.line) + " was refused"
		return
	}
	l.Setting = "time zone " + cmp.Or(z.name, "UTC") + " for the entries below"
}
