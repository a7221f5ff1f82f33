package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/local/manifest"
	"github.com/fencepost/fencepost/local/terminal"
)

const applyHelp = `Make schedules what files say: create those that are missing, replace those that
differ, leave the others alone. The differences are printed, field by field.

A file is YAML or JSON: a list of schedules with the fields that the API takes,
and optionally defaults, which are merged under each of them:

  defaults:
    time_zone: Europe/Berlin
  calendars:
    - name: holidays
      dates: ["2026-12-25", "2026-12-26"]
  schedules:
    - name: nightly-report
      spec: "30 2 * * 1-5"
      calendars: [holidays]
      job:
        http: {url: "https://example.com/report"}

Calendars are made like the schedules, before them; none is ever deleted.

What a schedule leaves out gets its default, even if it was set otherwise before;
whether it is paused stays as it is. Everything is checked before anything is
written: if one schedule is refused, none is applied, and the exit code is 1.
A file may name a set with set: NAME, which owns its schedules. With --prune the
schedules of the set that no file has any more are deleted, and this is shown too:
give all files of a set at once. A schedule of another set is taken over from it.
- is standard input; of a folder all .yaml, .yml and .json files are taken.`

func newApply(a *app) *cobra.Command {
	var names []string
	var dryRun, prune bool
	cmd := &cobra.Command{
		Use:     "apply -f FILE",
		Short:   "Make schedules what files say, and show the difference",
		Long:    applyHelp,
		Example: "  fencepost apply -f schedules.yaml --dry-run\n  fencepost apply -f schedules/ --prune",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			r := &applier{app: a, client: c, dryRun: dryRun, prune: prune, sets: map[string]bool{}}
			if err := r.read(names); err != nil {
				return err
			}
			return r.apply(cmd.Context())
		},
	}
	cmd.Flags().StringArrayVarP(&names, "file", "f", nil, "file or folder to apply, - for standard input; can be repeated")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be done, and change nothing")
	cmd.Flags().BoolVar(&prune, "prune", false, "delete the schedules of the files' sets that the files do not have")
	_ = cmd.MarkFlagRequired("file") // fails only for a flag that does not exist
	return cmd
}

// applier makes schedules what files say.
type applier struct {
	*app
	client *client.Client
	dryRun bool
	prune  bool
	sets   map[string]bool // that the files name
	wanted []wanted
	// calendars are the files', changes what applying would do to them.
	calendars []wanted
	changes   []change
	counts    tally
}

// wanted is a schedule or a calendar of a file.
type wanted struct {
	manifest.Item
	file string
}

// read reads all files, and reports all that is wrong with them.
func (r *applier) read(names []string) error {
	files, err := expand(names)
	if err != nil {
		return err
	}
	mistakes := 0
	known := map[string]*wanted{}
	for _, name := range files {
		in, closeFile, err := r.open(name)
		if err != nil {
			return err
		}
		file, err := manifest.Read(in)
		closeFile()
		var faults manifest.Faults
		switch {
		case errors.As(err, &faults):
			for _, f := range faults {
				mistakes++
				if err := r.refuse(name, f); err != nil {
					return err
				}
			}
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		if r.sets[file.Set] = true; r.prune && file.Set == "" {
			return fmt.Errorf("%s names no set: write set: NAME at its top, so that --prune knows what it owns", name)
		}
		twice, err := r.take(name, file, known)
		if err != nil {
			return err
		}
		mistakes += twice
	}
	if mistakes > 0 {
		return fmt.Errorf("nothing was applied: %s", plural(mistakes, "mistake", "mistakes"))
	}
	return nil
}

// take adds what a file has, and reports what is in another one too.
func (r *applier) take(name string, file *manifest.File, known map[string]*wanted) (mistakes int, err error) {
	for _, part := range []struct {
		word  string
		items []manifest.Item
		to    *[]wanted
	}{{"schedule ", file.Items, &r.wanted}, {"calendar ", file.Calendars, &r.calendars}} {
		for _, item := range part.items {
			if other := known[part.word+item.Name]; other != nil {
				mistakes++
				f := manifest.Fault{Line: item.Line, Column: item.Column, Field: item.Name, Message: "is in " + other.file + " too"}
				if err := r.refuse(name, f); err != nil {
					return mistakes, err
				}
			}
			w := wanted{item, name}
			known[part.word+item.Name] = &w
			*part.to = append(*part.to, w)
		}
	}
	return mistakes, nil
}

// expand replaces folders by their files, in the order of their names.
func expand(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err == nil && !info.IsDir() || errors.Is(err, fs.ErrNotExist) {
			out = append(out, name) // opening it says that it does not exist
			continue
		}
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, err
		}
		before := len(out)
		for _, e := range entries {
			if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
				out = append(out, filepath.Join(name, e.Name()))
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("%s has no .yaml, .yml or .json files", name)
		}
	}
	return out, nil
}

