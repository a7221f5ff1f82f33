package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/local/manifest"
)

// checkCalendars asks what would become of the files' calendars, refuses schedules
// that name one which neither exists nor is in a file, and shows the differences.
func (r *applier) checkCalendars(ctx context.Context) ([]schedules.Outcome, error) {
	if len(r.calendars) == 0 && !slices.ContainsFunc(r.wanted, func(w wanted) bool { return len(w.calendars()) > 0 }) {
		return nil, nil
	}
	existing, err := r.client.Calendars(ctx)
	if err != nil {
		return nil, err
	}
	plan := make([]schedules.Outcome, len(r.calendars))
	known := map[string]bool{}
	for _, k := range existing {
		known[k.Name] = true
	}
	for i := range r.calendars {
		w := &r.calendars[i]
		known[w.Name] = true
		if plan[i], err = r.checkCalendar(ctx, w, existing); err != nil {
			return nil, err
		}
	}
	for i := range r.wanted {
		w := &r.wanted[i]
		for n, name := range w.calendars() {
			if known[name] {
				continue
			}
			fault := api.FieldError{Field: fmt.Sprintf("calendars[%d]", n), Message: "is neither a calendar of yours nor one of these files"}
			if err := r.refuseWanted(w, &api.Problem{Errors: []api.FieldError{fault}}); err != nil {
				return nil, err
			}
		}
	}
	return plan, nil
}

// calendars returns the names of the calendars that a schedule's body has. Where it
// is wrong the API says so.
func (w *wanted) calendars() []string {
	var body struct {
		Calendars []string `json:"calendars"`
	}
	if err := json.Unmarshal(w.Body, &body); err != nil {
		return nil
	}
	return body.Calendars
}

// checkCalendar does a dry run of one calendar and keeps what it would change.
func (r *applier) checkCalendar(ctx context.Context, w *wanted, existing []api.Calendar) (schedules.Outcome, error) {
	would, err := r.client.PutCalendar(ctx, w.Name, w.Body, true)
	var refused *client.Error
	switch {
	case client.IsRefusal(err) && errors.As(err, &refused):
		return "", r.refuseWanted(w, &refused.Problem)
	case err != nil:
		return "", err
	}
	outcome := schedules.Outcome(would.Outcome)
	if outcome == schedules.Unchanged {
		return outcome, nil
	}
	old := api.Calendar{}
	if at := slices.IndexFunc(existing, func(k api.Calendar) bool { return k.Name == w.Name }); at >= 0 {
		old = existing[at]
	}
	changes, err := manifest.DiffCalendar(&old, w.Body)
	if err != nil {
		return outcome, fmt.Errorf("compare calendar %q: %w", w.Name, err)
	}
	r.changes = append(r.changes, change{string(outcome) + " calendar", w.Name, changes})
	return outcome, nil
}

// change is what is shown of a calendar once all is known to be right.
type change struct {
	what, name string
	fields     []manifest.Change
}

// showCalendars prints what was found to change.
func (r *applier) showCalendars() error {
	for _, c := range r.changes {
		if err := r.printChanges(c.what, c.name, c.fields); err != nil {
			return err
		}
	}
	return nil
}

// writeCalendars puts the calendars that are to change, before the schedules that
// may name them.
func (r *applier) writeCalendars(ctx context.Context, plan []schedules.Outcome) error {
	for i, outcome := range plan {
		if outcome == schedules.Unchanged {
			continue
		}
		if _, err := r.client.PutCalendar(ctx, r.calendars[i].Name, r.calendars[i].Body, false); err != nil {
			return fmt.Errorf("put calendar %q: %w; apply again to go on", r.calendars[i].Name, err)
		}
	}
	return nil
}

// refusals says how much of the files was refused.
func (r *applier) refusals() string {
	if len(r.calendars) > 0 {
		return plural(r.counts.refused, "schedule or calendar was", "schedules and calendars were")
	}
	return plural(r.counts.refused, "schedule was", "schedules were")
}
