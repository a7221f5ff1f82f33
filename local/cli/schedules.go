package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/local/terminal"
)

func newSchedules(a *app) *cobra.Command {
	cmd := group("schedules", "Manage schedules",
		newSchedulesList(a),
		newSchedulesGet(a),
		newSchedulesCreate(a),
		newSchedulesEdit(a),
		newSchedulesPause(a),
		newSchedulesResume(a),
		newSchedulesDelete(a),
		newSchedulesTrigger(a), newSchedulesBackfill(a),
	)
	addJSON(cmd)
	return cmd
}

const jsonFlag = "json"

func addJSON(cmd *cobra.Command) {
	cmd.PersistentFlags().Bool(jsonFlag, false, "print the API's JSON")
}

func asJSON(cmd *cobra.Command) bool {
	on, err := cmd.Flags().GetBool(jsonFlag)
	return err == nil && on
}

func newSchedulesList(a *app) *cobra.Command {
	var page client.Page
	var filter client.ScheduleFilter
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List schedules, oldest first",
		Example: "  fencepost schedules list --state paused --label 'team=payments,!legacy'\n  fencepost schedules list --json | jq '.items[].name'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPage(page); err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			list, err := fill(page, func(p client.Page) (api.List[api.Schedule], error) { return c.Schedules(cmd.Context(), filter, p) })
			if err != nil {
				return err
			}
			if asJSON(cmd) {
				return a.printJSON(list)
			}
			return a.printSchedules(list)
		},
	}
	f := cmd.Flags()
	addPage(f, &page)
	f.StringSliceVar(&filter.States, "state", nil, "only schedules in these states: active, paused, completed")
	f.StringVar(&filter.Queue, "queue", "", "only schedules whose job names this queue")
	f.StringVar(&filter.NamePrefix, "name-prefix", "", "only schedules whose name begins so")
	f.StringVarP(&filter.Labels, "label", "l", "", "only schedules whose labels meet these conditions: key=value, key!=value, key, !key")
	offer(cmd, "state", "active", "paused", "completed")
	return cmd
}

func (a *app) printSchedules(list api.List[api.Schedule]) error {
	rows := make([][]string, len(list.Items))
	for i, s := range list.Items {
		rows[i] = []string{s.ID, shortText(s.Name), s.State, s.Spec, cmp.Or(s.TimeZone, utc), lastState(s), showTime(s.NextRunAt)}
	}
	if err := a.printTable([]string{"ID", "NAME", "STATE", "SPEC", "TIME ZONE", "LAST RUN", "NEXT RUN"}, rows); err != nil {
		return err
	}
	return a.more(list.NextCursor)
}

// lastState says what became of the last run.
func lastState(s api.Schedule) string {
	switch {
	case s.LastRun == nil:
		return "none"
	case s.LastState == nil:
		return "expired"
	default:
		return *s.LastState
	}
}

// onSchedule returns a command that does something with one schedule.
func (a *app) onSchedule(cmd *cobra.Command, do func(context.Context, *cobra.Command, *client.Client, api.Schedule) error) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = a.completeNames
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		s, err := c.Find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), cmd, c, s)
	}
	return cmd
}

func newSchedulesGet(a *app) *cobra.Command {
	return a.onSchedule(&cobra.Command{
		Use:     "get SCHEDULE",
		Short:   "Show a schedule, by its id or name",
		Example: "  fencepost schedules get nightly-report",
	}, func(_ context.Context, cmd *cobra.Command, _ *client.Client, s api.Schedule) error {
		return a.printSchedule(cmd, s)
	})
}

func (a *app) printSchedule(cmd *cobra.Command, s api.Schedule) error {
	if asJSON(cmd) {
		return a.printJSON(s)
	}
	return a.printFields([][2]string{
		{"id", s.ID}, {"name", s.Name}, {"state", s.State}, {"next run", showTime(s.NextRunAt)},
		{"last run", lastRun(s)}, {"labels", showLabels(s.Labels)},
		{"spec", s.Spec}, {"time zone", s.TimeZone}, {"anchor", showTime(s.Anchor)},
		{"clock changes", clockChanges(s)}, {"catch up within", s.CatchUpWithin}, {"window", s.Window}, {"spread", s.Spread},
		{"queue", s.Job.Queue}, {"payload", compact(s.Job.Payload)},
		{"timeout", s.Timeout}, {"total timeout", s.TotalTimeout}, {"retries", showRetry(s.Retry)}, {"overlap", s.Overlap},
		{"misfire", s.Misfire}, {"misfire grace", s.MisfireGrace},
		{"calendars", strings.Join(s.Calendars, ",")}, {"starts at", showTime(s.StartsAt)}, {"ends at", showTime(s.EndsAt)}, {"runs left", showLeft(s)},
		{"paused until", showTime(s.PausedUntil)}, {"pause note", s.PauseNote}, {"warnings", strings.Join(s.Warnings, "; ")},
		{"version", strconv.FormatInt(s.Version, 10)}, {"created", showTime(&s.CreatedAt)}, {"updated", showTime(&s.UpdatedAt)},
		{"hint", s.Hint},
	})
}

