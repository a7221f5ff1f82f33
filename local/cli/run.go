package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/local/terminal"
)

func newRunsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "get RUN",
		Short:   "Show a run with what it printed and its failed attempts, by its id",
		Example: "  fencepost runs get run_040t4bx7ga2qvsw4k5kcyq2q060g01k1h8kvfh80dhqp6rbc",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: a.completeRuns(nil),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			run, err := c.Run(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON(cmd) {
				return a.printJSON(run)
			}
			return a.printRun(run)
		},
	}
}

// blocks are the members of a result that hold what a job printed or was answered.
// They are shown line by line.
func blocks() []string { return []string{"output", "body"} }

func (a *app) printRun(r api.RunDetail) error {
	result, printed := splitResult(r.Result)
	fields := [][2]string{
		{"id", r.ID}, {"schedule", r.ScheduleID}, {"slot", showSlots(r.Run)}, {"state", r.State}, {"cause", r.Cause},
		{"reason", r.Reason}, {"queue", r.Queue}, {"attempts", fmt.Sprintf("%d of %d", r.Attempt, r.MaxAttempts)},
		{"created", showTime(&r.CreatedAt)}, {"started", showTime(r.StartedAt)}, {"finished", showTime(r.FinishedAt)},
		{"covers from", showTime(r.CoversFrom)}, {"covers to", showTime(r.CoversTo)}, {"payload", compact(r.Payload)},
	}
	if r.CancelRequested {
		fields = append(fields, [2]string{"cancel", "requested"})
	}
	fields = append(fields, result...)
	if !strings.Contains(strings.TrimSpace(r.Error), "\n") {
		fields = append(fields, [2]string{"error", r.Error})
	} else {
		printed = append(printed, [2]string{"error", r.Error})
	}
	for _, t := range r.Attempts {
		name := fmt.Sprintf("attempt %d", t.Number)
		fields = append(fields, [2]string{name, showTime(t.FinishedAt) + " " + firstLine(t.Error)})
		if t.Number != r.Attempt && strings.Contains(strings.TrimSpace(t.Error), "\n") {
			printed = append(printed, [2]string{"error of " + name, t.Error})
		}
	}
	if err := a.printFields(fields); err != nil {
		return err
	}
	for _, b := range printed {
		if err := a.printBlock(b[0], b[1]); err != nil {
			return err
		}
	}
	return nil
}

// splitResult returns the members of a result as fields, and those that are long
// texts for blocks of their own. What is no object is one field.
func splitResult(raw json.RawMessage) (fields, printed [][2]string) {
	var members map[string]json.RawMessage
	switch err := json.Unmarshal(raw, &members); {
	case err == nil && members == nil:
		return nil, nil // null
	case err != nil:
		return [][2]string{{"result", compact(raw)}}, nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var text string
		if slices.Contains(blocks(), name) && json.Unmarshal(members[name], &text) == nil {
			printed = append(printed, [2]string{name, cmp.Or(text, "(nothing)")})
			continue
		}
		fields = append(fields, [2]string{strings.ReplaceAll(name, "_", " "), compact(members[name])})
	}
	return fields, printed
}

// printBlock writes a text line by line under its name.
func (a *app) printBlock(name, text string) error {
	if _, err := fmt.Fprintf(a.Out, "%s:\n", name); err != nil {
		return err
	}
	for line := range strings.Lines(strings.TrimRight(text, "\r\n") + "\n") {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "        ")
		if _, err := fmt.Fprintln(a.Out, strings.TrimRight("  "+terminal.Printable(line), " ")); err != nil {
			return err
		}
	}
	return nil
}

func firstLine(text string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rest != "" {
		line += " ..."
	}
	return line
}
