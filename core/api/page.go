package api

import (
	"encoding/base64"
	"strconv"
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
const cursorVersion = 1

// formatCursor encodes where a list of schedules goes on.
func formatCursor(last uuid.UUID) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{cursorVersion}, last[:]...))
}

// parseCursor accepts exactly what formatCursor wrote. The empty text is the
// first page.
func parseCursor(text string) (uuid.UUID, error) {
	if text == "" {
		return uuid.UUID{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 17 || b[0] != cursorVersion {
		return uuid.UUID{}, core.Invalid("cursor", "is not a cursor of this list; take next_cursor as it is, or leave it out to begin anew")
	}
	last := uuid.UUID(b[1:])
	if formatCursor(last) != text {
		return uuid.UUID{}, core.Invalid("cursor", "is not a cursor of this list; take next_cursor as it is, or leave it out to begin anew")
	}
	return last, nil
}

// parseBefore reads the exclusive upper bound of a list of runs. The empty text
// is the first page. The database has microseconds: a finer bound is rounded up,
// so that it stays exclusive.
func parseBefore(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, ok := parseTime(text)
	if !ok {
		return time.Time{}, core.Invalid("before", `must be a time such as "2027-01-05T09:00:00Z"`)
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

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// parseID reads a schedule's id in its one canonical form; any other text names
// no schedule.
func parseID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return uuid.UUID{}, core.ErrNotFound
	}
	return id, nil
}

// page makes a list of items that were asked for with one more than the limit:
// that one tells whether there is a next page.
func page[T, S any](found []T, limit int, show func(T) S, cursor func(T) string) List[S] {
	list := List[S]{Items: make([]S, 0, min(len(found), limit))}
	for i := range found[:min(len(found), limit)] {
		list.Items = append(list.Items, show(found[i]))
	}
	if len(found) > limit {
		next := cursor(found[limit-1])
		list.NextCursor = &next
	}
	return list
}