func lastRun(s api.Schedule) string {
	if s.LastRun == nil {
		return ""
	}
	return showTime(&s.LastRun.ScheduledFor) + " " + lastState(s)
}

func showLabels(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}

// showRetry says how often and after which delays a run is tried.
func showRetry(r api.Retry) string {
	return fmt.Sprintf("%d attempts, %s times %g up to %s, %s jitter", r.MaxAttempts, r.InitialDelay, r.Multiplier, r.MaxDelay, r.Jitter)
}

func showLeft(s api.Schedule) string {
	if s.RunsLeft == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d", *s.RunsLeft, s.MaxRuns)
}

func clockChanges(s api.Schedule) string {
	if s.DST == nil {
		return ""
	}
	return "gap " + s.DST.Gap + ", overlap " + s.DST.Overlap + "; " + s.DST.Reason
}

// hint says what may surprise the owner of a schedule.
func hint(s api.Schedule) string {
	notes := s.Warnings
	if s.Hint != "" {
		notes = append([]string{s.Hint}, notes...)
	}
	if len(notes) == 0 {
		return ""
	}
	return "; note: " + strings.Join(notes, "; ")
}

// say prints a sentence about what was done, or the API's JSON.
func (a *app) say(cmd *cobra.Command, v any, format string, args ...any) error {
	if asJSON(cmd) {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintln(a.Out, terminal.Printable(fmt.Sprintf(format, args...)))
	return err
}

func newSchedulesPause(a *app) *cobra.Command {
	var until, note string
	cmd := a.onSchedule(&cobra.Command{
		Use:     "pause SCHEDULE",
		Short:   "Pause a schedule: no new runs until it is resumed, or until a time",
		Example: "  fencepost schedules pause nightly-report --until 2027-01-05T09:00:00Z --note 'moving the database'",
	}, func(ctx context.Context, cmd *cobra.Command, c *client.Client, s api.Schedule) error {
		end, err := parseFlagTime("until", until)
		if err != nil {
			return err
		}
		if s, err = c.PauseUntil(ctx, s.ID, end, note); err != nil {
			return err
		}
		if s.PausedUntil != nil {
			return a.say(cmd, s, "paused %s until %s%s", s.Name, showTime(s.PausedUntil), nextRun(s))
		}
		return a.say(cmd, s, "paused %s", s.Name)
	})
	cmd.Flags().StringVar(&until, "until", "", "end the pause at this RFC 3339 time")
	cmd.Flags().StringVar(&note, "note", "", "what for, for people")
	return cmd
}

func newSchedulesResume(a *app) *cobra.Command {
	return a.onSchedule(&cobra.Command{
		Use:     "resume SCHEDULE",
		Short:   "Resume a paused schedule from its next slot",
		Example: "  fencepost schedules resume nightly-report",
	}, func(ctx context.Context, cmd *cobra.Command, c *client.Client, s api.Schedule) error {
		s, err := c.Resume(ctx, s.ID)
		if err != nil {
			return err
		}
		return a.say(cmd, s, "resumed %s%s", s.Name, nextRun(s))
	})
}

func nextRun(s api.Schedule) string {
	if s.NextRunAt == nil {
		return "; it will not run again"
	}
	return "; next run at " + showTime(s.NextRunAt)
}

func newSchedulesDelete(a *app) *cobra.Command {
	return a.onSchedule(&cobra.Command{
		Use:     "delete SCHEDULE",
		Short:   "Delete a schedule and cancel its waiting runs",
		Example: "  fencepost schedules delete nightly-report",
	}, func(ctx context.Context, cmd *cobra.Command, c *client.Client, s api.Schedule) error {
		if err := c.Delete(ctx, s.ID); err != nil || asJSON(cmd) {
			return err // the API answers with nothing
		}
		return a.say(cmd, nil, "deleted %s", s.Name)
	})
}

func newSchedulesTrigger(a *app) *cobra.Command {
	var payload string
	cmd := a.onSchedule(&cobra.Command{
		Use:     "trigger SCHEDULE",
		Short:   "Run a schedule at once",
		Example: "  fencepost schedules trigger nightly-report\n  fencepost schedules trigger nightly-report --payload '{\"day\": \"2026-11-30\"}'",
	}, func(ctx context.Context, cmd *cobra.Command, c *client.Client, s api.Schedule) error {
		var own json.RawMessage
		if payload != "" {
			if own = json.RawMessage(payload); !json.Valid(own) {
				return usageError("--payload is not JSON")
			}
		}
		run, err := c.Trigger(ctx, s.ID, own)
		if err != nil {
			return err
		}
		return a.say(cmd, run, "triggered %s: %s", s.Name, run.ID)
	})
	cmd.Flags().StringVar(&payload, "payload", "", "JSON for this run, instead of the schedule's payload")
	return cmd
}
