package cli

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

// newRoot returns the command fencepost with everything below it. A new command
// is added here and lives in a file of its own.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "fencepost",
		Short: "Cron as a service",
		Long: `Fencepost runs jobs on schedules and keeps what happened to each of them.

fencepost up starts everything on this machine. The other commands talk to the API
that it wrote to your profile, or that FENCEPOST_URL and FENCEPOST_API_KEY name.`,
		Example: `  fencepost up --allow-exec
  crontab -l | fencepost import crontab -
  fencepost schedules create --name ping --spec "every 15m" --url https://example.com/ping
  fencepost runs tail`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // RunE refuses them on one line
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"work", "Work with schedules:", []*cobra.Command{newSchedules(a), newRuns(a), newNext(a), newBackfills(a), newExplain(a), newSimulate(a)}},
		{"files", "Bring schedules in and out:", []*cobra.Command{newImport(a), newApply(a), newExport(a), newCalendars(a)}},
		{"run", "Run and look after an installation:", []*cobra.Command{newUp(a), newMigrate(a), newKeys(a), newQueues(a), newDoctor(a)}},
		{"self", "About this program:", []*cobra.Command{newVersion(a)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID("self")
	root.SetCompletionCommandGroupID("self")
	a.addCompletion(root)
	// A command that holds others only shows them: it has no use of its own.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	return root
}

// group returns a command that only holds others, with an example of each as its
// own.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	examples := make([]string, len(commands))
	for i, c := range commands {
		examples[i], _, _ = strings.Cut(c.Example, "\n")
	}
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Example: strings.Join(examples, "\n"),
		RunE:    missing,
	}
	cmd.AddCommand(commands...)
	return cmd
}

// missing is what running a command does that only holds others.
func missing(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return usageError("a command is missing after %q", cmd.CommandPath())
}

func unknownCommand(cmd *cobra.Command, name string) error {
	hint := ""
	cmd.SuggestionsMinimumDistance = 2
	if len(name) > 2 { // anything is near a shorter one
		if near := cmd.SuggestionsFor(name); len(near) > 0 {
			hint = "; did you mean " + strings.Join(near, " or ") + "?"
		}
	}
	return usageError("unknown command %q for %q%s", name, cmd.CommandPath(), hint)
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  fencepost version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "fencepost %s %s %s/%s\n", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
