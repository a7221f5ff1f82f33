package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// CommandExamples returns the examples of every command by its path.
func CommandExamples() map[string]string {
	all := map[string]string{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		all[cmd.CommandPath()] = cmd.Example
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(newRoot(&app{}))
	return all
}

// Parse reads a command line without running it, and returns the command's path.
func Parse(args []string) (string, error) {
	cmd, rest, err := newRoot(&app{}).Find(args)
	if err != nil {
		return "", err
	}
	if cmd.HasSubCommands() {
		return cmd.CommandPath(), errors.New("a command is missing")
	}
	for _, check := range []func() error{
		func() error { return cmd.ParseFlags(rest) },
		func() error { return cmd.ValidateArgs(cmd.Flags().Args()) },
		cmd.ValidateRequiredFlags,
		cmd.ValidateFlagGroups,
	} {
		if err := check(); err != nil {
			return cmd.CommandPath(), err
		}
	}
	return cmd.CommandPath(), nil
}
