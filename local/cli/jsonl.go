package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/local/manifest"
)

func newImportJSONL(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "jsonl FILE",
		Short: "Create or replace a schedule for each line of JSON",
		Long: `Create or replace a schedule for each line of a file of JSON lines, as export
--format jsonl writes it; - is standard input. A line has the fields that the API
takes, name, spec and job among them; what it leaves out gets its default.

Lines that are refused are reported with their number, and the exit code is 1
then; the others go in. Importing a file again changes nothing, so that a load
that was cut off is simply started again. It says how far it is each second.`,
		Example: "  fencepost import jsonl schedules.jsonl\n  fencepost export --format jsonl | ssh elsewhere fencepost import jsonl -",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			in, closeFile, err := a.open(args[0])
			if err != nil {
				return err
			}
			defer closeFile()
			l := &loader{app: a, client: c, dryRun: dryRun, begin: a.Clock.Now()}
			return l.load(cmd.Context(), in)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and change nothing")
	return cmd
}

// loader puts the lines of a file, a batch at a time.
type loader struct {
	*app
	client *client.Client
	dryRun bool
	counts tally
	lines  int // read so far
	begin  time.Time
	said   time.Time // when progress was last told

	waiting []manifest.JSONLine // the lines of the next batch, refused ones too
	bodies  []json.RawMessage
	bytes   int
}

// tally counts what became of schedules.
type tally struct{ created, replaced, unchanged, pruned, refused int }

func (t *tally) add(item api.BatchItem) {
	switch schedules.Outcome(item.Outcome) {
	case schedules.Created:
		t.created++
	case schedules.Replaced:
		t.replaced++
	case schedules.Unchanged:
		t.unchanged++
	default:
		t.refused++
	}
}

// String returns the counts as a report ends with them.
func (t tally) String() string {
	pruned := ""
	if t.pruned > 0 {
		pruned = fmt.Sprintf(", %d pruned", t.pruned)
	}
	return fmt.Sprintf("%d created, %d replaced, %d unchanged%s, %d refused", t.created, t.replaced, t.unchanged, pruned, t.refused)
}

func (l *loader) load(ctx context.Context, in io.Reader) error {
	l.said = l.begin
	lines := manifest.NewLines(in)
	for {
		line, err := lines.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return l.broken(err)
		}
		if err != nil || len(l.waiting) == schedules.MaxMany || l.bytes+len(line.Body) > maxBulkBytes {
			if err := l.flush(ctx); err != nil {
				return l.broken(err)
			}
		}
		if err != nil {
			return l.end()
		}
		l.waiting = append(l.waiting, line)
		if line.Body != nil {
			l.bodies = append(l.bodies, line.Body)
			l.bytes += len(line.Body) + 1
		}
	}
}

// flush puts the waiting lines and reports those that were refused, in order.
func (l *loader) flush(ctx context.Context) error {
	items := make([]api.BatchItem, 0, len(l.bodies))
	err := l.bulk(ctx, l.client, l.bodies, l.dryRun, func(_ int, item api.BatchItem) error {
		items = append(items, item)
		return nil
	})
	if err != nil {
		return err
	}
	for _, line := range l.waiting {
		why := line.Refused
		if line.Body != nil {
			l.counts.add(items[0])
			if p := items[0].Problem; p != nil {
				why = reason(p)
			}
			items = items[1:]
		} else {
			l.counts.refused++
		}
		if why != "" {
			if _, err := fmt.Fprintf(l.Out, "line %d\t%s\t%s\n", line.Number, refused, why); err != nil {
				return err
			}
		}
		l.lines = line.Number
	}
	l.waiting, l.bodies, l.bytes = l.waiting[:0], l.bodies[:0], 0
	l.progress()
	return nil
}

// progress tells how far the load is, at most once a second.
func (l *loader) progress() {
	now := l.Clock.Now()
	if now.Sub(l.said) < time.Second {
		return
	}
	l.said = now
	// Whoever closed standard error does not want it.
	_, _ = fmt.Fprintf(l.Err, "%d lines: %s; %.0f lines/s\n", l.lines, l.counts, float64(l.lines)/now.Sub(l.begin).Seconds())
}

// broken says up to where the lines are in.
func (l *loader) broken(err error) error {
	if l.dryRun {
		return fmt.Errorf("after line %d: %w", l.lines, err)
	}
	return fmt.Errorf("after line %d: %w; run it again to go on, lines that are in stay as they are", l.lines, err)
}

func (l *loader) end() error {
	if _, err := fmt.Fprintln(l.Out, dry(l.dryRun)+l.counts.String()); err != nil {
		return err
	}
	if l.counts.refused > 0 {
		return fmt.Errorf("%s refused", plural(l.counts.refused, "line was", "lines were"))
	}
	return nil
}

func dry(on bool) string {
	if on {
		return "dry run, nothing was changed: "
	}
	return ""
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
