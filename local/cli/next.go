package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/spec"
	"github.com/fencepost/fencepost/local/terminal"
)

const (
	defaultSlots = 5
	maxSlots     = 1000
)

// nextFlags are the flags of next.
type nextFlags struct {
	zone, from   string
	gap, overlap string
	count        int
	lines        bool
}

func newNext(a *app) *cobra.Command {
	var f nextFlags
	cmd := &cobra.Command{
		Use:   "next SPEC",
		Short: "Tell when a spec comes next, and what it was taken for",
		Long: `Tell when a spec comes next, in plain English and as times, without asking any
API: the rules and the time zones are those of this program.

With --jsonl, it reads a case a line from standard input,
{"spec": "30 2 * * *", "tz": "Europe/Berlin", "from": "2026-03-28T00:00:00Z", "count": 5},
and answers each with a line, {"next": ["2026-03-28T01:30:00Z", ...]} or {"error": "..."}.`,
		Example: `  fencepost next "30 2 * * *" --tz Europe/Berlin --from 2026-03-28T00:00:00Z
  fencepost next --jsonl < cases.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.lines && len(args) > 0:
				return usageError("--jsonl takes its specs from standard input")
			case f.lines:
				return a.nextLines(cmd.Context())
			case len(args) == 0:
				return usageError("a spec is missing; quote it, as in %s", `fencepost next "30 2 * * *"`)
			}
			return a.next(cmd, args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.zone, "tz", "", "IANA zone of the spec (default UTC)")
	flags.StringVar(&f.from, "from", "", "only slots after this time, RFC 3339 (default now)")
	flags.IntVarP(&f.count, "count", "n", defaultSlots, "how many slots, up to 1000")
	flags.StringVar(&f.gap, "dst-gap", "auto", "what clock changes skip: auto, run_after or skip")
	flags.StringVar(&f.overlap, "dst-overlap", "auto", "what clock changes repeat: auto, first or both")
	flags.BoolVar(&f.lines, "jsonl", false, "read cases from standard input, a JSON object a line")
	flags.Bool(jsonFlag, false, "print what the API's /v1/next answers")
	return cmd
}

func (a *app) next(cmd *cobra.Command, text string, f nextFlags) error {
	s, from, err := a.asked(text, f)
	if err != nil {
		return err
	}
	parsed, err := spec.Parse(&s, from)
	if err != nil {
		return err
	}
	p := api.NewPreview(&s, parsed, from, f.count)
	if asJSON(cmd) {
		return a.printJSON(p)
	}
	return a.printPreview(p)
}

// asked makes a schedule of what was asked about.
func (a *app) asked(text string, f nextFlags) (core.Schedule, time.Time, error) {
	s := core.Schedule{Spec: text, TimeZone: f.zone}
	from := a.Clock.Now()
	if f.from != "" {
		if err := from.UnmarshalText([]byte(f.from)); err != nil {
			return s, from, usageError("--from must be a time such as 2026-03-28T00:00:00Z")
		}
	}
	if f.count < 1 || f.count > maxSlots {
		return s, from, usageError("--count must be from 1 to %d", maxSlots)
	}
	switch f.gap {
	case "auto":
	case string(core.DSTGapRunAfter), string(core.DSTGapSkip):
		s.DSTGap = core.DSTGap(f.gap)
	default:
		return s, from, usageError("--dst-gap must be auto, run_after or skip")
	}
	switch f.overlap {
	case "auto":
	case string(core.DSTOverlapFirst), string(core.DSTOverlapBoth):
		s.DSTOverlap = core.DSTOverlap(f.overlap)
	default:
		return s, from, usageError("--dst-overlap must be auto, first or both")
	}
	return s, from, nil
}

// printPreview prints what the spec was taken for above its slots.
func (a *app) printPreview(p api.Preview) error {
	lines := []string{
		p.Spec + ": " + p.Description,
		fmt.Sprintf("clock changes: gap %s, overlap %s; %s", p.DST.Gap, p.DST.Overlap, p.DST.Reason),
	}
	if p.TimeZoneTarget != "" {
		lines = append(lines, p.TimeZone+" stands for "+p.TimeZoneTarget)
	}
	if p.Spread != "0s" {
		lines = append(lines, "starts are spread over "+p.Spread+" after each slot")
	}
	if p.Hint != "" {
		lines = append(lines, p.Hint)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(a.Out, terminal.Printable(line)); err != nil {
			return err
		}
	}
	rows := make([][]string, len(p.Next))
	for i, s := range p.Next {
		rows[i] = []string{s.Local, s.ScheduledFor.Format(time.RFC3339), s.Reason}
	}
	return a.printTable([]string{"LOCAL", "UTC", "CLOCK CHANGE"}, rows)
}

var errNoSlot = errors.New("no slot comes after that time")
