package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

type (
	scheduleName struct {
		Name string `path:"name" doc:"The schedule's name, percent-encoded. Slashes may stay as they are."`
	}
	removeInput struct {
		Name string `path:"name" doc:"The schedule's name, percent-encoded. Slashes may stay as they are."`
		MatchHeader
	}
	putInput struct {
		MatchHeader
		Name    string `path:"name" doc:"The schedule's name, percent-encoded. Slashes may stay as they are."`
		DryRun  string `query:"dry_run"`
		RawBody []byte
	}
	putOutput struct {
		VersionHeader
		Status   int
		Location string `header:"Location" doc:"The path of the schedule, if it was created."`
		Body     PutResult
	}
)

// PutResult is a schedule after a put, or as it would be after one, with what
// became of it.
type PutResult struct {
	Schedule
	Outcome string `json:"outcome" enum:"created,replaced,unchanged" doc:"What the put came to. Unchanged made no version."`
}

func (a *api) addNamed() {
	tags, path := []string{"schedules"}, byName+"{name}"
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "getNamedSchedule", Method: http.MethodGet, Path: path, Tags: tags,
		Summary: "Show a schedule by its name",
	}}, a.getNamed)
	result := a.huma.OpenAPI().Components.Schemas.Schema(typeOf[PutResult](), true, "")
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "putSchedule", Method: http.MethodPut, Path: path, Tags: tags,
		Summary: "Create or replace a schedule by its name",
		Description: "The body is the whole schedule: a field that is left out gets its default, except paused, which stays as it is. " +
			"Equal content makes no version, however its spec is written. With dry_run nothing is stored, and the answer is what would be; " +
			"a schedule that would be created has no id yet. Whether calendars exist is left out of a dry run. Specs that count from now, such as in 3d, are refused.",
		RequestBody: a.bodyOf(mediaJSON, "spec", "job"), Parameters: dryRunParam(),
		Responses: map[string]*huma.Response{"201": {
			Description: "Created", Content: map[string]*huma.MediaType{mediaJSON: {Schema: result}},
		}},
	}}, a.put)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "deleteNamedSchedule", Method: http.MethodDelete, Path: path, Tags: tags,
		Summary: "Delete a schedule by its name", Description: "Its waiting runs are canceled; its history stays until it expires.",
	}}, a.removeNamed)
}

func dryRunParam() []*huma.Param {
	return []*huma.Param{{
		Name: "dry_run", In: "query", Description: "Store nothing, and answer what would be stored.",
		Schema: &huma.Schema{Type: huma.TypeBoolean, Default: false},
	}}
}

func parseDryRun(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, core.Invalid("dry_run", "must be true or false")
}

func (a *api) getNamed(ctx context.Context, tenant uuid.UUID, in *scheduleName) (*scheduleOutput, error) {
	found, err := a.service.GetNamed(ctx, tenant, in.Name)
	if err != nil {
		return nil, err
	}
	return shown(found), nil
}

func (a *api) removeNamed(ctx context.Context, tenant uuid.UUID, in *removeInput) (*struct{}, error) {
	match, err := in.match()
	if err != nil {
		return nil, err
	}
	return nil, a.service.If(match).DeleteNamed(ctx, tenant, in.Name)
}

func (a *api) put(ctx context.Context, tenant uuid.UUID, in *putInput) (*putOutput, error) {
	dryRun, err := parseDryRun(in.DryRun)
	if err != nil {
		return nil, err
	}
	body, err := decodePut(in.RawBody, in.Name)
	if err != nil {
		return nil, err
	}
	match, err := in.match()
	if err != nil {
		return nil, err
	}
	got, outcome, err := a.service.If(match).Put(ctx, tenant, body.Fields, dryRun)
	if err != nil {
		return nil, asSent(err, body)
	}
	out := &putOutput{Status: http.StatusOK, Body: PutResult{Schedule: showSchedule(got), Outcome: string(outcome)}}
	if !dryRun {
		out.VersionHeader = etag(got.Schedule.Version)
	}
	switch {
	case got.Schedule.ID == uuid.UUID{}:
		out.Body.ID = ""
	case outcome == schedules.Created:
		out.Status, out.Location = http.StatusCreated, "/v1/schedules/"+out.Body.ID
	}
	return out, nil
}

// decodePut reads the body that makes the schedule of a name what it says.
func decodePut(body []byte, name string) (input, error) {
	in, d, err := decode(body)
	if err != nil {
		return in, err
	}
	if in.Name != nil && *in.Name != name {
		d.add("name", "is not the name in the path; a schedule is renamed by its id")
	}
	in.Name = &name
	d.need(in.Spec != nil, "spec")
	d.need(in.Job != nil, "job")
	return in, d.err()
}
