package cron

import (
	"fmt"
	"strings"
)

// special reads the elements that are no plain set of numbers: the hash token
// in any field, L, W and # in the day fields. It reports whether t is one.
func (p fieldParser) special(t token) (set uint64, ok bool, err error) {
	upper := strings.ToUpper(t.text)
	if upper == "H" || strings.HasPrefix(upper, "H/") || strings.HasPrefix(upper, "H(") {
		set, err = p.hashed(t)
		return set, true, err
	}
	switch p.index {
	case dateField:
		if strings.ContainsAny(upper, "LW") {
			return 0, true, p.specialDate(t, upper)
		}
	case weekdayField:
		if day, n, found := t.cut("#"); found {
			return 0, true, p.nthWeekday(t, day, n)
		}
		if strings.HasSuffix(upper, "L") {
			return 0, true, p.lastWeekday(t)
		}
	}
	return 0, false, nil
}

// specialDate reads L, L-n, nW and LW.
func (p fieldParser) specialDate(t token, upper string) error {
	switch {
	case upper == "L":
		p.days.fromLast |= 1
		return nil
	case upper == "LW":
		p.days.lastWeekday = true
		return nil
	case strings.HasPrefix(upper, "L-"):
		if n, ok := number(upper[2:]); ok && n >= 1 && n <= 30 {
			p.days.fromLast |= 1 << n
			return nil
		}
		return refuse(p.name, t, "not a number of days before the last", "use L-1 to L-30, or L for the last day")
	case strings.HasSuffix(upper, "W"):
		if n, ok := number(upper[:len(upper)-1]); ok && n >= 1 && n <= 31 {
			p.days.nearest |= 1 << n
			return nil
		}
		return refuse(p.name, t, "not a day for W", "use 1W to 31W, or LW for the last weekday")
	}
	return refuse(p.name, t, "not a day of a month", "use L, L-3, LW or 15W alone or in a list, without range or step")
}

// nthWeekday reads d#n.
func (p fieldParser) nthWeekday(t, day, n token) error {
	d, err := p.value(day, t)
	if err != nil {
		return err
	}
	k, ok := number(n.text)
	if !ok || k < 1 || k > 5 {
		return refuse(p.name, t, "not the first to fifth of its kind", fmt.Sprintf("use %s#1 to %s#5", day.text, day.text))
	}
	p.days.nth |= 1 << (d%7*5 + k - 1)
	return nil
}

// lastWeekday reads dL.
func (p fieldParser) lastWeekday(t token) error {
	day := token{t.text[:len(t.text)-1], t.at}
	if day.text == "" {
		return refuse(p.name, t, "the last of which day?", "write 5L for the last Friday; L alone goes into the day of month")
	}
	d, err := p.value(day, t)
	if err != nil {
		return err
	}
	p.days.lastOf |= 1 << (d % 7)
	return nil
}

// hashed reads H, H(a-b), H/n and H(a-b)/n. A step longer than the range is cut
// to it, so that some value is always left.
func (p fieldParser) hashed(t token) (uint64, error) {
	body, stepToken, stepped := t.cut("/")
	a, b := p.min, p.top
	if p.index == dateField {
		b = 28
	}
	if len(body.text) > 1 {
		if !strings.HasSuffix(body.text, ")") {
			return 0, refuse(p.name, t, "the bracket of H does not close", "write H(0-29), without commas")
		}
		inner := token{body.text[2 : len(body.text)-1], body.at + 2}
		low, high, ranged := inner.cut("-")
		if !ranged {
			return 0, refuse(p.name, t, "no range in the brackets of H", fmt.Sprintf("write H(%d-%d)", a, b))
		}
		var err error
		if a, b, err = p.rangeOf(low, high, inner); err != nil {
			return 0, err
		}
	}
	*p.salted = true
	h := mix(p.salt, p.index)
	if !stepped {
		return 1 << (a + int(h%uint64(b-a+1))), nil
	}
	step, err := p.step(stepToken, t)
	if err != nil {
		return 0, err
	}
	step = min(step, b-a+1)
	return sequence(a+int(h%uint64(step)), b, step), nil
}

// mix hashes a salt for one field, so that the fields of a schedule do not move
// together. It is the finalizer of SplitMix64; changing it moves every schedule
// that uses H.
func mix(salt uint64, index int) uint64 {
	z := salt + uint64(index+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
