package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/local/profile"
	"github.com/fencepost/fencepost/local/terminal"
)

// completeLimit bounds how long a shell waits for names, completeMost how many it
// gets.
const (
	completeLimit = time.Second
	completeMost  = 50
)

// addCompletion adds cobra's command for the scripts of shells, with words of our
// own around it.
func (a *app) addCompletion(root *cobra.Command) {
	root.SetOut(a.Out) // cobra's command takes it here already
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return // cobra has none any more
	}
	cmd.Short = "Make a script with which your shell completes commands, names and runs"
	cmd.Example = "  fencepost completion bash > ~/.local/share/bash-completion/completions/fencepost"
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, missing
	for _, child := range cmd.Commands() {
		switch child.Name() {
		case "bash":
			child.Example = cmd.Example
		case "zsh":
			child.Example = "  fencepost completion zsh > \"${fpath[1]}/_fencepost\""
		case "fish":
			child.Example = "  fencepost completion fish > ~/.config/fish/completions/fencepost.fish"
		default:
			child.Example = "  fencepost completion " + child.Name() + " | Out-String | Invoke-Expression"
		}
	}
}

// completeNames offers the names of schedules to the shell.
func (a *app) completeNames(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.complete(cmd, args, begun, client.ScheduleFilter{NamePrefix: begun}, func(s api.Schedule) (string, string) {
		return s.Name, s.Spec
	})
}

// completeRuns offers the ids of the last runs of schedules whose states fit; nil: all.
// More would cost a request for each schedule.
func (a *app) completeRuns(fits func(core.RunState) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.complete(cmd, args, begun, client.ScheduleFilter{}, func(s api.Schedule) (string, string) {
			if s.LastRun == nil || s.LastState == nil || fits != nil && !fits(core.RunState(*s.LastState)) {
				return "", ""
			}
			return s.LastRun.ID, s.Name + " " + *s.LastState
		})
	}
}

func alive(s core.RunState) bool { return !s.Final() }

func isDead(s core.RunState) bool { return s == core.RunDead }

// complete offers what pick takes of the schedules, with what describes it. It is
// silent about an API that does not answer, and leaves out what could command a
// terminal.
func (a *app) complete(cmd *cobra.Command, args []string, begun string, filter client.ScheduleFilter, pick func(api.Schedule) (text, about string)) ([]cobra.Completion, cobra.ShellCompDirective) {
	if cmd.Args != nil && cmd.Args(cmd, append(args, begun)) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // it takes no more
	}
	var found []cobra.Completion
	for _, s := range a.schedulesSoon(cmd.Context(), filter) {
		text, about := pick(s)
		if text != "" && len(found) < completeMost && strings.HasPrefix(text, begun) && terminal.Printable(text) == text {
			found = append(found, cobra.CompletionWithDesc(text, terminal.Printable(about)))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// schedulesSoon returns what the API says of schedules within the patience of a
// shell; nothing if it does not.
func (a *app) schedulesSoon(ctx context.Context, filter client.ScheduleFilter) []api.Schedule {
	p, err := profile.Load(a.Getenv)
	if err != nil {
		return nil
	}
	c, err := client.New(client.Config{URL: p.URL, Key: p.Key, Tries: 1, Clock: a.Clock})
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, completeLimit, errors.New("names took too long"))
	defer cancel()
	found, err := c.Schedules(ctx, filter, client.Page{Limit: 2 * completeMost})
	if err != nil {
		return nil
	}
	return found.Items
}

// offer lets the shell complete the value of a flag that takes one of a few words.
func offer(cmd *cobra.Command, flag string, words ...string) {
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// offerPolicies completes the flags of create and edit that choose among policies.
func offerPolicies(cmd *cobra.Command) {
	offer(cmd, "overlap", "skip", "allow", "queue_one", "cancel_previous")
	offer(cmd, "misfire", "run_once", "skip", "run_all")
	offer(cmd, "dst-gap", "auto", "run_after", "skip")
	offer(cmd, "dst-overlap", "auto", "first", "both")
}
