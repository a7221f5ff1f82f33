// Package terminal makes text safe for a person's screen: names, errors and
// outputs may come from anywhere, and a terminal obeys what it is sent.
package terminal

import (
	"strings"
	"unicode"
)

// Printable replaces what would break a line, or command a terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return '\uFFFD'
		}
		return r
	}, text)
}
