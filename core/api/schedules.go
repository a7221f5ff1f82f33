package api

import (
	"context"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

type (
	scheduleID struct {
		ID string `path:"id" doc:"The schedule's id."`
	}
	createInput struct {
		KeyHeader
		RawBody []byte
	}
	patchInput struct {
		ID string `path:"id" doc:"The schedule's id."`
		MatchHeader
		RawBody []byte
	}
	pauseInput struct {
		ID string `path:"id" doc:"The schedule's id."`
		MatchHeader
		RawBody []byte
	}
	changeInput struct {
		ID string `path:"id" doc:"The schedule's id."`
		MatchHeader
	}
	scheduleOutput struct {
		VersionHeader
		Body Schedule
	}
	createOutput struct {
		VersionHeader
		ReplayHeader
		Location string `header:"Location" doc:"The path of the schedule."`
		Body     Schedule
	}
)

const (
	mediaJSON  = "application/json"
	mediaMerge = "application/merge-patch+json"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func (a *api) addSchedules() {
	tags := []string{"schedules"}
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "createSchedule", Method: http.MethodPost, Path: "/v1/schedules", Tags: tags,
		Summary: "Create a schedule", DefaultStatus: http.StatusCreated,
		RequestBody: a.bodyOf(mediaJSON, "name", "spec", "job"),
	}}, a.create)
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "getSchedule", Method: http.MethodGet, Path: "/v1/schedules/{id}", Tags: tags,
		Summary: "Show a schedule",
	}}, a.get)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "changeSchedule", Method: http.MethodPatch, Path: "/v1/schedules/{id}", Tags: tags,
		Summary: "Change fields of a schedule", Description: "Fields that are left out stay. The job is replaced as a whole.",
		RequestBody: a.bodyOf(mediaMerge),
	}}, a.change)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "deleteSchedule", Method: http.MethodDelete, Path: "/v1/schedules/{id}", Tags: tags,
		Summary: "Delete a schedule", Description: "Its waiting runs are canceled; its history stays until it expires.",
	}}, a.remove)
	handle(a, operation{scope: scopeWrite, optionalBody: true, Operation: huma.Operation{
		OperationID: "pauseSchedule", Method: http.MethodPost, Path: "/v1/schedules/{id}/pause", Tags: tags,
		Summary: "Pause a schedule", Description: "No new runs from here on; those that exist go on. The slots of the pause are recorded as skipped.",
		RequestBody: pauseBody(),
	}}, a.pause)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "resumeSchedule", Method: http.MethodPost, Path: "/v1/schedules/{id}/resume", Tags: tags,
		Summary: "Resume a schedule", Description: "Slots that passed meanwhile are recorded as skipped.",
	}}, a.resume)
}

// bodyOf describes a body with the fields of a schedule. JSON is accepted under
// both media types.
func (a *api) bodyOf(media string, required ...string) *huma.RequestBody {
	schema := *a.huma.OpenAPI().Components.Schemas.Schema(typeOf[ScheduleInput](), false, "")
	schema.Required = required
	body := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}}
	for _, name := range []string{mediaJSON, media} {
		body.Content[name] = &huma.MediaType{Schema: &schema}
	}
	return body
}

// requireJSON refuses a body that does not claim to be JSON. One without a
// Content-Type is taken for JSON.
func (a *api) requireJSON(hc huma.Context, next func(huma.Context)) {
	if claimed := hc.Header("Content-Type"); claimed != "" {
		media, params, err := mime.ParseMediaType(claimed)
		charset := params["charset"]
		if err != nil || media != mediaJSON && media != mediaMerge || charset != "" && !strings.EqualFold(charset, "utf-8") {
			a.refuse(hc, newProblem(http.StatusUnsupportedMediaType, codeMediaType, "send JSON in UTF-8 with Content-Type: application/json"))
			return
		}
	}
	next(hc)
}

