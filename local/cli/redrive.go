package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

const redriveHelp = `Try dead runs again: one by its id, or all that flags choose. Each gets as many
attempts more as its schedule has, with the schedule's job as it is now, and keeps
its slot and its interval of data.

Of a schedule whose overlap is not allow only the last run can be redriven: later
ones cover the intervals of those before.`

func newRunsRedrive(a *app) *cobra.Command {
	var in api.RedriveInput
	var schedule string
	filters := []string{"schedule", "queue", "name-prefix", "label", "from", "to", "reason"}
	cmd := &cobra.Command{
		Use: "redrive (RUN | --schedule SCHEDULE | --queue QUEUE | ...)", Short: "Try dead runs again", Long: redriveHelp,
		Example: "  fencepost runs redrive --schedule nightly-report\n  fencepost runs redrive --queue mails --from 2026-12-01T00:00:00Z --reason exhausted,timeout --dry-run",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: a.completeRuns(isDead),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := false
			for _, name := range filters {
				chosen = chosen || cmd.Flags().Changed(name)
			}
			if chosen == (len(args) == 1) {
				return usageError("give either the id of a run, or flags that choose runs")
			}
			if len(args) == 1 && in.DryRun {
				return usageError("--dry-run goes with flags that choose runs")
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return a.redriveOne(cmd, c, args[0])
			}
			if schedule != "" {
				s, err := c.Find(cmd.Context(), schedule)
				if err != nil {
					return err
				}
				in.ScheduleID = s.ID
			}
			return a.redriveAll(cmd, c, in)
		},
	}
	f := cmd.Flags()
	f.StringVar(&schedule, "schedule", "", "only runs of this schedule, by its id or name")
	f.StringVar(&in.Queue, "queue", "", "only runs of schedules whose job names this queue")
	f.StringVar(&in.NamePrefix, "name-prefix", "", "only runs of schedules whose name begins so")
	f.StringVarP(&in.Labels, "label", "l", "", "only runs of schedules whose labels meet these conditions: key=value, key!=value, key, !key")
	f.StringVar(&in.From, "from", "", "only runs whose slot is not before this RFC 3339 time")
	f.StringVar(&in.To, "to", "", "only runs whose slot is before this RFC 3339 time")
	f.StringSliceVar(&in.Reasons, "reason", nil, "only runs that are dead for one of these reasons")
	f.BoolVar(&in.DryRun, "dry-run", false, "change nothing, and show what would be redriven")
	offer(cmd, "reason", "exhausted", "permanent", "timeout", "lost", "total_timeout")
	return cmd
}

func (a *app) redriveOne(cmd *cobra.Command, c *client.Client, id string) error {
	run, err := c.RedriveRun(cmd.Context(), id)
	if err != nil {
		return err
	}
	return a.say(cmd, run, "%s is %s", run.ID, run.State)
}

// redriveAll goes through all pages. Each run that is redriven is dead no more, so
// that a command which broke can be given again.
func (a *app) redriveAll(cmd *cobra.Command, c *client.Client, in api.RedriveInput) error {
	all := api.List[api.RedriveItem]{Items: []api.RedriveItem{}}
	for {
		page, err := c.RedriveRuns(cmd.Context(), in)
		if err != nil {
			return err
		}
		all.Items = append(all.Items, page.Items...)
		if page.NextCursor == nil {
			break
		}
		in.Cursor = *page.NextCursor
	}
	if asJSON(cmd) {
		return a.printJSON(all)
	}
	redriven := 0
	rows := make([][]string, len(all.Items))
	for i, item := range all.Items {
		what := "redriven"
		switch {
		case item.Problem != nil:
			what = "left alone: " + item.Problem.Detail
		case in.DryRun:
			what = "would be redriven"
			redriven++
		default:
			redriven++
		}
		rows[i] = []string{showTime(&item.Run.ScheduledFor), fmt.Sprint(item.Run.Attempt), shortText(why(item.Run)), item.Run.ID, what}
	}
	if len(rows) > 0 {
		if err := a.printTable([]string{"SLOT", "ATTEMPTS", "REASON", "ID", "OUTCOME"}, rows); err != nil {
			return err
		}
	}
	verb := "redriven"
	if in.DryRun {
		verb = "would be redriven"
	}
	line := fmt.Sprintf("%d %s", redriven, verb)
	if left := len(rows) - redriven; left > 0 {
		line += fmt.Sprintf(", %d left alone", left)
	}
	_, err := fmt.Fprintln(a.Out, strings.TrimSpace(line))
	return err
}
