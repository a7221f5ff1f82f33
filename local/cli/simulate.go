package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/infra/exectarget"
	"github.com/fencepost/fencepost/infra/httptarget"
	"github.com/fencepost/fencepost/local/manifest"
	"github.com/fencepost/fencepost/local/simulate"
	"github.com/fencepost/fencepost/local/terminal"
)

const simulateHelp = `Play the schedules of a file on a virtual clock, without a database or a network,
and print which runs they make, which slots they skip and why: over a clock change,
in an outage, with runs that take too long. The file is one for apply; what is to
be played can be in it, and what has to hold:

  simulate:
    from: "2026-03-28T20:00"        # RFC 3339, or on the clocks of time_zone
    to: "2026-03-29T12:00"
    time_zone: Europe/Berlin
    outages:
      - {from: "2026-03-29T01:00", to: "2026-03-29T05:00"}
    run_time: 5m                    # of each run; 0s without it
    jobs:
      nightly-report: {run_time: 90m, fail: 1}   # attempts of each run that fail
    assert:
      - {schedule: nightly-report, runs: 1, skipped: {misfire: 0}, max_alive: 1}
      - {schedule: nightly-report, runs_at: ["2026-03-29T03:00"]}

Assertions are runs, at_least, at_most, skipped by reason, runs_at (slots),
no_runs_between, max_alive and state, with times on the clocks of the schedule's
zone. The exit code is 0 if all hold, 1 if one does not, 2 if the file or a flag is
wrong. The schedules are made at the beginning. Nothing is claimed in an outage; a
run that is under way goes on and ends. Spread and H are those of made-up ids.`

type simulateFlags struct {
	file, from, to, zone string
	outages              []string
	rows                 int
}

func newSimulate(a *app) *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use: "simulate -f FILE", Short: "Play schedules on a virtual clock, and check what they do", Long: simulateHelp,
		Example: "  fencepost simulate -f schedules.yaml\n  fencepost simulate -f schedules.yaml --time-zone Europe/Berlin --from 2026-03-28T20:00 --to 2026-03-29T12:00 --outage 2026-03-29T01:00..2026-03-29T05:00",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.simulate(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "file to play, - for standard input")
	flags.StringVar(&f.from, "from", "", "when it begins, instead of what the file says")
	flags.StringVar(&f.to, "to", "", "when it ends, instead of what the file says")
	flags.StringArrayVar(&f.outages, "outage", nil, "time without a claimer, as FROM..TO, instead of those of the file; can be repeated")
	flags.StringVar(&f.zone, "time-zone", "", "IANA zone of these times, where they have no offset (default the file's, or UTC)")
	flags.IntVar(&f.rows, "rows", 200, "how many rows to print at most; all are counted and checked")
	flags.Bool(jsonFlag, false, "print one JSON object, with all rows")
	_ = cmd.MarkFlagRequired("file") // fails only for a flag that does not exist
	return cmd
}

func (a *app) simulate(cmd *cobra.Command, f simulateFlags) error {
	p := &played{app: a, file: cmp.Or(strings.TrimPrefix(f.file, "-"), "stdin")}
	file, err := p.read(f)
	if err != nil {
		return err
	}
	if err := p.play(cmd.Context(), file); err != nil {
		return err
	}
	if asJSON(cmd) {
		err = a.printJSON(p.document())
	} else {
		err = p.print(f.rows)
	}
	if err != nil {
		return err
	}
	if n := p.failed(); n > 0 {
		return fmt.Errorf("%s of %d failed", plural(n, "assertion", "assertions"), len(p.verdicts))
	}
	return nil
}

// played is what came of a file.
type played struct {
	*app
	file      string
	section   simulate.Section
	item      *manifest.Item // of the section
	scenario  simulate.Scenario
	histories []*simulate.History
	verdicts  []simulate.Verdict
	mistakes  int
}

// read reads the file and what is to be played.
func (p *played) read(f simulateFlags) (*manifest.File, error) {
	in, closeFile, err := p.open(f.file)
	if err != nil {
		return nil, usageError("%s", err)
	}
	file, err := manifest.Read(in)
	closeFile()
	var faults manifest.Faults
	switch {
	case errors.As(err, &faults):
		for _, fault := range faults {
			p.fault(fault)
		}
		return nil, p.wrong()
	case err != nil:
		return nil, usageError("%s: %s", p.file, err)
	}
	p.item = &manifest.Item{Line: 1, Column: 1}
	if file.Simulation != nil {
		p.item = file.Simulation
	}
	if p.section, err = simulate.ReadSection(p.item.Body); err != nil {
		p.refuse("simulate", p.item, err)
		return nil, p.wrong()
	}
	if err := p.override(f); err != nil {
		return nil, err
	}
	if p.scenario, err = p.section.Scenario(); err != nil {
		if file.Simulation == nil || f.from != "" || f.to != "" || len(f.outages) > 0 {
			return nil, usageError("%s; give it by --from, --to, --outage and --time-zone, or in the section simulate of the file", err)
		}
		p.refuse("simulate", p.item, err)
		return nil, p.wrong()
	}
	return file, nil
}

