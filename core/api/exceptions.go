package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// ExceptionInput is the body that says what is different about one slot to come.
type ExceptionInput struct {
	_       struct{}        `additionalProperties:"false"`
	Slot    string          `json:"slot" format:"date-time" doc:"The slot, RFC 3339, as next and runs show it." example:"2026-12-24T03:00:00Z"`
	Skip    bool            `json:"skip,omitempty" doc:"Record the slot instead of running it."`
	MoveTo  string          `json:"move_to,omitempty" format:"date-time" doc:"When its run starts instead. It may not pass the slots before and after." example:"2026-12-24T05:00:00Z"`
	Payload json.RawMessage `json:"payload,omitempty" doc:"What its run gets instead of the schedule's payload."`
	Note    string          `json:"note,omitempty" doc:"What for, for people; at most 500 bytes."`
}

// Exception is what is different about one slot to come.
type Exception struct {
	Slot    time.Time       `json:"slot"`
	Skip    bool            `json:"skip,omitempty"`
	MoveTo  *time.Time      `json:"move_to,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Note    string          `json:"note,omitempty"`
}

// Exceptions are those to come of a schedule, soonest first.
type Exceptions struct {
	Items []Exception `json:"items" nullable:"false"`
}

type (
	exceptInput struct {
		ID string `path:"id" doc:"The schedule's id."`
		MatchHeader
		RawBody []byte
	}
	dropExceptInput struct {
		ID string `path:"id" doc:"The schedule's id."`
		MatchHeader
		Slot string `query:"slot" doc:"The slot, RFC 3339." example:"2026-12-24T03:00:00Z"`
	}
	exceptOutput struct {
		VersionHeader
		Body Exceptions
	}
)

func (a *api) addExceptions() {
	tags, path := []string{"schedules"}, "/v1/schedules/{id}/exceptions"
	schema := a.huma.OpenAPI().Components.Schemas.Schema(typeOf[ExceptionInput](), false, "")
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "listExceptions", Method: http.MethodGet, Path: path, Tags: tags,
		Summary: "List what is different about slots to come",
	}}, a.exceptions)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "setException", Method: http.MethodPost, Path: path, Tags: tags,
		Summary: "Skip or move one slot, or give its run another payload",
		Description: "Replaces what was said of the slot before. A slot that has been dealt with, or is due, is refused as slot_claimed. " +
			"At most 100 exceptions may be to come.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaJSON: {Schema: schema}}},
	}}, a.setException)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "dropException", Method: http.MethodDelete, Path: path, Tags: tags,
		Summary: "Let a slot be like the others again",
	}}, a.dropException)
}

func (a *api) exceptions(ctx context.Context, tenant uuid.UUID, in *scheduleID) (*exceptOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	return showExceptions(a.service.Get(ctx, tenant, id))
}

func showExceptions(s core.Scheduled, err error) (*exceptOutput, error) {
	if err != nil {
		return nil, err
	}
	out := &exceptOutput{VersionHeader: etag(s.Schedule.Version), Body: Exceptions{Items: []Exception{}}}
	for _, e := range s.Schedule.Rules.Exceptions {
		if e.Slot.After(s.Timer.Done) {
			out.Body.Items = append(out.Body.Items, Exception{e.Slot.UTC(), e.Skip, optional(e.MoveTo), e.Payload, e.Note})
		}
	}
	return out, nil
}

func (a *api) setException(ctx context.Context, tenant uuid.UUID, in *exceptInput) (*exceptOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	e, err := decodeException(in.RawBody)
	if err != nil {
		return nil, err
	}
	match, err := in.match()
	if err != nil {
		return nil, err
	}
	return showExceptions(a.service.If(match).SetException(ctx, tenant, id, e))
}

func decodeException(body []byte) (core.Exception, error) {
	var e core.Exception
	d, object, err := open(body)
	if err != nil {
		return e, err
	}
	for i, name := range object.names {
		value := object.values[i]
		switch name {
		case "slot":
			set(d.instant(value, name), &e.Slot)
		case "skip":
			set(d.boolean(value, name), &e.Skip)
		case "move_to":
			set(d.bound(value, name), &e.MoveTo)
		case "payload":
			d.storable(value, name)
			e.Payload = value
		case "note":
			set(d.text(value, name), &e.Note)
		default:
			d.unknown(name)
		}
	}
	d.need(!e.Slot.IsZero(), "slot")
	return e, d.err()
}

func set[T any](from *T, to *T) {
	if from != nil {
		*to = *from
	}
}

func (a *api) dropException(ctx context.Context, tenant uuid.UUID, in *dropExceptInput) (*exceptOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	slot, ok := parseTime(in.Slot)
	if !ok {
		return nil, core.Invalid("slot", `must be a time such as "2026-12-24T03:00:00Z"`)
	}
	match, err := in.match()
	if err != nil {
		return nil, err
	}
	return showExceptions(a.service.If(match).DropException(ctx, tenant, id, slot))
}
