package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/worker"
)

// LeaseInput is the body with which a worker asks for runs. Empty fields are not
// sent.
type LeaseInput struct {
	_     struct{} `additionalProperties:"false"`
	Max   int      `json:"max,omitempty" minimum:"1" maximum:"100" default:"1" doc:"How many runs at most."`
	Wait  string   `json:"wait,omitempty" doc:"How long to wait for the first, up to 20s. Defaults to 0s." example:"20s"`
	Lease string   `json:"lease,omitempty" doc:"How long the runs are yours without a heartbeat, from 5s to 1h. Defaults to 30s." example:"30s"`
}

// LeasedRuns are the runs that a worker got, none if none came in time.
type LeasedRuns struct {
	Runs []LeasedRun `json:"runs" nullable:"false"`
}

// LeasedRun is a run that is a worker's until its lease ends.
type LeasedRun struct {
	RunID        string          `json:"run_id"`
	ScheduleID   string          `json:"schedule_id"`
	Name         string          `json:"name" doc:"Of the schedule."`
	ScheduledFor time.Time       `json:"scheduled_for" doc:"The slot."`
	Cause        string          `json:"cause" enum:"schedule,catch_up,manual,backfill"`
	Attempt      int             `json:"attempt" doc:"From 1."`
	MaxAttempts  int             `json:"max_attempts"`
	Fence        int64           `json:"fence" doc:"Send it back with each heartbeat and the outcome, and hand it on: a store that compares it can refuse a late write."`
	Payload      json.RawMessage `json:"payload"`
	CoversFrom   *time.Time      `json:"covers_from,omitempty" doc:"The start of the data interval that the run is responsible for."`
	CoversTo     *time.Time      `json:"covers_to,omitempty" doc:"The end of that interval."`
	LeaseUntil   time.Time       `json:"lease_until" doc:"Send a heartbeat well before, each third of the lease, or another gets the run."`
	Deadline     *time.Time      `json:"deadline,omitempty" doc:"When the attempt has to end; heartbeats do not reach beyond."`
}

// HeartbeatInput is the body that keeps a run.
type HeartbeatInput struct {
	_     struct{} `additionalProperties:"false"`
	Fence int64    `json:"fence" doc:"As it was leased."`
	Lease string   `json:"lease,omitempty" doc:"From 5s to 1h. Defaults to 30s." example:"30s"`
}

// HeartbeatResult is the answer to it.
type HeartbeatResult struct {
	LeaseUntil      time.Time `json:"lease_until"`
	CancelRequested bool      `json:"cancel_requested" doc:"Somebody asked for the run's end: stop, and finish it as canceled."`
}

// FinishInput is the body that ends an attempt.
type FinishInput struct {
	_          struct{}        `additionalProperties:"false"`
	Fence      int64           `json:"fence" doc:"As it was leased."`
	Outcome    string          `json:"outcome" enum:"succeeded,failed,canceled,handed_back" doc:"Failed attempts are tried again as the schedule's retry says; handed_back is for the worker's sake, such as its end, after the job has stopped: it is tried again at once and not counted, up to three times."`
	Result     json.RawMessage `json:"result,omitempty" doc:"What to keep of a success, up to 64 KiB."`
	Error      string          `json:"error,omitempty" doc:"What went wrong."`
	Permanent  bool            `json:"permanent,omitempty" doc:"Trying again cannot help: the run is dead."`
	RetryAfter string          `json:"retry_after,omitempty" doc:"The least delay before the next attempt." example:"5m"`
}

type (
	leaseInput struct {
		Queue string `path:"queue" doc:"The queue."`
		KeyHeader
		RawBody []byte
	}
	leaseOutput    struct{ Body LeasedRuns }
	heartbeatInput struct {
		ID      string `path:"id" doc:"The run's id: run_..."`
		RawBody []byte
	}
	heartbeatOutput struct{ Body HeartbeatResult }
)

func (a *api) addWorkers() {
	tags := []string{"workers"}
	schemas := a.huma.OpenAPI().Components.Schemas
	body := func(schema *huma.Schema, required bool) *huma.RequestBody {
		return &huma.RequestBody{Required: required, Content: map[string]*huma.MediaType{mediaJSON: {Schema: schema}}}
	}
	handle(a, operation{scope: scopeWorker, optionalBody: true, Operation: huma.Operation{
		OperationID: "leaseRuns", Method: http.MethodPost, Path: "/v1/queues/{queue}/lease", Tags: tags,
		Summary: "Take runs of a queue to execute",
		Description: "A long poll: it answers as soon as there is a run, or none when the wait is over. Send an Idempotency-Key of its own with each: " +
			"if the answer is lost, the same request brings the same runs, and no attempt is lost with it.",
		RequestBody: body(schemas.Schema(typeOf[LeaseInput](), false, ""), false),
	}}, a.lease)
	handle(a, operation{scope: scopeWorker, Operation: huma.Operation{
		OperationID: "heartbeatRun", Method: http.MethodPost, Path: "/v1/runs/{id}/heartbeat", Tags: tags,
		Summary:     "Keep a run that is executed",
		Description: "Refused as stale_fence if the run is another's or has ended, and as attempt_timed_out when its time is over: stop then.",
		RequestBody: body(schemas.Schema(typeOf[HeartbeatInput](), false, ""), true),
	}}, a.heartbeat)
	handle(a, operation{scope: scopeWorker, Operation: huma.Operation{
		OperationID: "finishRun", Method: http.MethodPost, Path: "/v1/runs/{id}/finish", Tags: tags,
		Summary:     "Say how an attempt ended",
		Description: "It may be sent again: the same outcome is accepted again. Refused as stale_fence if the run is another's by now, or ended otherwise.",
		RequestBody: body(schemas.Schema(typeOf[FinishInput](), false, ""), true),
	}}, a.finish)
}

