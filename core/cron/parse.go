package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxSpecBytes is far above any spec a person writes.
const maxSpecBytes = 256

// whole is the field that errors name when no single one is to blame.
const whole = "expression"

// token is a piece of the spec and where it begins, counted from 0.
type token struct {
	text string
	at   int
}

// from returns the part of t that begins at byte i.
func (t token) from(i int) token { return token{t.text[i:], t.at + i} }

// cut splits t around the first sep. The second part is empty, at the end of t,
// if there is no sep.
func (t token) cut(sep string) (before, after token, found bool) {
	i := strings.Index(t.text, sep)
	if i < 0 {
		return t, t.from(len(t.text)), false
	}
	return token{t.text[:i], t.at}, t.from(i + len(sep)), true
}

// Parse reads a spec in the syntax of the package documentation. A refusal is
// a [*ParseError]. A spec that no date can match is refused; one whose every
// slot a [GapSkip] drops is not, and its Next is the zero time.
func Parse(spec string, o Options) (*Expression, error) {
	if o.Location == nil {
		o.Location = time.UTC
	}
	tokens, err := split(spec)
	if err != nil {
		return nil, err
	}
	e := &Expression{spec: fold(tokens), loc: o.Location, grain: 60}
	if zone, ok := zonePrefix(tokens[0]); ok {
		if err := checkZone(zone, o.Location); err != nil {
			return nil, err
		}
		tokens = tokens[1:]
	}
	if len(tokens) > 0 && strings.EqualFold(tokens[0].text, "@every") {
		return e.parseEvery(tokens)
	}
	tokens, err = expand(spec, tokens)
	if err != nil {
		return nil, err
	}
	if err := e.parseFields(tokens, o); err != nil {
		return nil, err
	}
	return e, nil
}

// split returns the words of a spec, at least one.
func split(spec string) ([]token, error) {
	if len(spec) > maxSpecBytes {
		return nil, refuse(whole, token{spec, 0}, fmt.Sprintf("%d bytes are too long", len(spec)),
			fmt.Sprintf("write at most %d characters", maxSpecBytes))
	}
	var tokens []token
	for i := 0; i < len(spec); {
		n := strings.IndexAny(spec[i:], " \t")
		if n < 0 {
			n = len(spec) - i
		}
		if n > 0 {
			tokens = append(tokens, token{spec[i : i+n], i})
		}
		i += n + 1
	}
	if len(tokens) == 0 {
		return nil, refuse(whole, token{spec, 0}, "nothing to read", fiveFields)
	}
	for i, t := range tokens {
		for j, r := range t.text {
			if r <= ' ' || r > '~' {
				return nil, refuse(fieldName(i, len(tokens)), token{string(r), t.at + j},
					fmt.Sprintf("character %U does not belong here", r), "use letters, digits and * , - / ? # ( ) only, with blanks between fields")
			}
		}
	}
	return tokens, nil
}

func fold(tokens []token) string {
	words := make([]string, len(tokens))
	for i, t := range tokens {
		words[i] = t.text
	}
	return strings.Join(words, " ")
}

// zonePrefix returns the zone name of a CRON_TZ= or TZ= word.
func zonePrefix(t token) (token, bool) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if strings.HasPrefix(t.text, prefix) {
			return t.from(len(prefix)), true
		}
	}
	return token{}, false
}

func checkZone(zone token, want *time.Location) error {
	loc, err := LoadLocation(zone.text)
	if err != nil {
		var unknown *ZoneError
		if errors.As(err, &unknown) {
			return refuse("zone", zone, "not a name of the IANA database", unknown.Hint)
		}
		return fmt.Errorf("parse zone prefix: %w", err)
	}
	if LinkTarget(loc.String()) != LinkTarget(want.String()) {
		return refuse("zone", zone, "differs from the schedule's zone "+want.String(),
			"drop the prefix, or set the schedule's zone to "+loc.String())
	}
	return nil
}

// SplitZone separates a CRON_TZ= or TZ= prefix from a spec, for those who take
// the zone from there. Without a prefix, found is false and rest is spec.
func SplitZone(spec string) (zone, rest string, found bool) {
	word := strings.TrimLeft(spec, " \t")
	end := strings.IndexAny(word, " \t")
	if end < 0 {
		end = len(word)
	}
	t, ok := zonePrefix(token{word[:end], 0})
	if !ok {
		return "", spec, false
	}
	return t.text, strings.TrimLeft(word[end:], " \t"), true
}

const (
	fiveFields = "write minute, hour, day of month, month and day of week, such as 30 2 * * *"
	macroNames = "use @yearly, @monthly, @weekly, @daily, @hourly or @every with a duration"
)

// expand replaces a macro by its fields and adds the seconds field. The tokens
// of a macro all point to it.
func expand(spec string, tokens []token) ([]token, error) {
	if len(tokens) > 0 && tokens[0].text[0] == '@' {
		fields, ok := macro(strings.ToLower(tokens[0].text))
		if !ok {
			return nil, refuse(whole, tokens[0], "unknown macro", macroNames)
		}
		if len(tokens) > 1 {
			return nil, refuse(whole, tokens[1], "text after a macro", "drop it: a macro stands alone")
		}
		at := tokens[0].at
		tokens = tokens[:0:0]
		for _, f := range strings.Fields(fields) {
			tokens = append(tokens, token{f, at})
		}
	}
	switch len(tokens) {
	case 5:
		return append([]token{{"0", tokens[0].at}}, tokens...), nil
	case 6:
		return tokens, nil
	}
	hint := fiveFields
	if len(tokens) > 6 {
		hint = "write five fields, or six with seconds first; there is no field for years"
	}
	return nil, refuse(whole, token{spec, 0}, fmt.Sprintf("%d fields instead of five or six", len(tokens)), hint)
}

func macro(name string) (string, bool) {
	switch name {
	case "@yearly", "@annually":
		return "0 0 1 1 *", true
	case "@monthly":
		return "0 0 1 * *", true
	case "@weekly":
		return "0 0 * * 0", true
	case "@daily", "@midnight":
		return "0 0 * * *", true
	case "@hourly":
		return "0 * * * *", true
	}
	return "", false
}

// parseEvery reads a duration and, as robfig does, cuts it to whole seconds,
// one at least.
func (e *Expression) parseEvery(tokens []token) (*Expression, error) {
	if len(tokens) != 2 {
		return nil, refuse(whole, tokens[0], "@every takes one duration", "write @every 90s")
	}
	d, err := time.ParseDuration(tokens[1].text)
	if err != nil || d <= 0 {
		return nil, refuse(whole, tokens[1], "not a duration above zero", "write @every 90s or @every 1h30m")
	}
	e.every = max(d.Truncate(time.Second), time.Second)
	e.gap, e.overlap, e.why = GapSkip, OverlapBoth, "elapsed time: clock changes do not touch it"
	return e, nil
}
