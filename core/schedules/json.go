package schedules

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// sameJSON compares two documents by what they mean: the database keeps
// neither blanks nor the order of members, and writes exponents out.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, okX := decode(a)
	y, okY := decode(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

func decode(b json.RawMessage) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return plain(v), err == nil
}

// plain gives equal numbers one form.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		return plainNumber(string(v))
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
	}
	return v
}

// plainNumber returns a number as its digits and an exponent, 12.50 as 125e-1.
// Nothing is computed, so that no exponent is too large.
func plainNumber(text string) json.Number {
	mantissa, exponent, found := strings.Cut(strings.ToLower(text), "e")
	e := 0
	if found {
		var err error
		if e, err = strconv.Atoi(exponent); err != nil {
			return json.Number(text)
		}
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	e -= len(fraction)
	short := strings.TrimRight(digits, "0")
	e += len(digits) - len(short)
	switch {
	case short == "":
		return "0"
	case negative:
		short = "-" + short
	}
	return json.Number(short + "e" + strconv.Itoa(e))
}
