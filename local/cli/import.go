package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/core/spec"
	"github.com/fencepost/fencepost/local/crontab"
	"github.com/fencepost/fencepost/local/terminal"
)

func newImport(a *app) *cobra.Command {
	return group("import", "Take over schedules from elsewhere", newImportCrontab(a), newImportJSONL(a))
}

func newImportCrontab(a *app) *cobra.Command {
	var zone string
	cmd := &cobra.Command{
		Use:   "crontab FILE",
		Short: "Create a schedule for each entry of a crontab",
		Long: `Create a schedule for each entry of a crontab, and report each of its lines.

FILE is a user's crontab; - is standard input. The entries run as shell
commands, at most once for a slot, beside each other, without a time limit.
Their times are in UTC unless --time-zone says otherwise. Importing a file again
changes nothing. The exit code is 1 if a line was refused.`,
		Example: "  crontab -l | fencepost import crontab - --time-zone Europe/Berlin",
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
			return a.importCrontab(cmd.Context(), c, source{in, isSystem(args[0])}, zone)
		},
	}
	cmd.Flags().StringVar(&zone, "time-zone", "", "IANA zone of the entries (default UTC)")
	return cmd
}

func (a *app) open(name string) (io.Reader, func(), error) {
	if name == "-" {
		return a.In, func() {}, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, err // it names what was done to which file
	}
	return file, func() { _ = file.Close() }, nil // nothing was written
}

// source is a crontab to be read.
type source struct {
	io.Reader
	system bool // its lines have a user before the command
}

// isSystem reports whether a file is one of cron's own, whose lines name a user.
func isSystem(name string) bool {
	name, err := filepath.Abs(name)
	return err == nil && (name == "/etc/crontab" || filepath.Dir(name) == "/etc/cron.d")
}

// refuseUser refuses an entry that names a user: taken as it is, the user would
// be run as the command.
func (s source) refuseUser(line crontab.Line) crontab.Line {
	if line.Entry == nil {
		return line
	}
	if first, _, _ := strings.Cut(line.Entry.Command, " "); s.system || first == "root" {
		line.Entry = nil
		line.Refused = "the sixth field is a user, as in /etc/crontab, which is not supported; take it out and import the line as a user's"
	}
	return line
}

// importCrontab creates what is missing of a crontab's entries and reports on
// every line. It fails if any was refused, when all have been looked at.
func (a *app) importCrontab(ctx context.Context, c *client.Client, from source, zone string) error {
	lines, err := crontab.Parse(from, func(text string) error {
		_, err := spec.Parse(&core.Schedule{Spec: text, TimeZone: zone}, a.Clock.Now())
		return err
	})
	if err != nil {
		return fmt.Errorf("read the crontab: %w", err)
	}
	i := importer{client: c, zone: zone, known: map[string]string{}, seen: map[crontab.Entry]int{}}
	if err := i.readKnown(ctx); err != nil {
		return err
	}
	counts := map[string]int{}
	for _, line := range lines {
		line = from.refuseUser(line)
		verdict, text, err := i.take(ctx, line)
		if err != nil {
			return fmt.Errorf("line %d: %w", line.Number, err)
		}
		counts[verdict]++
		if _, err := fmt.Fprintf(a.Out, "line %d\t%s\t%s\n", line.Number, verdict, terminal.Printable(text)); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(a.Out, "%d created, %d unchanged, %d refused\n", counts[created], counts[unchanged], counts[refused]); err != nil {
		return err
	}
	if counts[refused] > 0 {
		return fmt.Errorf("%d of %d lines were refused", counts[refused], len(lines))
	}
	return nil
}

// utc is the zone that an empty one means.
const utc = "UTC"

// What becomes of a line.
const (
	created   = "created"
	unchanged = "unchanged"
	refused   = "refused"
	ignored   = "ignored"
)

// importer creates schedules that are not there yet.
type importer struct {
	client *client.Client
	zone   string
	known  map[string]string     // time zones by name of the schedules that exist
	seen   map[crontab.Entry]int // equal entries of the file so far
}

func (i *importer) readKnown(ctx context.Context) error {
	for s, err := range i.client.AllSchedules(ctx, client.ScheduleFilter{}) {
		if err != nil {
			return err
		}
		i.known[s.Name] = s.TimeZone
	}
	return nil
}

// take deals with one line. An error ends the import; what concerns the line
// alone is a verdict.
func (i *importer) take(ctx context.Context, line crontab.Line) (verdict, text string, err error) {
	switch {
	case line.Ignorable:
		return ignored, "comment or blank", nil
	case line.Entry == nil:
		return refused, line.Refused, nil
	}
	i.seen[*line.Entry]++
	name := crontab.Name(*line.Entry, i.seen[*line.Entry])
	if zone, ok := i.known[name]; ok {
		if cmp.Or(zone, utc) != cmp.Or(i.zone, utc) {
			return refused, name + " exists with another time zone; delete it first", nil
		}
		return unchanged, name, nil
	}
	job, err := commandJob(line.Entry.Command)
	if err != nil {
		return "", "", err
	}
	s, err := i.client.Create(ctx, api.ScheduleInput{
		Name: name, Spec: line.Entry.Spec, TimeZone: i.zone, Job: job,
		Misfire: string(core.MisfireRunOnce), Overlap: string(core.OverlapAllow), Exact: true, Timeout: "0s", MaxAttempts: 1,
	})
	switch {
	case client.IsCode(err, core.ErrNameTaken.Kind):
		return unchanged, name, nil // somebody else imports the same file
	case client.IsRefusal(err):
		return refused, oneLine(err.Error()), nil
	case err != nil:
		return "", "", err
	}
	i.known[name] = s.TimeZone
	return created, name + nextRun(s), nil
}
