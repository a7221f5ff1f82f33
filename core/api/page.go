package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

func parseLimit(text string) (int, error) {
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, core.Invalid("limit", "must be a whole number from 1 to %d", maxLimit)
	}
	return n, nil
}

// limitParam describes the limit, which huma is given as text: its own error
// would repeat the value.
func limitParam() []*huma.Param {
	low, high := 1.0, float64(maxLimit)
	return []*huma.Param{{
		Name: "limit", In: "query", Description: "Items on a page.",
		Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &low, Maximum: &high, Default: defaultLimit},
	}}
}

// cursorVersion is the first byte of a cursor, so that a later form can be told
// apart.
const cursorVersion = 2

// listing is what a cursor belongs to: which list, of which tenant, through which
// filter. Of another one it would skip items or repeat them.
type listing struct {
	name   string
	tenant uuid.UUID
	filter url.Values
}

// bindBytes is the length of what bind returns.
const bindBytes = 8

// bind returns bytes that change with the listing and the position. They are no
// secret: the tenant of a request comes from its key alone.
func (l listing) bind(position []byte) []byte {
	sum := sha256.Sum256(append([]byte(l.name+"\n"+l.tenant.String()+"\n"+l.filter.Encode()+"\n"), position...))
	return sum[:bindBytes]
}

// format encodes where the listing goes on.
func (l listing) format(position []byte) string {
	return base64.RawURLEncoding.EncodeToString(slices.Concat([]byte{cursorVersion}, l.bind(position), position))
}

// parse returns the position of size bytes that format encoded, nil for the empty
// text, which is the first page.
func (l listing) parse(text string, size int) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 1+bindBytes+size || b[0] != cursorVersion {
		return nil, errCursor()
	}
	bound, position := b[1:1+bindBytes], b[1+bindBytes:]
	if !bytes.Equal(bound, l.bind(position)) {
		return nil, errCursor()
	}
	return position, nil
}

func errCursor() error {
	return core.Invalid("cursor", "is not a cursor of this list with these filters; take next_cursor as it is, or leave it out to begin anew")
}

// slotBytes is the length of what formatSlot returns.
const slotBytes = 8

func formatSlot(t time.Time) []byte { return binary.BigEndian.AppendUint64(nil, uint64(t.UnixMicro())) }

// parseSlot refuses times that no slot can have, and some databases cannot hold:
// who knows how may write a cursor of their own.
func parseSlot(b []byte) (time.Time, error) {
	t := time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC()
	if !t.After(time.Time{}) || t.After(core.Forever) {
		return time.Time{}, errCursor()
	}
	return t, nil
}

// parseBound reads a bound of slots; the empty text is none. The database has
// microseconds: a finer bound is rounded up, so that it keeps its meaning.
func parseBound(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, ok := parseTime(text)
	if !ok {
		return time.Time{}, core.Invalid(field, `must be a time such as "2027-01-05T09:00:00Z"`)
	}
	t = t.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	if t.IsZero() {
		t = t.Add(time.Microsecond) // to the store, zero is no bound; no run is as old
	}
	return t, nil
}

// parseTime reads RFC 3339 strictly, which time.Parse does not.
func parseTime(text string) (time.Time, bool) {
	var t time.Time
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// parseID reads a schedule's id in its one canonical form; any other text names
// no schedule.
func parseID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return uuid.UUID{}, core.ErrNotFound
	}
	return id, nil
}

// list makes a page of items, which goes on at next.
func list[T, S any](found []T, more bool, show func(T) S, next func() string) List[S] {
	l := List[S]{Items: make([]S, 0, len(found))}
	for i := range found {
		l.Items = append(l.Items, show(found[i]))
	}
	if more {
		cursor := next()
		l.NextCursor = &cursor
	}
	return l
}

// states reads a list of states with commas between them.
func states[S ~string](field, text string, known ...S) ([]S, error) {
	if text == "" {
		return nil, nil
	}
	var out []S
	for _, word := range strings.Split(text, ",") {
		s := S(strings.TrimSpace(word))
		if s == failed {
			s = S(core.RunDead)
		}
		if !slices.Contains(known, s) {
			return nil, core.Invalid(field, "must be one or more of %s, with commas between them", joined(known))
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out, nil
}

// failed is another word for dead, which people look for.
const failed = "failed"

func joined[S ~string](words []S) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