func (a *api) lease(ctx context.Context, tenant uuid.UUID, in *leaseInput) (*leaseOutput, error) {
	ask := worker.Ask{Queue: in.Queue}
	if len(in.RawBody) > 0 {
		d, object, err := open(in.RawBody)
		if err != nil {
			return nil, err
		}
		for i, name := range object.names {
			value := object.values[i]
			switch name {
			case "max":
				set(d.count(value, name, worker.MaxBatch), &ask.Max)
			case "wait":
				set(d.duration(value, name), &ask.Wait)
			case "lease":
				set(d.duration(value, name), &ask.Lease)
			default:
				d.unknown(name)
			}
		}
		if err := d.err(); err != nil {
			return nil, err
		}
	}
	ask.Request = in.request("POST /v1/queues/"+in.Queue+"/lease", in.RawBody)
	if a.workers == nil {
		return nil, worker.ErrUnknownQueue
	}
	leased, err := a.workers.Lease(ctx, tenant, ask)
	if err != nil {
		return nil, err
	}
	out := LeasedRuns{Runs: make([]LeasedRun, len(leased))}
	for i, l := range leased {
		out.Runs[i] = showLeased(&l)
	}
	return &leaseOutput{out}, nil
}

func showLeased(l *worker.Leased) LeasedRun {
	return LeasedRun{
		RunID: l.Key.ID(), ScheduleID: l.Key.ScheduleID.String(), Name: l.Name, ScheduledFor: l.ScheduledFor().UTC(), Cause: string(l.Cause),
		Attempt: l.Attempt, MaxAttempts: l.MaxAttempts, Fence: l.Fence, Payload: l.Payload,
		CoversFrom: optional(l.CoversFrom), CoversTo: optional(l.CoversTo), LeaseUntil: l.Until.UTC(), Deadline: optional(l.Deadline),
	}
}

func (a *api) heartbeat(ctx context.Context, tenant uuid.UUID, in *heartbeatInput) (*heartbeatOutput, error) {
	h, lease, err := decodeHeartbeat(in.ID, in.RawBody)
	if err == nil && a.workers == nil {
		err = core.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	beat, err := a.workers.Heartbeat(ctx, tenant, h, lease)
	if err != nil {
		return nil, err
	}
	return &heartbeatOutput{HeartbeatResult{beat.Until.UTC(), beat.CancelRequested}}, nil
}

func decodeHeartbeat(id string, body []byte) (h core.Held, lease time.Duration, err error) {
	if h.Key, err = core.ParseRunID(id); err != nil {
		return h, 0, err
	}
	d, object, err := open(body)
	if err != nil {
		return h, 0, err
	}
	for i, name := range object.names {
		value := object.values[i]
		switch name {
		case "fence":
			d.fence(value, &h.Fence)
		case "lease":
			set(d.duration(value, name), &lease)
		default:
			d.unknown(name)
		}
	}
	d.need(h.Fence != 0, "fence")
	return h, lease, d.err()
}

// fence reads the fence that a worker was given.
func (d *decoder) fence(raw json.RawMessage, to *int64) {
	if n := d.integer(raw, "fence"); n != nil {
		*to = int64(*n)
		if *n < 1 {
			d.add("fence", "must be the number that came with the run")
		}
	}
}

func (a *api) finish(ctx context.Context, tenant uuid.UUID, in *heartbeatInput) (*cancelOutput, error) {
	r, err := decodeFinish(in.ID, in.RawBody)
	if err == nil && a.workers == nil {
		err = core.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	run, err := a.workers.Finish(ctx, tenant, r)
	if err != nil {
		return nil, err
	}
	return &cancelOutput{showRun(run)}, nil
}

func decodeFinish(id string, body []byte) (r worker.Report, err error) {
	if r.Key, err = core.ParseRunID(id); err != nil {
		return r, err
	}
	d, object, err := open(body)
	if err != nil {
		return r, err
	}
	for i, name := range object.names {
		value := object.values[i]
		switch name {
		case "fence":
			d.fence(value, &r.Fence)
		case "outcome":
			if text := d.text(value, name); text != nil {
				r.Outcome = worker.Outcome(*text)
			}
		case "result":
			d.storable(value, name)
			r.Result = value
		case "error":
			set(d.text(value, name), &r.Error)
		case "permanent":
			set(d.boolean(value, name), &r.Permanent)
		case "retry_after":
			set(d.duration(value, name), &r.RetryAfter)
		default:
			d.unknown(name)
		}
	}
	d.need(r.Fence != 0, "fence")
	d.need(r.Outcome != "", "outcome")
	return r, d.err()
}
