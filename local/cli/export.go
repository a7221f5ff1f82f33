package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/local/crontab"
	"github.com/fencepost/fencepost/local/manifest"
)

func newExport(a *app) *cobra.Command {
	var format string
	var filter client.ScheduleFilter
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write all schedules to a file that can be taken back",
		Long: `Write all schedules to standard output: as YAML that apply takes back, or as
JSON lines that import jsonl takes back, both without any change, or as a crontab,
where what no crontab can say is left as a comment. Fields that have their defaults
are left out. YAML has the calendars that the schedules name, too. Runs are not
exported.`,
		Example: "  fencepost export > schedules.yaml\n  fencepost export --format jsonl --label team=payments > payments.jsonl",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			count := &counter{w: a.Out}
			out := bufio.NewWriter(count)
			to, err := newExporter(format, out)
			if err != nil {
				return err
			}
			if err := a.export(cmd.Context(), filter, to, out); err != nil {
				return err
			}
			if format == formatYAML && count.n > manifest.MaxFileBytes {
				_, err = fmt.Fprintf(a.Err, "apply takes files of up to %d MiB; cut this one, or use --format jsonl\n", manifest.MaxFileBytes>>20)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", formatYAML, "yaml, jsonl or crontab")
	cmd.Flags().StringVarP(&filter.Labels, "label", "l", "", "only schedules whose labels meet these conditions: key=value, key!=value, key, !key")
	return cmd
}

// The formats of an export.
const (
	formatYAML  = "yaml"
	formatJSONL = "jsonl"
	formatCron  = "crontab"
)

// exporter writes schedules in one of the formats.
type exporter interface {
	Write(*api.Schedule) error
	Close() error
}

func newExporter(format string, w io.Writer) (exporter, error) {
	switch format {
	case formatYAML:
		return manifest.NewWriter(w), nil
	case formatJSONL:
		return lineWriter{w}, nil
	case formatCron:
		return &cronWriter{crontab.NewWriter(w)}, nil
	}
	return nil, usageError("--format must be yaml, jsonl or crontab")
}

// export writes page by page; what it holds does not grow with their number.
func (a *app) export(ctx context.Context, filter client.ScheduleFilter, to exporter, out *bufio.Writer) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for s, err := range c.AllSchedules(ctx, filter) {
		if err != nil {
			return fmt.Errorf("the export is not complete: %w", err)
		}
		for _, name := range s.Calendars {
			named[name] = true
		}
		if err := to.Write(&s); err != nil {
			return err
		}
	}
	if err := exportCalendars(ctx, c, named, to); err != nil {
		return fmt.Errorf("the export is not complete: %w", err)
	}
	if err := to.Close(); err != nil {
		return err
	}
	return out.Flush()
}

// exportCalendars writes the calendars that the exported schedules name, where the
// format has a place for them.
func exportCalendars(ctx context.Context, c *client.Client, named map[string]bool, to exporter) error {
	w, ok := to.(interface{ Calendars([]api.Calendar) error })
	if !ok || len(named) == 0 {
		return nil
	}
	all, err := c.Calendars(ctx)
	if err != nil {
		return err
	}
	return w.Calendars(slices.DeleteFunc(all, func(k api.Calendar) bool { return !named[k.Name] }))
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// lineWriter writes JSON lines.
type lineWriter struct{ w io.Writer }

func (l lineWriter) Write(s *api.Schedule) error {
	line, err := manifest.Line(s)
	if err != nil {
		return err
	}
	_, err = l.w.Write(append(line, '\n'))
	return err
}

func (lineWriter) Close() error { return nil }
