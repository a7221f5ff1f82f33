package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/core/cron"
	"github.com/fencepost/fencepost/core/spec"
	"github.com/fencepost/fencepost/local/crontab"
	"github.com/fencepost/fencepost/local/terminal"
)

func newImport(a *app) *cobra.Command {
	return group("import", "Take over schedules from elsewhere", newImportCrontab(a), newImportJSONL(a))
}

// importFlags say how a crontab is to be read.
type importFlags struct {
	zone, source          string
	system, dryRun, prune bool
}

func newImportCrontab(a *app) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "crontab FILE",
		Short: "Create a schedule for each entry of a crontab",
		Long: `Create a schedule for each entry of a crontab, and report each of its lines.

FILE is a user's crontab; - is standard input. With --system, and for /etc/crontab
and the files of /etc/cron.d, a user stands before each command.

The entries keep the ways of cron: they run as shell commands, exactly on time,
once for a slot without retries, beside each other, without a time limit. The
variables above an entry become its environment; CRON_TZ and TZ set its time zone,
which is UTC, or --time-zone, until then. What follows a % is the command's input.

Importing a file again changes nothing, and moving a line neither: a schedule is
named after its command, spec and time zone. With --prune the schedules of lines
that left the file are paused, and go on when their line comes back. The exit code
is 1 if a line was refused.`,
		Example: "  crontab -l | fencepost import crontab - --time-zone Europe/Berlin\n  fencepost import crontab /etc/crontab --dry-run",
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
			f.system = f.system || isSystem(args[0])
			if f.source == "" {
				f.source = sourceOf(args[0])
			}
			return a.importCrontab(cmd.Context(), c, in, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.zone, "time-zone", "", "IANA zone of the entries until a line sets another (default UTC)")
	flags.BoolVar(&f.system, "system", false, "a user stands before each command")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and do nothing")
	flags.BoolVar(&f.prune, "prune", false, "pause the schedules of lines that left the file")
	flags.StringVar(&f.source, "source", "", "the file's name among those imported (default its host and path)")
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

// isSystem reports whether a file is one of cron's own, whose lines name a user.
func isSystem(name string) bool {
	name, err := filepath.Abs(name)
	return err == nil && (name == "/etc/crontab" || filepath.Dir(name) == "/etc/cron.d")
}

// maxSourceBytes is what a label's value holds.
const maxSourceBytes = 200

// sourceOf names a file among those of all machines: by its host and path. It
// keeps the end of a name that is too long.
func sourceOf(name string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	where := "standard input"
	if name != "-" {
		if where, err = filepath.Abs(name); err != nil {
			where = name
		}
	}
	source := strings.ReplaceAll(terminal.Printable(host+":"+where), ",", ";")
	return strings.ToValidUTF8(source[max(0, len(source)-maxSourceBytes):], "")
}

// importCrontab creates or updates the schedules of a crontab's entries and
// reports on every line. It fails if any was refused, when all have been looked
// at.
func (a *app) importCrontab(ctx context.Context, c *client.Client, in io.Reader, f importFlags) error {
	lines, err := crontab.Parse(in, crontab.Options{System: f.system, Zone: f.zone, Check: a.checkEntry})
	if err != nil {
		return fmt.Errorf("read the crontab: %w", err)
	}
	i := importer{client: c, flags: f, seen: map[string]int{}, taken: map[string]bool{}, counts: map[verdict]int{}}
	if err := i.readOwn(ctx); err != nil {
		return err
	}
	for _, line := range lines {
		v, text, err := i.take(ctx, line)
		if err != nil {
			return fmt.Errorf("line %d: %w", line.Number, err)
		}
		if err := a.report(fmt.Sprintf("line %d", line.Number), v, text); err != nil {
			return err
		}
		i.count(v, line)
	}
	if err := i.settleLeft(ctx, a); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out, i.summary()); err != nil {
		return err
	}
	if n := i.counts[refused]; n > 0 {
		return fmt.Errorf("%d of %d lines were refused", n, len(lines))
	}
	return nil
}

// checkEntry judges a spec in a zone, or the zone alone.
func (a *app) checkEntry(text, zone string) error {
	if text == "" {
		_, err := cron.LoadLocation(zone)
		return err
	}
	_, err := spec.Parse(&core.Schedule{Spec: text, TimeZone: zone}, a.Clock.Now())
	return err
}

func (a *app) report(what string, v verdict, text string) error {
	_, err := fmt.Fprintf(a.Out, "%s\t%s\t%s\n", what, v, terminal.Printable(text))
	return err
}

// utc is the zone that an empty one means.
const utc = "UTC"

// verdict is what became of a line.
type verdict string

// The verdicts.
const (
	created   verdict = "created"
	updated   verdict = "updated" // its variables, user or input changed
	resumed   verdict = "resumed" // the line is back
	unchanged verdict = "unchanged"
	paused    verdict = "paused" // the line left the file
	left      verdict = "left"   // the line left the file, and nothing was done
	applied   verdict = "set"
	refused   verdict = "refused"
	ignored   verdict = "ignored"
)

// summary is what the report ends with.
func (i *importer) summary() string {
	var parts []string
	for _, v := range []verdict{created, updated, resumed, unchanged, paused, left, refused} {
		if n := i.counts[v]; n > 0 || v == created || v == unchanged || v == refused {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	head := ""
	if i.entries > 0 {
		head = "imported lines run as cron runs them: exactly on time, once (max_attempts 1), beside each other (overlap allow), without a time limit\n"
	}
	if i.flags.dryRun {
		head += "dry run, nothing was done: "
	}
	return head + strings.Join(parts, ", ")
}
