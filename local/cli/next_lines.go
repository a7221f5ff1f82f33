package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	in := bufio.NewScanner(a.In)
	in.Buffer(nil, maxCaseBytes)
	out := bufio.NewWriter(a.Out)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	now := a.Clock.Now()
	n := 0
	for in.Scan() && ctx.Err() == nil {
		n++
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var answer nextAnswer
		next, err := answerCase(in.Bytes(), now)
		if answer.Next = next; err != nil {
			answer.Error = err.Error()
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		err = errors.Join(err, out.Flush()) // what was answered is not lost
		return fmt.Errorf("read line %d: %w", n+1, err)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// answerCase returns the slots of one case, at least one.
func answerCase(line []byte, now time.Time) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var c nextCase
	if err := d.Decode(&c); err != nil || !errors.Is(d.Decode(new(any)), io.EOF) {
		return nil, errors.New(`the line is not an object such as {"spec": "30 2 * * *", "tz": "Europe/Berlin", "from": "2026-03-28T00:00:00Z", "count": 5}`)
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