func (a *api) create(ctx context.Context, tenant uuid.UUID, in *createInput) (*createOutput, error) {
	body, err := decodeCreate(in.RawBody)
	if err != nil {
		return nil, err
	}
	var made core.Scheduled
	again := false
	if request := in.request("POST /v1/schedules", in.RawBody); request == nil {
		made, err = a.service.Create(ctx, tenant, body.Fields)
	} else {
		made, again, err = a.service.CreateOnce(ctx, tenant, body.Fields, *request)
	}
	if err != nil {
		return nil, asSent(err, body)
	}
	return &createOutput{
		VersionHeader: etag(made.Schedule.Version), ReplayHeader: showReplayed(again),
		Location: "/v1/schedules/" + made.Schedule.ID.String(), Body: showSchedule(made),
	}, nil
}

func (a *api) change(ctx context.Context, tenant uuid.UUID, in *patchInput) (*scheduleOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	body, err := decodePatch(in.RawBody)
	if err != nil {
		return nil, err
	}
	match, err := in.match()
	if err != nil {
		return nil, err
	}
	changed, err := a.service.If(match).Edit(ctx, tenant, id, body.Fields)
	if err != nil {
		return nil, asSent(err, body)
	}
	return shown(changed), nil
}

// asSent names the fields of a job by the form in which the caller sent it.
func asSent(err error, body input) error {
	p := problemOf(err)
	rest, ok := strings.CutPrefix(p.Field, "job.payload")
	if !ok || !body.viaHTTP {
		return err
	}
	p.Field = "job.http" + rest
	return p
}

func shown(s core.Scheduled) *scheduleOutput {
	return &scheduleOutput{etag(s.Schedule.Version), showSchedule(s)}
}

func (a *api) get(ctx context.Context, tenant uuid.UUID, in *scheduleID) (*scheduleOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	s, err := a.service.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return shown(s), nil
}

func (a *api) pause(ctx context.Context, tenant uuid.UUID, in *pauseInput) (*scheduleOutput, error) {
	var o schedules.PauseOptions
	if len(in.RawBody) > 0 {
		var err error
		if o, err = decodePause(in.RawBody); err != nil {
			return nil, err
		}
	}
	change := &changeInput{ID: in.ID, MatchHeader: in.MatchHeader}
	return a.onSchedule(change, func(s *schedules.Service, id uuid.UUID) (core.Scheduled, error) { return s.Pause(ctx, tenant, id, o) })
}

// decodePause reads the body that may come with a pause.
func decodePause(body []byte) (schedules.PauseOptions, error) {
	var o schedules.PauseOptions
	d, object, err := open(body)
	if err != nil {
		return o, err
	}
	for i, name := range object.names {
		switch name {
		case "until":
			if t := d.bound(object.values[i], name); t != nil {
				o.Until = *t
			}
		case "note":
			if note := d.text(object.values[i], name); note != nil {
				o.Note = *note
			}
		default:
			d.unknown(name)
		}
	}
	return o, d.err()
}

// pauseBody describes the body that may come with a pause.
func pauseBody() *huma.RequestBody {
	return &huma.RequestBody{Content: map[string]*huma.MediaType{mediaJSON: {Schema: &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{
			"until": {Type: huma.TypeString, Description: "When the pause ends by itself, RFC 3339; slots from then on are run."},
			"note":  {Type: huma.TypeString, Description: "What for, for people; at most 500 bytes."},
		},
	}}}}
}

func (a *api) resume(ctx context.Context, tenant uuid.UUID, in *changeInput) (*scheduleOutput, error) {
	return a.onSchedule(in, func(s *schedules.Service, id uuid.UUID) (core.Scheduled, error) { return s.Resume(ctx, tenant, id) })
}

// onSchedule changes a schedule if it has the version that the request demands.
func (a *api) onSchedule(in *changeInput, do func(*schedules.Service, uuid.UUID) (core.Scheduled, error)) (*scheduleOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	match, err := in.match()
	if err != nil {
		return nil, err
	}
	s, err := do(a.service.If(match), id)
	if err != nil {
		return nil, err
	}
	return shown(s), nil
}

func (a *api) remove(ctx context.Context, tenant uuid.UUID, in *changeInput) (*struct{}, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	match, err := in.match()
	if err != nil {
		return nil, err
	}
	return nil, a.service.If(match).Delete(ctx, tenant, id)
}
