package crontab

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	slugWords     = 4 // of the command
	slugWordBytes = 20
	hashBytes     = 6 // two entries of 10,000 meet once in millions of files
)

// Identity is what a name is made of: of two entries with the same one, a counter
// tells them apart.
func (e *Entry) Identity() string {
	return e.Spec + "\n" + cmp.Or(e.Zone, "UTC") + "\n" + e.Command
}

// Name returns the schedule name of an entry: the first words of its command
// and a hash of spec, zone and command, so that importing a file again, or moving
// a line, names the same schedules. counter tells equal entries of one file apart,
// from 1, and only shows from 2 on. A name has lower-case letters, digits and
// dashes, at most 120 bytes of them.
func Name(e *Entry, counter int) string {
	sum := sha256.Sum256([]byte(e.Identity()))
	name := slug(e.Command) + hex.EncodeToString(sum[:hashBytes])
	if counter > 1 {
		name += fmt.Sprintf("-%d", counter)
	}
	return name
}

// slug returns the first words of a command with a dash after each.
func slug(command string) string {
	words := strings.FieldsFunc(strings.ToLower(command), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	var b strings.Builder
	for _, word := range words[:min(len(words), slugWords)] {
		b.WriteString(word[:min(len(word), slugWordBytes)] + "-")
	}
	return b.String()
}

// NamesUser reports whether the command looks as if a user stood before it.
func (e *Entry) NamesUser() bool {
	first, rest, _ := strings.Cut(e.Command, " ")
	return first == "root" && rest != ""
}