// override lets flags go before the file.
func (p *played) override(f simulateFlags) error {
	s := &p.section
	s.From, s.To, s.TimeZone = cmp.Or(f.from, s.From), cmp.Or(f.to, s.To), cmp.Or(f.zone, s.TimeZone)
	if len(f.outages) > 0 {
		s.Outages = nil
	}
	for _, text := range f.outages {
		from, to, ok := strings.Cut(text, "..")
		if !ok {
			return usageError("--outage must look like FROM..TO")
		}
		s.Outages = append(s.Outages, simulate.SectionSpan{From: from, To: to})
	}
	if f.rows < 0 {
		return usageError("--rows must not be negative")
	}
	return nil
}

// play plays each schedule and checks what is said of it.
func (p *played) play(ctx context.Context, file *manifest.File) error {
	calendars := make([]simulate.Calendar, 0, len(file.Calendars))
	for i := range file.Calendars {
		content, err := api.DecodeCalendar(file.Calendars[i].Body)
		if err != nil {
			p.refuse("calendars", &file.Calendars[i], err)
			continue
		}
		calendars = append(calendars, simulate.Calendar{Name: file.Calendars[i].Name, Content: content})
	}
	known := map[string]*simulate.History{}
	for i := range file.Items {
		item := &file.Items[i]
		job, err := p.section.Job(item.Name)
		if err != nil {
			p.refuse("simulate", p.item, err)
			continue
		}
		h, err := p.playOne(ctx, item, calendars, job)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p.refuse(item.Name, item, err)
			continue
		}
		known[item.Name] = h
		p.histories = append(p.histories, h)
	}
	if p.mistakes == 0 {
		p.check(known)
	}
	if p.mistakes > 0 {
		return p.wrong()
	}
	return nil
}

func (p *played) playOne(ctx context.Context, item *manifest.Item, calendars []simulate.Calendar, job simulate.Job) (*simulate.History, error) {
	decoded, err := api.DecodeSchedule(item.Body)
	if err != nil {
		return nil, err
	}
	f := decoded.Fields()
	h, err := simulate.Play(ctx, p.scenario, f, playable(f.Job.Queue), calendars, job)
	if core.CodeOf(err) == core.CodeInvalid {
		return nil, decoded.Problem(err)
	}
	return h, err
}

// playable are targets that know the payloads of the built-in queues and take those
// of a queue of the user's own as they are.
func playable(queue string) map[string]core.Target {
	targets := map[string]core.Target{queue: core.Handler(nil)}
	targets["http"], targets[execQueue] = httptarget.New(httptarget.Config{}), exectarget.New(exectarget.Config{})
	return targets
}

// check holds the histories to the assertions.
func (p *played) check(known map[string]*simulate.History) {
	for i := range p.section.Assert {
		assertion := &p.section.Assert[i]
		field := fmt.Sprintf("assert[%d]", i)
		h := known[assertion.Schedule]
		if h == nil {
			p.refuse("simulate", p.item, core.Invalid(field+".schedule", "is not the name of a schedule of the file"))
			continue
		}
		verdicts, err := assertion.Check(h)
		var ce *core.Error
		if errors.As(err, &ce) {
			err = core.Invalid(strings.TrimSuffix(field+"."+ce.Field, "."), "%s", ce.Message)
		}
		if err != nil {
			p.refuse("simulate", p.item, err)
			continue
		}
		p.verdicts = append(p.verdicts, verdicts...)
	}
	for name := range p.section.Jobs {
		if known[name] == nil {
			p.refuse("simulate", p.item, core.Invalid("jobs."+name, "is not a schedule of the file"))
		}
	}
}

// refuse reports what is wrong with an item of the file, by its place.
func (p *played) refuse(what string, item *manifest.Item, err error) {
	var problem *api.Problem
	var ce *core.Error
	faults := []api.FieldError{{Message: err.Error()}}
	switch {
	case errors.As(err, &problem) && len(problem.Errors) > 0:
		faults = problem.Errors
	case errors.As(err, &problem):
		faults = []api.FieldError{{Field: problem.Field, Message: problem.Detail}}
	case errors.As(err, &ce):
		faults = []api.FieldError{{Field: ce.Field, Message: ce.Message}}
	}
	for _, f := range faults {
		line, column := item.Where(f.Field)
		field := strings.TrimSuffix(what+": "+f.Field, ": ")
		p.fault(manifest.Fault{Line: line, Column: column, Field: field, Message: f.Message})
	}
}

func (p *played) fault(f manifest.Fault) {
	p.mistakes++
	fmt.Fprintln(p.Out, terminal.Printable(p.file+":"+f.String()))
}

func (p *played) wrong() error {
	return usageError("nothing was played: %s", plural(p.mistakes, "mistake", "mistakes"))
}

func (p *played) failed() int {
	n := 0
	for _, v := range p.verdicts {
		if !v.Passed {
			n++
		}
	}
	return n
}
