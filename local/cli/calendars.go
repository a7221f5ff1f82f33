package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/local/manifest"
)

func newCalendars(a *app) *cobra.Command {
	cmd := group("calendars", "Show and change the calendars in which slots are closed",
		newCalendarsList(a), newCalendarsGet(a), newCalendarsPut(a), newCalendarsDelete(a))
	addJSON(cmd)
	return cmd
}

func newCalendarsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List calendars by name", Example: "  fencepost calendars list", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.Calendars(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON(cmd) {
				return a.printJSON(api.List[api.Calendar]{Items: all})
			}
			rows := make([][]string, len(all))
			for i, k := range all {
				rows[i] = []string{k.Name, cmp.Or(k.TimeZone, utc), countClosed(k), shortText(k.Note), showTime(&k.UpdatedAt)}
			}
			return a.printTable([]string{"NAME", "TIME ZONE", "CLOSED", "NOTE", "UPDATED"}, rows)
		},
	}
}

// countClosed says how much a calendar closes.
func countClosed(k api.Calendar) string {
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{{len(k.Dates), "date", "dates"}, {len(k.Ranges), "range", "ranges"}, {len(k.Weekly), "weekly time", "weekly times"}} {
		if p.n > 0 {
			parts = append(parts, plural(p.n, p.one, p.many))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "never")
}

func newCalendarsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get CALENDAR", Short: "Show a calendar, in the form in which put takes it back",
		Example: "  fencepost calendars get holidays > holidays.yaml", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			k, err := c.Calendar(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON(cmd) {
				return a.printJSON(k)
			}
			return manifest.WriteCalendar(a.Out, &k)
		},
	}
}

func newCalendarsPut(a *app) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "put CALENDAR -f FILE",
		Short: "Create or replace a calendar by a file",
		Long: `Create or replace a calendar by a file in YAML or JSON:

  time_zone: Europe/Berlin
  dates: ["2026-12-25", "2026-12-26"]
  ranges:
    - {from: "2026-12-31T18:00", to: "2027-01-02"}
  weekly:
    - {days: [sat, sun]}
    - {days: [fri], from: "18:00", to: "24:00"}

A slot in a closed time is recorded as skipped, with the reason blackout, for each
schedule that names the calendar. Once this command has returned, that holds for
every slot that has not been claimed.`,
		Example: "  fencepost calendars put holidays -f holidays.yaml", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, closeFile, err := a.open(name)
			if err != nil {
				return err
			}
			defer closeFile()
			body, err := manifest.ReadCalendar(in)
			var faults manifest.Faults
			if errors.As(err, &faults) {
				return fmt.Errorf("%s:%w", name, err)
			}
			if err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			k, err := c.PutCalendar(cmd.Context(), args[0], body, false)
			if err != nil {
				return err
			}
			return a.say(cmd, k, "%s calendar %s: %s", k.Outcome, k.Name, countClosed(k.Calendar))
		},
	}
	cmd.Flags().StringVarP(&name, "file", "f", "", "file to read, - for standard input")
	_ = cmd.MarkFlagRequired("file") // fails only for a flag that does not exist
	return cmd
}

func newCalendarsDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete CALENDAR", Short: "Delete a calendar that no schedule names",
		Example: "  fencepost calendars delete holidays", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if err := c.DeleteCalendar(cmd.Context(), args[0]); err != nil || asJSON(cmd) {
				return err // the API answers with nothing
			}
			return a.say(cmd, nil, "deleted calendar %s", args[0])
		},
	}
}
