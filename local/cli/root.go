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

The commands talk to the API that the profile or FENCEPOST_URL and
FENCEPOST_API_KEY name.`,
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
		{"work", "Work with schedules:", []*cobra.Command{newSchedules(a), newRuns(a), newNext(a)}},
		{"files", "Bring schedules in and out:", []*cobra.Command{newImport(a), newApply(a), newExport(a)}},
		{"run", "Run and look after an installation:", []*cobra.Command{newUp(a), newMigrate(a), newKeys(a), newDoctor(a)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(newVersion(a))
	return root
}

// group returns a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return usageError("a command is missing after %q", cmd.CommandPath())
		},
	}
	cmd.AddCommand(commands...)
	return cmd
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
