package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/local/terminal"
)

func newExplain(a *app) *cobra.Command {
	var at string
	cmd := a.onSchedule(&cobra.Command{
		Use:   "explain SCHEDULE",
		Short: "Tell why a schedule ran, or did not run, at a time",
		Long: `Tell what became of the slots before and after a time, and why: which run each
became, or which rule kept it from running, what a clock change did to it, and
when the next one comes. Runs that somebody asked for are no slots.`,
		Example: "  fencepost explain nightly-report --at 2026-03-29T02:30\n  fencepost explain nightly-report --at 2026-03-29T01:00:00Z --json",
	}, func(ctx context.Context, cmd *cobra.Command, c *client.Client, s api.Schedule) error {
		e, err := c.Explain(ctx, s.ID, at)
		if err != nil {
			return err
		}
		if asJSON(cmd) {
			return a.printJSON(e)
		}
		return a.printExplanation(e)
	})
	cmd.Flags().StringVar(&at, "at", "", "an RFC 3339 time, or one on the clocks of the schedule's zone, such as 2026-03-29T02:30 (default now)")
	addJSON(cmd)
	return cmd
}

func (a *app) printExplanation(e api.Explanation) error {
	zone := e.TimeZone
	if zone == "" {
		zone = utc
	}
	lines := []string{fmt.Sprintf("%s is %s; times are those of %s", e.Name, e.State, zone)}
	lines = append(lines, e.Notes...)
	for _, s := range []*api.ExplainedSlot{e.Before, e.After} {
		if s == nil {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s  %s", s.Local, s.Sentence))
		if s.RunID != "" {
			lines = append(lines, "  row   "+s.RunID)
		}
		if s.OtherRunID != "" {
			lines = append(lines, "  other "+s.OtherRunID)
		}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(a.Out, terminal.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}
