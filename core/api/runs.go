package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

type (
	runsInput struct {
		ID     string `path:"id" doc:"The schedule's id."`
		Limit  string `query:"limit"`
		Before string `query:"before" doc:"Only runs whose slot is before this time, RFC 3339. The next_cursor of the page before is one."`
	}
	runID struct {
		ID string `path:"id" doc:"The run's id: run_..."`
	}
	runsOutput struct{ Body List[Run] }
	runOutput  struct{ Body RunDetail }

	triggerOutput struct {
		Location string `header:"Location" doc:"The path of the run."`
		Body     Run
	}
)

func (a *api) addRuns() {
	tags := []string{"runs"}
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "triggerSchedule", Method: http.MethodPost, Path: "/v1/schedules/{id}/trigger", Tags: tags,
		Summary: "Run a schedule at once", DefaultStatus: http.StatusAccepted,
		Description: "Refused as run_live while a run is alive and overlap is not allow. Works on a paused schedule, too.",
	}}, a.trigger)
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "listRuns", Method: http.MethodGet, Path: "/v1/schedules/{id}/runs", Tags: tags,
		Summary: "List a schedule's runs, newest slot first", Parameters: limitParam(),
	}}, a.runs)
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "getRun", Method: http.MethodGet, Path: "/v1/runs/{id}", Tags: tags,
		Summary: "Show a run with its failed attempts",
	}}, a.run)
}

func (a *api) trigger(ctx context.Context, tenant uuid.UUID, in *scheduleID) (*triggerOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	run, err := a.service.Trigger(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return &triggerOutput{Location: "/v1/runs/" + run.Key.ID(), Body: showRun(run)}, nil
}

func (a *api) runs(ctx context.Context, tenant uuid.UUID, in *runsInput) (*runsOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	limit, err := parseLimit(in.Limit)
	if err != nil {
		return nil, err
	}
	before, err := parseBefore(in.Before)
	if err != nil {
		return nil, err
	}
	found, err := a.service.Runs(ctx, tenant, id, core.Page{Limit: limit + 1, Before: before})
	if err != nil {
		return nil, err
	}
	return &runsOutput{page(found, limit, showRun, func(r core.Run) string { return formatTime(r.Key.Slot) })}, nil
}

func (a *api) run(ctx context.Context, tenant uuid.UUID, in *runID) (*runOutput, error) {
	key, err := core.ParseRunID(in.ID)
	if err != nil {
		return nil, err
	}
	run, attempts, err := a.service.Run(ctx, tenant, key)
	if err != nil {
		return nil, err
	}
	return &runOutput{showDetail(run, attempts)}, nil
}
