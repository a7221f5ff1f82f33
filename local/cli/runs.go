package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

func newRuns(a *app) *cobra.Command {
	cmd := group("runs", "Look into what happened", newRunsList(a), newRunsGet(a), newRunsTail(a), newRunsCancel(a), newRunsRedrive(a))
	addJSON(cmd)
	return cmd
}

func newRunsList(a *app) *cobra.Command {
	var page client.Page
	var filter client.RunFilter
	var from, to string
	cmd := a.onSchedule(&cobra.Command{
		Use:     "list SCHEDULE",
		Short:   "List a schedule's runs, newest first, by its id or name",
		Example: "  fencepost runs list nightly-report --state dead --limit 20",
	}, func(ctx context.Context, cmd *cobra.Command, c *client.Client, s api.Schedule) error {
		err := checkPage(page)
		if err != nil {
			return err
		}
		if filter.From, err = parseFlagTime("from", from); err != nil {
			return err
		}
		if filter.To, err = parseFlagTime("to", to); err != nil {
			return err
		}
		list, err := fill(page, func(p client.Page) (api.List[api.Run], error) { return c.Runs(ctx, s.ID, filter, p) })
		if err != nil {
			return err
		}
		if asJSON(cmd) {
			return a.printJSON(list)
		}
		return a.printRuns(list)
	})
	f := cmd.Flags()
	addPage(f, &page)
	f.StringSliceVar(&filter.States, "state", nil, "only runs in these states, such as dead,skipped")
	f.StringVar(&from, "from", "", "only runs whose slot is not before this RFC 3339 time")
	f.StringVar(&to, "to", "", "only runs whose slot is before this RFC 3339 time")
	offer(cmd, "state", "queued", "running", "retrying", "succeeded", "dead", "skipped", "canceled")
	return cmd
}

// parseFlagTime reads the time of a flag; empty is zero.
func parseFlagTime(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usageError("--%s must be a time such as 2026-12-01T00:00:00Z", name)
	}
	return t, nil
}

func (a *app) printRuns(list api.List[api.Run]) error {
	rows := make([][]string, len(list.Items))
	for i, r := range list.Items {
		rows[i] = []string{
			showSlots(r), r.State, r.Cause, fmt.Sprintf("%d/%d", r.Attempt, r.MaxAttempts),
			showTime(r.StartedAt), showTime(r.FinishedAt), shortText(why(r)), r.ID,
		}
	}
	headings := []string{"SLOT", "STATE", "CAUSE", "ATTEMPTS", "STARTED", "FINISHED", "REASON", "ID"}
	if err := a.printTable(headings, rows); err != nil {
		return err
	}
	return a.more(list.NextCursor)
}

// showSlots shows the slot of a run, or the range that a row of skipped slots stands
// for with their number.
func showSlots(r api.Run) string {
	if r.RangeFrom == nil {
		return showTime(&r.ScheduledFor)
	}
	count := strconv.FormatInt(r.RangeCount, 10)
	if r.RangeCount >= core.MaxRangeCount {
		count = "at least " + count
	}
	return fmt.Sprintf("%s .. %s (%s)", showTime(r.RangeFrom), showTime(&r.ScheduledFor), count)
}

// why says why a run did not succeed.
func why(r api.Run) string {
	return strings.Join(slices.DeleteFunc([]string{r.Reason, r.Error}, func(s string) bool { return s == "" }), ": ")
}

func newRunsCancel(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "cancel RUN",
		Short:   "Cancel a run: a waiting one ends, a running one is asked to",
		Example: "  fencepost runs cancel run_040t4bx7ga2qvsw4k5kcyq2q060g01k1h8kvfh80dhqp6rbc",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: a.completeRuns(alive),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			run, err := c.CancelRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if run.State == string(core.RunRunning) {
				return a.say(cmd, run, "%s is asked to end", run.ID)
			}
			return a.say(cmd, run, "%s is %s", run.ID, run.State)
		},
	}
}
