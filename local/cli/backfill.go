package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

const backfillHelp = `Run past slots of a schedule, such as those from before it was created or those
that an outage cost. What would run is shown first; on a terminal you are asked,
elsewhere --yes is needed.

The runs are made beside what the schedule does, at most --concurrency at a time:
they do not meet its overlap policy, and a pause does not stop them. Slots that
succeeded or are alive are left alone, unless --rerun is given.`

func newSchedulesBackfill(a *app) *cobra.Command {
	var in api.BackfillInput
	var payload string
	var yes bool
	cmd := a.onSchedule(&cobra.Command{
		Use: "backfill SCHEDULE --from TIME --to TIME", Short: "Run past slots of a schedule", Long: backfillHelp,
		Example: "  fencepost schedules backfill nightly-report --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z --concurrency 4",
	}, func(ctx context.Context, cmd *cobra.Command, c *client.Client, s api.Schedule) error {
		if payload != "" {
			if !json.Valid([]byte(payload)) {
				return usageError("--payload is not JSON")
			}
			in.Payload = json.RawMessage(payload)
		}
		only := in.DryRun
		in.DryRun = true
		plan, err := c.Backfill(ctx, s.ID, in)
		if err != nil {
			return err
		}
		if only && asJSON(cmd) {
			return a.printJSON(plan)
		}
		if !asJSON(cmd) {
			if err := a.printPlan(plan); err != nil {
				return err
			}
		}
		if only || plan.Runs == 0 {
			return nil
		}
		if ok, err := a.agreed(yes, plan.Runs); err != nil || !ok {
			return err
		}
		in.DryRun = false
		if plan, err = c.Backfill(ctx, s.ID, in); err != nil {
			return err
		}
		return a.say(cmd, plan, "backfill %s: %s", plan.Backfill.ID, plural(plan.Runs, "run", "runs"))
	})
	f := cmd.Flags()
	backfillFlagsOf(cmd, &in)
	f.StringVar(&payload, "payload", "", "JSON that the runs get instead of the schedule's payload")
	f.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// backfillFlagsOf adds the flags of what is to run.
func backfillFlagsOf(cmd *cobra.Command, in *api.BackfillInput) {
	f := cmd.Flags()
	f.StringVar(&in.From, "from", "", "the first slot that may run, RFC 3339")
	f.StringVar(&in.To, "to", "", "no slots from this RFC 3339 time on")
	f.StringVar(&in.Order, "order", "", "ascending or descending (default ascending)")
	f.IntVar(&in.MaxRuns, "max-runs", 0, "more runs than this are refused (default 1000)")
	f.IntVar(&in.Concurrency, "concurrency", 0, "how many of its runs may be alive at once (default 1)")
	f.BoolVar(&in.Rerun, "rerun", false, "run slots again that succeeded or are alive")
	f.BoolVar(&in.DryRun, "dry-run", false, "show what would run, and nothing else")
	offer(cmd, "order", "ascending", "descending")
	for _, name := range []string{"from", "to"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
}

// printPlan shows what a backfill would run.
func (a *app) printPlan(p api.BackfillPlan) error {
	rows := make([][]string, len(p.Slots))
	for i, s := range p.Slots {
		what := "runs"
		if !s.Runs {
			what = "left alone: it is " + s.State
		}
		rows[i] = []string{showTime(&s.ScheduledFor), what}
	}
	if err := a.printTable([]string{"SLOT", "WHAT"}, rows); err != nil {
		return err
	}
	if more := p.Runs + p.Done - len(p.Slots); more > 0 {
		fmt.Fprintf(a.Out, "and %s more\n", plural(more, "slot", "slots"))
	}
	for _, w := range p.Warnings {
		fmt.Fprintln(a.Out, "note: "+w)
	}
	_, err := fmt.Fprintf(a.Out, "%s, %d left alone\n", plural(p.Runs, "run", "runs"), p.Done)
	return err
}

// agreed asks on a terminal whether to go on.
func (a *app) agreed(yes bool, runs int) (bool, error) {
	if yes {
		return true, nil
	}
	if !a.Terminal {
		return false, usageError("nothing was run; give --yes to run them")
	}
	fmt.Fprintf(a.Out, "Run %s? [y/N] ", plural(runs, "slot", "slots"))
	line, err := bufio.NewReader(a.In).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	if answer != "y" && answer != "yes" {
		_, err = fmt.Fprintln(a.Out, "nothing was run")
		return false, err
	}
	return true, nil
}

func newBackfills(a *app) *cobra.Command {
	cancelRuns := false
	list := a.onSchedule(&cobra.Command{
		Use: "list SCHEDULE", Short: "List a schedule's backfills, newest first",
		Example: "  fencepost backfills list nightly-report",
	}, func(ctx context.Context, cmd *cobra.Command, c *client.Client, s api.Schedule) error {
		all, err := c.Backfills(ctx, s.ID)
		if err != nil {
			return err
		}
		if asJSON(cmd) {
			return a.printJSON(all)
		}
		rows := make([][]string, len(all.Items))
		for i, b := range all.Items {
			rows[i] = []string{b.ID, b.State, showTime(&b.From), showTime(&b.To), fmt.Sprintf("%d/%d", b.Admitted, b.Total),
				strconv.Itoa(b.Live), strconv.Itoa(b.Succeeded), strconv.Itoa(b.Dead), strconv.Itoa(b.Canceled)}
		}
		return a.printTable([]string{"ID", "STATE", "FROM", "TO", "MADE", "LIVE", "SUCCEEDED", "DEAD", "CANCELED"}, rows)
	})
	get := onBackfill(a, &cobra.Command{Use: "get BACKFILL", Short: "Show a backfill", Example: "  fencepost backfills get 01a231bd-38ca-7b28-8e6b-c39f72940a8b"},
		func(ctx context.Context, c *client.Client, id string) (api.Backfill, error) {
			return c.GetBackfill(ctx, id)
		})
	cancel := onBackfill(a, &cobra.Command{Use: "cancel BACKFILL", Short: "Let a backfill make no more runs", Example: "  fencepost backfills cancel 01a231bd-38ca-7b28-8e6b-c39f72940a8b --cancel-runs"},
		func(ctx context.Context, c *client.Client, id string) (api.Backfill, error) {
			return c.CancelBackfill(ctx, id, cancelRuns)
		})
	cancel.Flags().BoolVar(&cancelRuns, "cancel-runs", false, "cancel its runs that are alive, too")
	cmd := group("backfills", "Follow backfills", list, get, cancel)
	addJSON(cmd)
	return cmd
}

// onBackfill returns a command that does something with one backfill and shows it.
func onBackfill(a *app, cmd *cobra.Command, do func(context.Context, *client.Client, string) (api.Backfill, error)) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		b, err := do(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		if asJSON(cmd) {
			return a.printJSON(b)
		}
		return a.printFields([][2]string{
			{"id", b.ID}, {"schedule", b.ScheduleID}, {"state", b.State}, {"from", showTime(&b.From)}, {"to", showTime(&b.To)}, {"order", b.Order},
			{"concurrency", strconv.Itoa(b.Concurrency)}, {"made", fmt.Sprintf("%d of %d", b.Admitted, b.Total)}, {"live", strconv.Itoa(b.Live)},
			{"succeeded", strconv.Itoa(b.Succeeded)}, {"dead", strconv.Itoa(b.Dead)}, {"canceled", strconv.Itoa(b.Canceled)},
			{"created", showTime(&b.CreatedAt)}, {"finished", showTime(b.FinishedAt)},
		})
	}
	return cmd
}
