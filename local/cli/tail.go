package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/local/terminal"
)

// The bounds of a tail.
const (
	tailSchedules = 1000 // followed at once
	tailRuns      = 20   // of a schedule that are looked at each time
	tailEvery     = time.Second
	minTailEvery  = 200 * time.Millisecond
)

func newRunsTail(a *app) *cobra.Command {
	every := tailEvery
	cmd := &cobra.Command{
		Use:   "tail [SCHEDULE...]",
		Short: "Follow runs as they start and end, of all schedules or of some",
		Long: `Follow runs: a line when a run is made and whenever its state changes, until
Ctrl-C. Without a name the last run of each schedule is followed, of up to 1,000
schedules; with names all runs of these are. An API that does not answer is waited
for.`,
		ValidArgsFunction: a.completeNames,

		Example: "  fencepost runs tail\n  fencepost runs tail nightly-report --every 5s",
		RunE: func(cmd *cobra.Command, args []string) error {
			if every < minTailEvery {
				return usageError("--every must be at least %s", minTailEvery)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			t := &follower{app: a, client: c}
			for _, name := range args {
				s, err := c.Find(cmd.Context(), name)
				if err != nil {
					return err
				}
				t.named = append(t.named, s)
			}
			return t.follow(cmd.Context(), every)
		},
	}
	cmd.Flags().DurationVar(&every, "every", tailEvery, "how often to look")
	return cmd
}

// follower prints what changes from one look to the next.
type follower struct {
	*app
	client *client.Client
	named  []api.Schedule // nil: all
	seen   map[string]string
	silent bool // the last look failed
}

// follow looks until ctx ends, which is no error.
func (f *follower) follow(ctx context.Context, every time.Duration) error {
	for ctx.Err() == nil {
		runs, err := f.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case client.IsRefusal(err), err != nil && !f.silent && f.seen == nil:
			return err
		case err != nil && !f.silent:
			f.silent = true
			f.say("waiting for the API: " + oneLine(err.Error()))
		case err == nil:
			if f.silent {
				f.silent = false
				f.say("the API answers again")
			}
			if err := f.print(runs); err != nil {
				return err
			}
		}
		if f.Clock.Sleep(ctx, every) != nil {
			return nil
		}
	}
	return nil
}

func (f *follower) say(text string) {
	_, _ = fmt.Fprintln(f.Err, terminal.Printable(text)) // standard error is all there is to tell
}

// followed is what a look sees of a run.
type followed struct {
	id, name, state, why string
	slot                 time.Time
}

func (f *follower) look(ctx context.Context) ([]followed, error) {
	if f.named == nil {
		return f.lookAtAll(ctx)
	}
	var all []followed
	for _, s := range f.named {
		list, err := f.client.Runs(ctx, s.ID, client.RunFilter{}, client.Page{Limit: tailRuns})
		if err != nil {
			return nil, err
		}
		for i := len(list.Items) - 1; i >= 0; i-- {
			r := list.Items[i]
			all = append(all, followed{r.ID, s.Name, r.State, why(r), r.ScheduledFor})
		}
	}
	return all, nil
}

func (f *follower) lookAtAll(ctx context.Context) ([]followed, error) {
	var all []followed
	looked := 0
	for s, err := range f.client.AllSchedules(ctx, client.ScheduleFilter{}) {
		if err != nil {
			return nil, err
		}
		if s.LastRun != nil {
			all = append(all, followed{s.LastRun.ID, s.Name, lastState(s), "", s.LastRun.ScheduledFor})
		}
		if looked++; looked == tailSchedules {
			break
		}
	}
	return all, nil
}

// print prints what is new since the last look; the first look is only remembered.
func (f *follower) print(runs []followed) error {
	seen := make(map[string]string, len(runs))
	for _, r := range runs {
		seen[r.id] = r.state
		if old, ok := f.seen[r.id]; f.seen == nil || ok && old == r.state {
			continue
		}
		text := fmt.Sprintf("%s  %s  %s  %s", r.slot.UTC().Format(time.RFC3339), r.name, r.state, r.id)
		if r.why != "" {
			text += "  " + shortText(r.why)
		}
		if _, err := fmt.Fprintln(f.Out, terminal.Printable(text)); err != nil {
			return err
		}
	}
	f.seen = seen
	return nil
}
