package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/local/terminal"
)

// The bounds of a tail.
const (
	tailSchedules = 1000 // followed at once without names
	tailNames     = 50   // followed at once by name, a request each
	tailRuns      = 20   // of a schedule that are looked at each time
	tailOpen      = 1000 // runs that are alive and no longer in view
	tailOpenLooks = 20   // of these, looked at each time
	tailInterval  = time.Second
	minTail       = 200 * time.Millisecond
)

func newRunsTail(a *app) *cobra.Command {
	interval := tailInterval
	cmd := &cobra.Command{
		Use:   "tail [SCHEDULE...]",
		Short: "Follow runs as they come and change, of all schedules or of some",
		Long: `Follow runs: a line when a run is made and whenever its state changes, until
Ctrl-C. With names all runs of up to 50 schedules are followed; without, the last
run of each schedule, of the first 1,000. States that pass between two looks are not
seen, the last one is. An API that does not answer is waited for.`,
		Example: "  fencepost runs tail\n  fencepost runs tail nightly-report --interval 5s",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval < minTail {
				return usageError("--interval must be at least %s", minTail)
			}
			if len(args) > tailNames {
				return usageError("at most %d schedules can be named", tailNames)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			f := &follower{app: a, client: c, json: asJSON(cmd)}
			for _, name := range args {
				s, err := c.Find(cmd.Context(), name)
				if err != nil {
					return err
				}
				f.named = append(f.named, s)
			}
			return f.follow(cmd.Context(), interval)
		},
	}
	cmd.ValidArgsFunction = a.completeNames
	cmd.Flags().DurationVar(&interval, "interval", interval, "how often to look")
	return cmd
}

// follower prints what changes from one look to the next.
type follower struct {
	*app
	client *client.Client
	json   bool
	named  []api.Schedule // none: all
	// seen has the runs of the last look; nil before the first.
	seen map[string]followed
	// open are runs that were alive when they went out of view, the one that was
	// looked at longest ago first.
	open   []followed
	silent bool // the last look failed
	many   bool // it was said that there are more schedules than are followed
}

// followed is what a look sees of a run, and a line of JSON.
type followed struct {
	Seen         time.Time `json:"seen"` // by this machine's clock
	Schedule     string    `json:"schedule"`
	ID           string    `json:"id"`
	State        string    `json:"state"`
	ScheduledFor time.Time `json:"scheduled_for"`
	Attempt      int       `json:"attempt,omitempty"` // zero: not known, or none
	Why          string    `json:"why,omitempty"`
}

// follow looks until ctx ends, which is no error.
func (f *follower) follow(ctx context.Context, interval time.Duration) error {
	for ctx.Err() == nil {
		runs, err := f.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && f.silent:
			f.silent = false
			f.say("the API answers again")
		case err != nil && (f.seen == nil || !passing(err)):
			return err
		case err != nil && !f.silent:
			f.silent = true
			f.say("waiting for the API: " + oneLine(err.Error()))
		}
		if err == nil {
			if err := f.show(runs); err != nil {
				return err
			}
		}
		if f.Clock.Sleep(ctx, interval) != nil {
			return nil
		}
	}
	return nil
}

// passing reports whether an error may be over at the next look: nobody answered,
// or the API asks to come again.
func passing(err error) bool {
	var refusal *client.Error
	return !errors.As(err, &refusal) || refusal.Problem.Status >= http.StatusInternalServerError || refusal.Problem.Status == http.StatusTooManyRequests
}

func (f *follower) say(text string) {
	_, _ = fmt.Fprintln(f.Err, terminal.Printable(text)) // standard error is all there is to tell
}

// look returns the runs in view, and those that were alive when they left it.
func (f *follower) look(ctx context.Context) ([]followed, error) {
	var runs []followed
	var err error
	if len(f.named) == 0 {
		runs, err = f.lookAtAll(ctx)
	} else {
		runs, err = f.lookAtNamed(ctx)
	}
	if err != nil {
		return nil, err
	}
	f.keepOpen(runs)
	more, err := f.lookAtOpen(ctx)
	return append(more, runs...), err
}

func (f *follower) lookAtNamed(ctx context.Context) ([]followed, error) {
	var all []followed
	for _, s := range f.named {
		list, err := f.client.Runs(ctx, s.ID, client.RunFilter{}, client.Page{Limit: tailRuns})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		known := f.seen == nil || len(list.Items) < tailRuns
		for i := len(list.Items) - 1; i >= 0; i-- {
			r := newFollowed(s.Name, list.Items[i])
			_, seen := f.seen[r.ID]
			known = known || seen
			all = append(all, r)
		}
		if !known {
			f.say("more runs of " + s.Name + " came than a look shows; see fencepost runs list")
		}
	}
	return all, nil
}

func newFollowed(schedule string, r api.Run) followed {
	return followed{Schedule: schedule, ID: r.ID, State: r.State, ScheduledFor: r.ScheduledFor, Attempt: r.Attempt, Why: why(r)}
}

func (f *follower) lookAtAll(ctx context.Context) ([]followed, error) {
	var all []followed
	looked := 0
	for s, err := range f.client.AllSchedules(ctx, client.ScheduleFilter{}) {
		if err != nil {
			return nil, err
		}
		if looked == tailSchedules {
			if !f.many {
				f.many = true
				f.say(fmt.Sprintf("there are more than %d schedules; the others are followed by name", tailSchedules))
			}
			break
		}
		looked++
		if s.LastRun != nil && s.LastState != nil {
			all = append(all, followed{Schedule: s.Name, ID: s.LastRun.ID, State: *s.LastState, ScheduledFor: s.LastRun.ScheduledFor})
		}
	}
	return all, nil
}

// show prints what is new since the last look; the first one is only remembered.
func (f *follower) show(runs []followed) error {
	seen := make(map[string]followed, len(runs))
	for _, r := range runs {
		old, ok := f.seen[r.ID]
		seen[r.ID] = r
		if f.seen == nil || ok && old.State == r.State {
			continue
		}
		if err := f.print(r); err != nil {
			return err
		}
	}
	if f.seen == nil && f.Terminal {
		f.say("waiting for runs; Ctrl-C ends")
	}
	f.seen = seen
	return nil
}

func (f *follower) print(r followed) error {
	r.Seen = f.Clock.Now().UTC()
	if f.json {
		return f.printLine(r)
	}
	text := fmt.Sprintf("%s  %s  %s", r.Seen.Format(time.TimeOnly), r.Schedule, r.State)
	if r.Why != "" {
		text += ": " + shortText(r.Why)
	}
	text += "  slot " + r.ScheduledFor.UTC().Format(time.RFC3339)
	if r.Attempt > 0 {
		text += fmt.Sprintf("  attempt %d", r.Attempt)
	}
	_, err := fmt.Fprintln(f.Out, terminal.Printable(text+"  "+r.ID))
	return err
}
