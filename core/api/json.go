package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fencepost/fencepost/core"
)

// maxBodyBytes bounds a request's body, payload included.
const maxBodyBytes = core.MaxPayloadBytes

// maxDepth bounds the nesting of a payload. PostgreSQL's own bound depends on
// its stack, and the answer would not say what was wrong.
const maxDepth = 64

// maxBodyDepth bounds the nesting of a body, so that the answer does not depend on
// the bound of the decoder, which says no more than that it is no JSON.
const maxBodyDepth = 1000

// checkSyntax refuses a body that is not one JSON value in UTF-8. The answer
// says where it goes wrong, not what stands there.
func checkSyntax(body []byte) error {
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 {
			return malformed("the body is not valid UTF-8", i, body)
		}
		i += size
	}
	if at := tooDeep(body); at >= 0 {
		return malformed(fmt.Sprintf("the body is nested deeper than %d levels", maxBodyDepth), at, body)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	var value json.RawMessage
	err := decoder.Decode(&value)
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return newProblem(http.StatusBadRequest, string(core.CodeInvalid), "the body is empty; send a JSON object")
	case errors.As(err, &syntax):
		return malformed("the body is not JSON", int(syntax.Offset)-1, body)
	case err != nil:
		return malformed("the body ends before its JSON does", len(body), body)
	}
	end := int(decoder.InputOffset())
	if rest := bytes.TrimLeft(body[end:], " \t\r\n"); len(rest) > 0 {
		return malformed("the body goes on after its JSON", len(body)-len(rest), body)
	}
	return nil
}

// tooDeep returns where a text is nested too deep, or -1.
func tooDeep(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxBodyDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

func malformed(what string, offset int, body []byte) *Problem {
	before := body[:max(0, min(offset, len(body)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return newProblem(http.StatusBadRequest, string(core.CodeInvalid), fmt.Sprintf("%s: line %d, column %d", what, line, column))
}

// members is an object taken apart in its order, with the names that it has
// twice. Its values are copies.
type members struct {
	names  []string
	values []json.RawMessage
	twice  []string
}

// split takes an object apart. It returns false for any other value. The text
// must be valid JSON.
func split(raw json.RawMessage) (members, bool) {
	var m members
	if len(raw) == 0 || raw[0] != '{' {
		return m, false
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		return m, false
	}
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return m, false
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return m, false
		}
		if seen[name] {
			m.twice = append(m.twice, name)
			continue
		}
		seen[name] = true
		m.names, m.values = append(m.names, name), append(m.values, value)
	}
	return m, true
}

// unstorable says why the database could not keep a value as it is, or nothing
// if it can: JSONB has no NUL, no half surrogates, no key twice, and writes
// large exponents out in full.
func unstorable(raw json.RawMessage) string {
	if why := badEscape(raw); why != "" {
		return why
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	i := inspector{decoder: decoder, room: core.MaxPayloadBytes - len(raw)}
	return i.value(0)
}

// badEscape looks for the two kinds of escapes that are JSON but no text.
func badEscape(raw []byte) string {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // a backslash is never the last byte of valid JSON
		if raw[i] != 'u' {
			continue
		}
		r := hexRune(raw[i+1:])
		i += 4
		switch {
		case r == 0:
			return `holds \u0000, which the database cannot store`
		case !utf16.IsSurrogate(r):
		case len(raw) > i+6 && raw[i+1] == '\\' && raw[i+2] == 'u' && utf16.DecodeRune(r, hexRune(raw[i+3:])) != utf8.RuneError:
			i += 6
		default:
			return "holds half of a surrogate pair, which is no character"
		}
	}
	return ""
}

// hexRune reads four hexadecimal digits. Shorter text is -1.
func hexRune(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return -1
	}
	return rune(n)
}

// inspector walks a value token by token.
type inspector struct {
	decoder *json.Decoder
	room    int // bytes by which written-out numbers may still grow
}

func (i *inspector) value(depth int) string {
	token, err := i.decoder.Token()
	if err != nil {
		return "is not JSON" // unreachable: the body was checked before
	}
	switch t := token.(type) {
	case json.Number:
		return i.number(string(t))
	case json.Delim:
		if depth == maxDepth {
			return fmt.Sprintf("is nested deeper than %d levels", maxDepth)
		}
		return i.inside(t == '{', depth)
	}
	return ""
}

func (i *inspector) inside(object bool, depth int) string {
	seen := map[string]bool{}
	for i.decoder.More() {
		if object {
			token, err := i.decoder.Token()
			name, ok := token.(string)
			if err != nil || !ok || seen[name] {
				return "has an object with a key twice"
			}
			seen[name] = true
		}
		if why := i.value(depth + 1); why != "" {
			return why
		}
	}
	if _, err := i.decoder.Token(); err != nil { // the closing bracket
		return "is not JSON"
	}
	return ""
}

// number bounds what the database makes of a number: it keeps 1e9 as ten digits.
func (i *inspector) number(text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	n, err := strconv.Atoi(cmp.Or(exponent, "0"))
	if n < 0 {
		n = -n
	}
	if err != nil || n > maxExponent || len(mantissa) > maxExponent {
		return fmt.Sprintf("holds a number with more than %d digits", maxExponent)
	}
	if i.room -= n; i.room < 0 {
		return "is larger than 256 KiB when its numbers are written out"
	}
	return ""
}

// maxExponent is that of a double.
const maxExponent = 308
