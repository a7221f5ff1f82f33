package api

import (
	"context"
	"net/http"
	"net/url"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

type (
	schedulesInput struct {
		Limit  string `query:"limit"`
		Cursor string `query:"cursor" doc:"The next_cursor of the page before, with the same filters."`
		State  string `query:"state" doc:"Only schedules in these states: active, paused, completed, with commas between them." example:"active,paused"`
		Queue  string `query:"queue" doc:"Only schedules whose job names this queue." example:"http"`
		Name   string `query:"name" doc:"Only the schedule of this name." example:"nightly-report"`
		Prefix string `query:"name_prefix" doc:"Only schedules whose name begins so." example:"nightly-"`
		Labels string `query:"labels" doc:"Only schedules whose labels meet all of these conditions: key=value, key!=value, key (is there), !key (is not), with commas between them." example:"team=payments,!legacy"`
	}
	schedulesOutput struct{ Body List[Schedule] }

	runsInput struct {
		ID     string `path:"id" doc:"The schedule's id."`
		Limit  string `query:"limit"`
		Cursor string `query:"cursor" doc:"The next_cursor of the page before, with the same filters."`
		State  string `query:"state" doc:"Only runs in these states, with commas between them: queued, running, retrying, succeeded, dead (or failed), skipped, canceled." example:"dead,skipped"`
		From   string `query:"from" doc:"Only runs whose slot is not before this time, RFC 3339." example:"2026-12-01T00:00:00Z"`
		To     string `query:"to" doc:"Only runs whose slot is before this time, RFC 3339." example:"2026-12-02T00:00:00Z"`
	}
	runsOutput struct{ Body List[Run] }
)

const shortPages = "A page may have fewer items than the limit, or none, although there are more: go on while next_cursor is not null. " +
	"It ends at 4 MiB of payloads or results, and a filter looks at some 10,000 rows before it answers with what it has."

func (a *api) addLists() {
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "listSchedules", Method: http.MethodGet, Path: "/v1/schedules", Tags: []string{"schedules"},
		Summary: "List schedules, oldest first", Description: shortPages, Parameters: limitParam(),
	}}, a.listSchedules)
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "listRuns", Method: http.MethodGet, Path: "/v1/schedules/{id}/runs", Tags: []string{"runs"},
		Summary: "List a schedule's runs, newest slot first", Description: shortPages, Parameters: limitParam(),
	}}, a.listRuns)
}

func (a *api) listSchedules(ctx context.Context, tenant uuid.UUID, in *schedulesInput) (*schedulesOutput, error) {
	l := listing{"schedules", tenant, url.Values{
		"state": {in.State}, "queue": {in.Queue}, "name": {in.Name}, "name_prefix": {in.Prefix}, "labels": {in.Labels},
	}}
	limit, err := parseLimit(in.Limit)
	if err != nil {
		return nil, err
	}
	position, err := l.parse(in.Cursor, len(uuid.UUID{}))
	if err != nil {
		return nil, err
	}
	q := core.ScheduleQuery{Limit: limit, Queue: in.Queue, NamePrefix: in.Prefix}
	copy(q.After[:], position)
	if q.States, err = states("state", in.State, core.ScheduleActive, core.SchedulePaused, core.ScheduleCompleted); err != nil {
		return nil, err
	}
	if q.Labels, err = core.ParseSelector(in.Labels); err != nil {
		return nil, err
	}
	for field, text := range map[string]string{"queue": in.Queue, "name": in.Name, "name_prefix": in.Prefix} {
		if hasControl(text) {
			return nil, core.Invalid(field, "has a control character")
		}
	}
	if in.Name != "" {
		return a.listNamed(ctx, tenant, in.Name, q)
	}
	page, err := a.service.List(ctx, tenant, q)
	if err != nil {
		return nil, err
	}
	return &schedulesOutput{list(page.Items, page.More, showSchedule, func() string { return l.format(page.Last[:]) })}, nil
}

// listNamed returns the schedule of a name as a list, if the filter lets it pass.
func (a *api) listNamed(ctx context.Context, tenant uuid.UUID, name string, q core.ScheduleQuery) (*schedulesOutput, error) {
	found, err := a.service.Filter(ctx, tenant, name, q)
	if err != nil {
		return nil, err
	}
	return &schedulesOutput{list(found, false, showSchedule, nil)}, nil
}

func hasControl(text string) bool {
	for _, r := range text {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return true
		}
	}
	return false
}

func (a *api) listRuns(ctx context.Context, tenant uuid.UUID, in *runsInput) (*runsOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	l := listing{"runs of " + in.ID, tenant, url.Values{"state": {in.State}, "from": {in.From}, "to": {in.To}}}
	q := core.RunQuery{}
	if q.Limit, err = parseLimit(in.Limit); err != nil {
		return nil, err
	}
	if q.From, err = parseBound("from", in.From); err != nil {
		return nil, err
	}
	if q.Before, err = parseBound("to", in.To); err != nil {
		return nil, err
	}
	if q.States, err = states("state", in.State, core.RunQueued, core.RunRunning, core.RunRetrying, core.RunSucceeded, core.RunDead,
		core.RunSkipped, core.RunCanceled); err != nil {
		return nil, err
	}
	position, err := l.parse(in.Cursor, slotBytes)
	if err != nil {
		return nil, err
	}
	if position != nil {
		if q.Before, err = parseSlot(position); err != nil {
			return nil, err
		}
	}
	page, err := a.service.Runs(ctx, tenant, id, q)
	if err != nil {
		return nil, err
	}
	return &runsOutput{list(page.Items, page.More, showRun, func() string { return l.format(formatSlot(page.Last)) })}, nil
}