// refuse reports a fault by its place, as compilers do.
func (r *applier) refuse(file string, f manifest.Fault) error {
	r.counts.refused++
	_, err := fmt.Fprintln(r.Out, terminal.Printable(cmp.Or(strings.TrimPrefix(file, "-"), "stdin")+":"+f.String()))
	return err
}

// apply asks what would become of each schedule, shows it, and then does it.
func (r *applier) apply(ctx context.Context) error {
	calendars, err := r.checkCalendars(ctx)
	if err != nil {
		return err
	}
	plan, err := r.ask(ctx)
	if err != nil {
		return err
	}
	if r.counts.refused > 0 {
		return fmt.Errorf("nothing was applied: %s refused", r.refusals())
	}
	if err := r.showCalendars(); err != nil {
		return err
	}
	if err := r.show(ctx, plan); err != nil {
		return err
	}
	if !r.dryRun {
		if err := r.writeCalendars(ctx, calendars); err != nil {
			return err
		}
		if err := r.write(ctx, plan); err != nil {
			return err
		}
	}
	if r.prune && r.counts.refused == 0 {
		if err := r.pruneSets(ctx); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(r.Out, dry(r.dryRun)+r.counts.String()); err != nil {
		return err
	}
	if r.counts.refused > 0 {
		return fmt.Errorf("%s refused", plural(r.counts.refused, "schedule was", "schedules were"))
	}
	return nil
}

// ask returns the outcomes of a dry run, and reports what was refused.
func (r *applier) ask(ctx context.Context) ([]schedules.Outcome, error) {
	plan := make([]schedules.Outcome, len(r.wanted))
	err := r.bulk(ctx, r.client, r.bodies(nil), true, func(i int, item api.BatchItem) error {
		plan[i] = schedules.Outcome(item.Outcome)
		if item.Problem != nil {
			return r.refuseItem(i, item.Problem)
		}
		r.counts.add(item)
		return nil
	})
	return plan, err
}

// bodies returns what is to be sent: what has one of the outcomes of the plan, or
// everything without a plan.
func (r *applier) bodies(plan []schedules.Outcome) []json.RawMessage {
	var out []json.RawMessage
	for i, w := range r.wanted {
		if plan == nil || plan[i] != schedules.Unchanged {
			out = append(out, w.Body)
		}
	}
	return out
}

// refuseItem reports each fault that the API found with a schedule where it stands
// in the file.
func (r *applier) refuseItem(i int, p *api.Problem) error { return r.refuseWanted(&r.wanted[i], p) }

func (r *applier) refuseWanted(w *wanted, p *api.Problem) error {
	faults := p.Errors
	if len(faults) == 0 {
		faults = []api.FieldError{{Field: p.Field, Message: p.Detail}}
	}
	before := r.counts.refused
	for _, fault := range faults {
		line, column := w.Where(fault.Field)
		f := manifest.Fault{Line: line, Column: column, Field: w.Name, Message: fault.Message}
		if fault.Field != "" {
			f.Message = fault.Field + ": " + fault.Message
		}
		if err := r.refuse(w.file, f); err != nil {
			return err
		}
	}
	r.counts.refused = before + 1 // it is one
	return nil
}

// write does what was planned and counts what came of it, which differs from the
// plan when somebody else was faster.
func (r *applier) write(ctx context.Context, plan []schedules.Outcome) error {
	var at []int
	for i, outcome := range plan {
		if outcome != schedules.Unchanged {
			at = append(at, i)
		}
	}
	done := tally{unchanged: len(plan) - len(at)}
	err := r.bulk(ctx, r.client, r.bodies(plan), false, func(n int, item api.BatchItem) error {
		done.add(item)
		if item.Problem != nil {
			return r.refuseItem(at[n], item.Problem)
		}
		return nil
	})
	r.counts = done
	if err != nil {
		return fmt.Errorf("after %s: %w; apply again to go on", done, err)
	}
	return nil
}
