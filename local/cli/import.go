package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
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
	zone, source                string
	system, dryRun, prune, json bool
}

const importCrontabHelp = `Create a schedule for each entry of a crontab, and report each of its lines.

FILE is a user's crontab; - is standard input. With --system, and for /etc/crontab
and the files of /etc/cron.d, a user stands before each command.

The entries keep the ways of cron: they run as shell commands, exactly on time,
once for a slot without retries, beside each other, without a time limit. The
variables above an entry become its environment, SHELL its shell and HOME its
folder. What follows a % is the command's input. CRON_TZ sets the time zone of the
entries below it, and TZ does where there is no CRON_TZ; until then it is UTC, or
--time-zone. Nothing is mailed, and @reboot is refused.

A schedule is named after its command, spec and time zone, with a number for
equals. So importing again changes nothing, moving a line neither, and other
variables or input update the schedule; what people gave it, such as a time limit,
stays. A line that two crontabs have is one schedule. With --prune the schedules of
lines that left the file are paused, and go on when their line comes back, unless a
person paused them.

A file has at most 10,000 lines of 16 KiB. One that is larger, or no text, is
refused whole; else the good lines go in, and the exit code is 1 if one was refused.`

func newImportCrontab(a *app) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:     "crontab FILE",
		Short:   "Create a schedule for each entry of a crontab",
		Long:    importCrontabHelp,
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
			f.system, f.json = f.system || isSystem(args[0]), asJSON(cmd)
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
	flags.StringVar(&f.source, "source", "", "the file's name among those imported (default its host and path, for standard input also the user)")
	flags.Bool(jsonFlag, false, "print the report as JSON, when all is done")
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

// sourceOf names a file among those of all machines: by its host and path, or for
// standard input by host and user. It keeps the end of a name that is too long.
func sourceOf(name string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	source := host + ":" + name
	if path, err := filepath.Abs(name); name != "-" && err == nil {
		source = host + ":" + path
	} else if me, err := user.Current(); name == "-" && err == nil {
		source = me.Username + "@" + host + ":-"
	}
	source = strings.ReplaceAll(terminal.Printable(source), ",", ";")
	return strings.TrimSpace(strings.ToValidUTF8(source[max(0, len(source)-maxSourceBytes):], ""))
}

// importCrontab creates or updates the schedules of a crontab's entries and
// reports on every line. It fails if any was refused, when all have been looked
// at.
func (a *app) importCrontab(ctx context.Context, c *client.Client, in io.Reader, f importFlags) error {
	if err := a.checkEntry("", f.zone); err != nil {
		return usageError("--time-zone: %v", err)
	}
	if err := core.CheckLabels(map[string]string{labelCrontab: f.source}); err != nil || strings.TrimSpace(f.source) != f.source {
		return usageError("--source must be at most %d bytes of text without commas, control characters and blanks around it", maxSourceBytes)
	}
	lines, err := crontab.Parse(in, crontab.Options{System: f.system, Zone: f.zone, Check: a.checkEntry})
	if err != nil {
		return fmt.Errorf("read the crontab: %w", err)
	}
	i := newImporter(c, f, newCrontabReport(a, &f))
	if err := i.readOwn(ctx); err != nil {
		return err
	}
	if err := i.importLines(ctx, lines); err != nil {
		return errors.Join(i.report.end(), err)
	}
	i.note()
	if err := i.report.end(); err != nil {
		return err
	}
	if n := i.report.Counts[refused]; n > 0 {
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

// utc is the zone that an empty one means.
const utc = "UTC"
