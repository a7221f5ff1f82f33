package crontab

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// variable returns what a line such as NAME = value sets. As for cron, the name
// is one word without an equals sign, or quoted, and quotes keep the blanks of a
// value; nothing in it is expanded.
func variable(text string) (name, value string, ok bool) {
	text = strings.TrimLeft(text, blanks)
	if text == "" || text[0] == '#' || text[0] == '=' {
		return "", "", false
	}
	var rest string
	if quote := text[0]; quote == '"' || quote == '\'' {
		if name, rest, ok = strings.Cut(text[1:], string(quote)); !ok {
			return "", "", false
		}
	} else {
		end := strings.IndexAny(text, blanks+"=")
		if end < 0 {
			return "", "", false
		}
		name, rest = text[:end], text[end:]
	}
	value, ok = strings.CutPrefix(strings.TrimLeft(rest, blanks), "=")
	if value = strings.Trim(value, blanks+"\r"); len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		value = value[1 : len(value)-1]
	}
	return name, value, ok
}

var (
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	userName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,30}\$?$`)
)

func isUser(name string) bool { return userName.MatchString(name) }

// set carries out a line that sets a variable for the entries below it.
func (p *parser) set(l *Line, name, value string) {
	switch name {
	case "CRON_TZ", "TZ":
		p.setZone(l, name, value)
		return
	case "SHELL":
		p.setShell(l, value)
		return
	case "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING":
		l.Ignored = name + ": nothing is mailed; each run keeps the end of its output"
		return
	case "RANDOM_DELAY", "START_HOURS_RANGE":
		l.Ignored = name + ": times are exact; give the schedule a window to spread its starts"
		return
	case "LOGNAME", "USER":
		l.Ignored = name + ": no crontab can set it"
		return
	case "HOME":
		if !path.IsAbs(value) {
			l.Refused = "HOME must be an absolute path; entries below keep the one before"
			return
		}
		p.dir = value
	}
	switch {
	case !envName.MatchString(name):
		l.Refused = "the name of a variable has up to 64 letters, digits and underscores; entries below run without it"
	case strings.HasPrefix(name, "FENCEPOST_"):
		l.Refused = "variables that begin with FENCEPOST_ are set by Fencepost; entries below run without it"
	default:
		p.env[name] = value
		l.Setting = name + " for the entries below"
	}
}

// setZone sets the time zone of the entries below. An empty one is the default
// again. A wrong one refuses them all: at another time they would be wrong.
func (p *parser) setZone(l *Line, name, value string) {
	zone := value
	if zone == "" {
		zone = p.Zone
	}
	if err := p.Check("", zone); err != nil {
		l.Refused = err.Error()
		p.refusedZone = "the time zone above it was refused: " + name + " in line " + strconv.Itoa(l.Number)
		return
	}
	p.zone, p.refusedZone = zone, ""
	if name == "TZ" {
		p.env[name] = value // commands see it too
	}
	if zone == "" {
		zone = "UTC"
	}
	l.Setting = "time zone " + zone + " for the entries below"
}

func (p *parser) setShell(l *Line, value string) {
	if !path.IsAbs(value) {
		l.Refused = "SHELL must be an absolute path"
		p.refusedShell = "the SHELL above it was refused: line " + strconv.Itoa(l.Number)
		return
	}
	p.shell, p.refusedShell = value, ""
	l.Setting = "SHELL for the entries below"
}
