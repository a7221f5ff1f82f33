package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

// jobFlags make up a job, which is replaced as a whole.
const jobFlags = " command url method header body queue payload "

// retryFlags are members of retry, each of which is replaced by itself.
const retryFlags = " max-attempts initial-delay max-delay multiplier jitter "

func newSchedulesEdit(a *app) *cobra.Command {
	var f createFlags
	var rename string
	cmd := a.onSchedule(&cobra.Command{
		Use:   "edit SCHEDULE",
		Short: "Change fields of a schedule; those that are not given stay",
		Long: `Change the fields of a schedule for which there is a flag; the others stay. The
job and the labels are replaced as a whole. Slots that were due before the edit
still get their runs. If somebody else changes the schedule meanwhile, nothing is
changed.`,
		Example: "  fencepost schedules edit nightly-report --spec '0 4 * * *' --time-zone Europe/Berlin\n  fencepost schedules edit nightly-report --overlap allow",
	}, func(ctx context.Context, cmd *cobra.Command, c *client.Client, s api.Schedule) error {
		body, err := f.changes(cmd, rename)
		if err != nil {
			return err
		}
		s, err = c.EditVersion(ctx, s.ID, s.Version, body)
		if err != nil {
			return err
		}
		return a.say(cmd, s, "edited %s: version %d%s%s", s.Name, s.Version, nextRun(s), hint(s))
	})
	f.register(cmd.Flags())
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { // what is not given stays
		flag.Usage = withoutDefault(flag.Usage)
	})
	cmd.Flags().StringVar(&rename, "rename", "", "another name")
	offerPolicies(cmd)
	cmd.MarkFlagsMutuallyExclusive("command", "url", "queue")
	return cmd
}

// withoutDefault cuts what the help of a flag says of its default.
func withoutDefault(usage string) string {
	text, _, _ := strings.Cut(usage, " (default ")
	return text
}

// flagValue returns a flag's value as JSON has it.
func flagValue(flag *pflag.Flag) any {
	if flag.Value.Type() == "string" {
		return flag.Value.String()
	}
	return json.RawMessage(flag.Value.String()) // a number or a switch
}

// changes returns the fields whose flags were given, as the API takes them.
func (f *createFlags) changes(cmd *cobra.Command, rename string) (json.RawMessage, error) {
	changed := cmd.Flags().Changed
	f.bodyGiven, f.payloadGiven, f.attemptsGiven = changed("body"), changed("payload"), changed("max-attempts")
	given, retry := map[string]any{}, map[string]any{}
	if changed("rename") {
		given["name"] = rename
	}
	var err error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch name := strings.ReplaceAll(flag.Name, "-", "_"); {
		case flag.Name == "rename" || flag.Name == jsonFlag:
		case strings.Contains(jobFlags, " "+flag.Name+" "):
			if given["job"] == nil && err == nil {
				given["job"], err = f.job()
			}
		case strings.Contains(retryFlags, " "+flag.Name+" "):
			given["retry"] = retry
			retry[name] = flagValue(flag)
		case flag.Name == "label":
			given["labels"] = f.in.Labels
		case flag.Name == "calendar": // --calendar '' is none
			given["calendars"] = append([]string{}, f.in.Calendars...)
		default:
			given[name] = flagValue(flag)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case len(given) == 0:
		return nil, usageError("nothing is to be changed; give a flag for each field that is")
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, fmt.Errorf("encode the changes: %w", err)
	}
	return text, nil
}
