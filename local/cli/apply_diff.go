package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/local/manifest"
	"github.com/fencepost/fencepost/local/terminal"
)

// show prints the difference that each schedule makes. Those that stay as they are
// are only counted.
func (r *applier) show(ctx context.Context, plan []schedules.Outcome) error {
	for i, outcome := range plan {
		w := &r.wanted[i]
		var changes []manifest.Change
		var err error
		switch outcome {
		case schedules.Created:
			changes, err = manifest.Fields(w.Body)
		case schedules.Replaced:
			changes, err = r.compare(ctx, w)
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("compare %q: %w", w.Name, err)
		}
		if err := r.printChanges(string(outcome), w.Name, changes); err != nil {
			return err
		}
	}
	return nil
}

// compare returns how a schedule would differ from what it is. One that was
// deleted meanwhile differs in everything.
func (r *applier) compare(ctx context.Context, w *wanted) ([]manifest.Change, error) {
	old, err := r.client.Named(ctx, w.Name)
	if client.IsCode(err, core.ErrNotFound.Kind) {
		return manifest.Fields(w.Body)
	}
	if err != nil {
		return nil, err
	}
	would, err := r.client.PutJSON(ctx, w.Name, w.Body, true)
	if err != nil {
		return nil, err
	}
	return manifest.Diff(&old, &would.Schedule), nil
}

// printChanges prints a schedule's name and its fields, - before and + after.
func (r *applier) printChanges(what, name string, changes []manifest.Change) error {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(terminal.Printable(fmt.Sprintf(format, args...)) + "\n")
	}
	line("%s %s", what, name)
	for _, c := range changes {
		if c.Old != "" {
			line("  - %s: %s", c.Field, shortValue(c.Old))
		}
		if c.New != "" {
			line("  + %s: %s", c.Field, shortValue(c.New))
		}
	}
	_, err := fmt.Fprint(r.Out, b.String())
	return err
}

// shortValue cuts a value that nobody would read to its end.
func shortValue(text string) string {
	const most = 1000
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], ""), len(text))
}
