package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// field describes one of the six places of a spec.
type field struct {
	name     string
	min, max int
	top      int    // the last value of *, a/n and H
	names    string // three letters each, for min, min+1 and so on
}

// The places, in the order in which they are written.
const (
	secondField = iota
	minuteField
	hourField
	dateField
	monthField
	weekdayField
)

func fieldAt(i int) field {
	switch i {
	case secondField:
		return field{name: "second", max: 59, top: 59}
	case minuteField:
		return field{name: "minute", max: 59, top: 59}
	case hourField:
		return field{name: "hour", max: 23, top: 23}
	case dateField:
		return field{name: "day of month", min: 1, max: 31, top: 31}
	case monthField:
		return field{name: "month", min: 1, max: 12, top: 12, names: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"}
	}
	return field{name: "day of week", max: 7, top: 6, names: "SUNMONTUEWEDTHUFRISAT"}
}

// fieldName returns the name of word i of n.
func fieldName(i, n int) string {
	if n == 5 {
		i++
	}
	if n != 5 && n != 6 {
		return whole
	}
	return fieldAt(i).name
}

// starred reports whether a field begins with a star or a question mark.
func starred(t token) bool { return t.text[0] == '*' || t.text[0] == '?' }

// parseFields fills the rules of e from six tokens.
func (e *Expression) parseFields(tokens []token, o Options) error {
	var sets [6]uint64
	for i, t := range tokens {
		p := fieldParser{field: fieldAt(i), index: i, salt: o.Salt, salted: &e.salted, days: &e.days}
		set, err := p.list(t)
		if err != nil {
			return err
		}
		sets[i] = set
	}
	e.clock = clockRule{seconds: sets[secondField], minutes: sets[minuteField], hours: sets[hourField]}
	e.days.dates = uint32(sets[dateField])
	e.days.weekdays = uint32(sets[weekdayField]&0x7f | sets[weekdayField]>>7)
	e.days.both = starred(tokens[dateField]) || starred(tokens[weekdayField])
	e.months = uint16(sets[monthField])
	if tokens[secondField].at != tokens[minuteField].at {
		e.grain = 1
	}
	if !e.possible() {
		return refuse("day of month", tokens[dateField], "no year has such a day in these months", "choose a day that the months have")
	}
	wildcard := starred(tokens[minuteField]) || starred(tokens[hourField])
	e.gap, e.overlap, e.why = resolve(o.Gap, o.Overlap, wildcard)
	return nil
}

// fieldParser reads one field. What a set of numbers cannot say about days goes
// to days.
type fieldParser struct {
	field
	index  int
	salt   uint64
	salted *bool
	days   *dayRule
}

// list reads elements separated by commas. Empty ones are passed over.
func (p fieldParser) list(t token) (uint64, error) {
	var set uint64
	empty := true
	for rest, more := t, true; more; {
		var element token
		element, rest, more = rest.cut(",")
		if element.text == "" {
			continue
		}
		empty = false
		s, err := p.element(element)
		if err != nil {
			return 0, err
		}
		set |= s
	}
	if empty {
		return 0, refuse(p.name, t, "no value", fmt.Sprintf("write * or values from %d to %d", p.min, p.max))
	}
	return set, nil
}

// element reads a star, a value or a range, each with an optional step, or one
// of the special tokens.
func (p fieldParser) element(t token) (uint64, error) {
	if set, ok, err := p.special(t); ok {
		return set, err
	}
	body, stepToken, stepped := t.cut("/")
	step := 1
	if stepped {
		var err error
		if step, err = p.step(stepToken, t); err != nil {
			return 0, err
		}
	}
	if body.text == "*" || body.text == "?" {
		return sequence(p.min, p.top, step), nil
	}
	low, high, ranged := body.cut("-")
	if ranged {
		a, b, err := p.rangeOf(low, high, body)
		return sequence(a, b, step), err
	}
	a, err := p.value(low, t)
	if err != nil {
		return 0, err
	}
	if stepped {
		return sequence(a, max(a, p.top), step), nil
	}
	return 1 << a, nil
}

// step reads the number behind a slash of element.
func (p fieldParser) step(t, element token) (int, error) {
	n, ok := number(t.text)
	if !ok || n == 0 {
		return 0, refuse(p.name, element, "the step is not a number above zero", "write a step such as */15, or drop it")
	}
	return n, nil
}

// rangeOf reads the two ends of a range. SUN at the upper end is 7, unless the
// range begins with Sunday.
func (p fieldParser) rangeOf(low, high, body token) (a, b int, err error) {
	if a, err = p.value(low, body); err != nil {
		return 0, 0, err
	}
	if b, err = p.value(high, body); err != nil {
		return 0, 0, err
	}
	if b == 0 && a > 0 && strings.EqualFold(high.text, "SUN") {
		b = 7
	}
	if a > b {
		return 0, 0, refuse(p.name, body, "the range ends before it begins",
			fmt.Sprintf("split it: %s,%s", span(a, max(a, p.top)), span(p.min, b)))
	}
	return a, b, nil
}

// span spells a range.
func span(a, b int) string {
	if a == b {
		return strconv.Itoa(a)
	}
	return fmt.Sprintf("%d-%d", a, b)
}

// value reads a number or a name of the field.
func (p fieldParser) value(t, element token) (int, error) {
	if n, ok := number(t.text); ok {
		if n < p.min || n > p.max {
			return 0, refuse(p.name, t, "out of range", fmt.Sprintf("use %d to %d", p.min, p.max))
		}
		return n, nil
	}
	if len(t.text) == 3 {
		if i := strings.Index(p.names, strings.ToUpper(t.text)); i >= 0 && i%3 == 0 {
			return p.min + i/3, nil
		}
	}
	if t.text == "" {
		t = element
	}
	return 0, refuse(p.name, t, "not a value of this field", p.valueHint(t.text))
}

func (p fieldParser) valueHint(text string) string {
	if p.names == "" {
		return fmt.Sprintf("use numbers from %d to %d", p.min, p.max)
	}
	if len(text) > 3 {
		if i := strings.Index(p.names, strings.ToUpper(text[:3])); i >= 0 && i%3 == 0 {
			return "names have three letters: " + p.names[i:i+3]
		}
	}
	return fmt.Sprintf("use %d to %d or names such as %s", p.min, p.max, p.names[:3])
}

// maxNumber is above every bound of every field; larger numbers mean the same.
const maxNumber = 1000

// number reads decimal digits, after a plus sign if there is one.
func number(s string) (int, bool) {
	s = strings.TrimPrefix(s, "+")
	if s == "" {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), maxNumber)
	}
	return n, true
}

// sequence returns the set of a, a+step and so on up to b.
func sequence(a, b, step int) uint64 {
	var set uint64
	for ; a <= b; a += step {
		set |= 1 << a
	}
	return set
}
