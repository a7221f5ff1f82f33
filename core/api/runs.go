package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

type (
	runID struct {
		ID string `path:"id" doc:"The run's id: run_..."`
	}
	runOutput struct{ Body RunDetail }

	triggerInput struct {
		ID string `path:"id" doc:"The schedule's id."`
		KeyHeader
		RawBody []byte
	}
	cancelOutput  struct{ Body Run }
	triggerOutput struct {
		ReplayHeader
		Location string `header:"Location" doc:"The path of the run."`
		Body     Run
	}
)

func (a *api) addRuns() {
	tags := []string{"runs"}
	handle(a, operation{scope: scopeWrite, optionalBody: true, Operation: huma.Operation{
		OperationID: "triggerSchedule", Method: http.MethodPost, Path: "/v1/schedules/{id}/trigger", Tags: tags,
		Summary: "Run a schedule at once", DefaultStatus: http.StatusAccepted,
		Description: "Refused as run_live while a run is alive and overlap is not allow. Works on a paused schedule, too. A body may have a payload for this run only.",
		RequestBody: triggerBody(),
	}}, a.trigger)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "cancelRun", Method: http.MethodPost, Path: "/v1/runs/{id}/cancel", Tags: tags,
		Summary: "Cancel a run", DefaultStatus: http.StatusAccepted,
		Description: "A waiting run ends at once. A running one is asked to end: its handler is told with its next heartbeat. " +
			"Canceling again changes nothing; a run that ended otherwise is refused as run_final.",
	}}, a.cancel)
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "getRun", Method: http.MethodGet, Path: "/v1/runs/{id}", Tags: tags,
		Summary: "Show a run with its failed attempts",
	}}, a.run)
}

// triggerBody describes the body that may come with a trigger.
func triggerBody() *huma.RequestBody {
	return &huma.RequestBody{Content: map[string]*huma.MediaType{mediaJSON: {Schema: &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{
			"payload": {Description: "What this run gets instead of the schedule's payload."},
		},
	}}}}
}

func (a *api) trigger(ctx context.Context, tenant uuid.UUID, in *triggerInput) (*triggerOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	var o schedules.TriggerOptions
	if len(in.RawBody) > 0 {
		if o.Payload, err = decodeTrigger(in.RawBody); err != nil {
			return nil, err
		}
	}
	o.Request = in.request("POST /v1/schedules/"+in.ID+"/trigger", in.RawBody)
	run, err := a.service.Trigger(ctx, tenant, id, o)
	if err != nil {
		return nil, err
	}
	return &triggerOutput{ReplayHeader: showReplayed(run.Again), Location: "/v1/runs/" + run.Key.ID(), Body: showRun(run.Run)}, nil
}

// decodeTrigger reads the body that may come with a trigger: a payload instead of
// the schedule's, nil for none.
func decodeTrigger(body []byte) (json.RawMessage, error) {
	d, object, err := open(body)
	if err != nil {
		return nil, err
	}
	var payload json.RawMessage
	for i, name := range object.names {
		if name != "payload" {
			d.unknown(name)
			continue
		}
		payload = object.values[i]
		d.storable(payload, name)
	}
	return payload, d.err()
}

func (a *api) cancel(ctx context.Context, tenant uuid.UUID, in *runID) (*cancelOutput, error) {
	key, err := core.ParseRunID(in.ID)
	if err != nil {
		return nil, err
	}
	run, err := a.service.CancelRun(ctx, tenant, key)
	if err != nil {
		return nil, err
	}
	return &cancelOutput{showRun(run)}, nil
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
