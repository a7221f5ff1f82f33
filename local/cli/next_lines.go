package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// maxCaseBytes bounds a line; the longest spec is far shorter.
const maxCaseBytes = 1 << 20

// nextCase is a line of input. What is left out is UTC, now and 5.
type nextCase struct {
	Spec  *string    `json:"spec"`
	Zone  string     `json:"tz"`
	From  *time.Time `json:"from"`
	Count *int       `json:"count"`
}

// nextAnswer is a line of output.
type nextAnswer struct {
	Next  []string `json:"next,omitempty"`
	Error string   `json:"error,omitempty"`
}

// nextLines answers every line of the input with one line; a case that is wrong
// does not end it.
func (a *app) nextLines(ctx context.Context) error {
	in := bufio.NewReaderSize(a.In, maxCaseBytes)
	out := bufio.NewWriter(a.Out)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	now := a.Clock.Now()
	for n := 1; ctx.Err() == nil; n++ {
		if in.Buffered() == 0 { // whoever writes may be waiting for its answers
			if err := out.Flush(); err != nil {
				return err
			}
		}
		line, tooLong, err := readCase(in)
		if len(bytes.TrimSpace(line)) > 0 || tooLong {
			if err := encoder.Encode(answerLine(line, tooLong, now)); err != nil {
				return err
			}
		}
		if err != nil {
			flushed := out.Flush() // what was answered is not lost
			if errors.Is(err, io.EOF) {
				return flushed
			}
			return fmt.Errorf("read line %d: %w", n, errors.Join(err, flushed))
		}
	}
	return errors.Join(context.Cause(ctx), out.Flush())
}

// readCase returns the next line, which holds until the next call. Of a line that
// is too long it returns nothing and drops the rest.
func readCase(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	line, err = in.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		tooLong = true
		line, err = in.ReadSlice('\n')
	}
	if tooLong {
		line = nil
	}
	return line, tooLong, err
}

func answerLine(line []byte, tooLong bool, now time.Time) nextAnswer {
	if tooLong {
		return nextAnswer{Error: fmt.Sprintf("the line is longer than %d bytes", maxCaseBytes)}
	}
	next, err := answerCase(line, now)
	if err != nil {
		return nextAnswer{Error: err.Error()}
	}
	return nextAnswer{Next: next}
}

// answerCase returns the slots of one case, at least one.
func answerCase(line []byte, now time.Time) ([]string, error) {
	var c nextCase
	// The package ignores the case of keys and takes unknown ones; a program that
	// misspells one wants to know.
	var keys map[string]json.RawMessage
	if err := cmp.Or(json.Unmarshal(line, &keys), json.Unmarshal(line, &c)); err != nil || keys == nil {
		return nil, errors.New(`the line is not an object such as {"spec": "30 2 * * *", "tz": "Europe/Berlin", "from": "2026-03-28T00:00:00Z", "count": 5}`)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains([]string{"spec", "tz", "from", "count"}, key) {
			return nil, errors.New("the line has a key that is not spec, tz, from or count")
		}
	}
	count, from := defaultSlots, now
	if c.Count != nil {
		count = *c.Count
	}
	if c.From != nil {
		from = *c.From
	}
	switch {
	case c.Spec == nil:
		return nil, core.Invalid("spec", "is missing")
	case count < 1 || count > maxSlots:
		return nil, core.Invalid("count", "must be from 1 to %d", maxSlots)
	}
	parsed, err := spec.Parse(&core.Schedule{Spec: *c.Spec, TimeZone: c.Zone}, from)
	if err != nil {
		return nil, err
	}
	next := make([]string, 0, count)
	for at := parsed.Next(from); !at.IsZero() && at.Before(core.Forever) && len(next) < count; at = parsed.Next(at) {
		next = append(next, at.UTC().Format(time.RFC3339))
	}
	if len(next) == 0 {
		return nil, errNoSlot
	}
	return next, nil
}
