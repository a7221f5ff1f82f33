package cron

import (
	"fmt"
	"strings"
)

// ParseError says which part of a spec was refused and how to repair it, in
// parts, so that an API can put each of them in its own field.
type ParseError struct {
	// Field is second, minute, hour, day of month, month, day of week, zone, or
	// expression for the whole.
	Field string
	// Token is the refused text, cut after 40 bytes.
	Token string
	// Position is the column of Token's first byte in the spec, counted from 1.
	Position int
	// Reason says what is wrong, without its remedy.
	Reason string
	// Hint says what to write instead. It is never empty.
	Hint string
}

// Error puts all parts in one line, for logs and terminals. Control characters
// in the token are escaped.
func (e *ParseError) Error() string {
	return fmt.Sprintf("%s field, column %d, %q: %s; %s", e.Field, e.Position, e.Token, e.Reason, e.Hint)
}

// maxTokenBytes keeps a hostile spec from filling logs through its error.
const maxTokenBytes = 40

func refuse(field string, t token, reason, hint string) error {
	return &ParseError{Field: field, Token: shorten(t.text), Position: t.at + 1, Reason: reason, Hint: hint}
}

// shorten cuts text that goes into an error, between two characters.
func shorten(text string) string {
	if len(text) <= maxTokenBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxTokenBytes], "")
}
