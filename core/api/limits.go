package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// QueueLimitInput is the body that limits a queue.
type QueueLimitInput struct {
	_           struct{} `additionalProperties:"false"`
	Concurrency int      `json:"concurrency" minimum:"0" maximum:"1000" doc:"How many of your runs in the queue may be running at once. 0 lets none start."`
}

// QueueLimit is how many runs of a queue may be running at once.
type QueueLimit struct {
	Queue       string `json:"queue" example:"http"`
	Of          string `json:"of" enum:"tenant,all" doc:"Whose runs it counts: yours, or those of all tenants together, which only the operator sets."`
	Concurrency int    `json:"concurrency"`
	Running     int    `json:"running" doc:"Your runs that count now."`
	Waiting     int    `json:"waiting" doc:"Your runs that wait in the queue for one to end; counted up to 10,000."`
}

func showLimit(l *core.Limit) QueueLimit {
	of := "tenant"
	if l.TenantID == core.AllTenants {
		of = "all"
	}
	return QueueLimit{Queue: l.Queue, Of: of, Concurrency: l.Concurrency, Running: l.Running, Waiting: l.Waiting}
}

type (
	queueName struct {
		Queue string `path:"queue" doc:"The queue's name."`
	}
	queueLimitPut struct {
		Queue   string `path:"queue" doc:"The queue's name."`
		RawBody []byte
	}
	queueLimitOutput  struct{ Body QueueLimit }
	queueLimitsOutput struct{ Body List[QueueLimit] }
)

func (a *api) addLimits() {
	tags, path := []string{"queues"}, "/v1/queues/{queue}/limit"
	schema := a.huma.OpenAPI().Components.Schemas.Schema(typeOf[QueueLimitInput](), false, "")
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "listQueueLimits", Method: http.MethodGet, Path: "/v1/queues", Tags: tags,
		Summary: "List the limits of queues", Description: "Yours and those that hold for all tenants, on one page. Queues without a limit are not in it.",
	}}, a.queueLimits)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "limitQueue", Method: http.MethodPut, Path: path, Tags: tags,
		Summary: "Limit how many runs of a queue are running at once",
		Description: "Runs beyond the limit wait, queued, and start as others end, the oldest first. No attempt is counted meanwhile. " +
			"It holds for runs that start from then on; those that are running go on.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaJSON: {Schema: schema}}},
	}}, a.limitQueue)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "unlimitQueue", Method: http.MethodDelete, Path: path, Tags: tags, Summary: "End your limit of a queue",
	}}, a.unlimitQueue)
}

func (a *api) queueLimits(ctx context.Context, tenant uuid.UUID, _ *struct{}) (*queueLimitsOutput, error) {
	all, err := a.service.QueueLimits(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := &queueLimitsOutput{List[QueueLimit]{Items: make([]QueueLimit, len(all))}}
	for i := range all {
		out.Body.Items[i] = showLimit(&all[i])
	}
	return out, nil
}

func (a *api) limitQueue(ctx context.Context, tenant uuid.UUID, in *queueLimitPut) (*queueLimitOutput, error) {
	n, err := decodeLimit(in.RawBody)
	if err != nil {
		return nil, err
	}
	l, err := a.service.LimitQueue(ctx, tenant, in.Queue, n)
	if err != nil {
		return nil, err
	}
	return &queueLimitOutput{showLimit(&l)}, nil
}

func (a *api) unlimitQueue(ctx context.Context, tenant uuid.UUID, in *queueName) (*struct{}, error) {
	return nil, a.service.UnlimitQueue(ctx, tenant, in.Queue)
}

func decodeLimit(body []byte) (int, error) {
	d, object, err := open(body)
	if err != nil {
		return 0, err
	}
	n, given := 0, false
	for i, name := range object.names {
		switch name {
		case "concurrency":
			given = true
			set(d.integer(object.values[i], name), &n)
		default:
			d.unknown(name)
		}
	}
	d.need(given, "concurrency")
	return n, d.err()
}
