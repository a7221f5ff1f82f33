package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

type (
	runID struct {
		ID string `path:"id" doc:"The run's id: run_..."`
	}
	runOutput struct{ Body RunDetail }

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
