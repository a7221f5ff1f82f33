package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/backfill"
	"github.com/fencepost/fencepost/core/schedules"
)

// BackfillInput is the body that runs past slots. Empty fields are not sent.
type BackfillInput struct {
	_           struct{}        `additionalProperties:"false"`
	From        string          `json:"from" format:"date-time" doc:"The first slot that may run, RFC 3339." example:"2026-11-01T00:00:00Z"`
	To          string          `json:"to" format:"date-time" doc:"No slots from this time on, RFC 3339." example:"2026-12-01T00:00:00Z"`
	Order       string          `json:"order,omitempty" enum:"ascending,descending" default:"ascending" doc:"In which order the slots run."`
	MaxRuns     int             `json:"max_runs,omitempty" minimum:"1" maximum:"10000" default:"1000" doc:"More runs than this are refused, not cut."`
	Concurrency int             `json:"concurrency,omitempty" minimum:"1" maximum:"100" default:"1" doc:"How many of its runs may be alive at once."`
	Rerun       bool            `json:"rerun,omitempty" doc:"Runs slots again that succeeded or are alive. Defaults to false."`
	Payload     json.RawMessage `json:"payload,omitempty" doc:"What the runs get instead of the schedule's payload."`
	DryRun      bool            `json:"dry_run,omitempty" doc:"Store nothing, and answer what would be."`
}

// Backfill is a backfill as the API shows it.
type Backfill struct {
	ID          string     `json:"id"`
	ScheduleID  string     `json:"schedule_id"`
	From        time.Time  `json:"from"`
	To          time.Time  `json:"to"`
	Order       string     `json:"order" enum:"ascending,descending"`
	Rerun       bool       `json:"rerun"`
	Concurrency int        `json:"concurrency"`
	State       string     `json:"state" enum:"running,finished,canceled"`
	Total       int        `json:"total" doc:"Runs to be made."`
	Admitted    int        `json:"admitted" doc:"Runs that were made."`
	Left        int        `json:"left" doc:"Runs that were not made yet."`
	Live        int        `json:"live" doc:"Runs that are alive."`
	Succeeded   int        `json:"succeeded"`
	Dead        int        `json:"dead"`
	Canceled    int        `json:"canceled" doc:"Runs that were canceled, or whose history has expired."`
	CreatedAt   time.Time  `json:"created_at"`
	FinishedAt  *time.Time `json:"finished_at,omitempty"`
}

// BackfillPlan is what a backfill would run, or runs.
type BackfillPlan struct {
	// Backfill is nil in a dry run.
	Backfill *Backfill      `json:"backfill,omitempty" doc:"The backfill; none in a dry run."`
	Runs     int            `json:"runs" doc:"Slots that run."`
	Done     int            `json:"left_alone" doc:"Slots that succeeded or are alive."`
	Slots    []BackfillSlot `json:"slots" nullable:"false" doc:"The first 100 slots in the order in which they run."`
	Warnings []string       `json:"warnings" nullable:"false" doc:"What is legitimate and may surprise."`
}

// BackfillSlot is a slot of a backfill.
type BackfillSlot struct {
	ScheduledFor time.Time `json:"scheduled_for"`
	Runs         bool      `json:"runs"`
	State        string    `json:"state,omitempty" doc:"The state of the run that is there, if it does not run."`
	RunID        string    `json:"run_id,omitempty" doc:"The run that is to be made."`
}

type (
	backfillInput struct {
		ID string `path:"id" doc:"The schedule's id."`
		KeyHeader
		RawBody []byte
	}
	backfillOutput struct {
		ReplayHeader
		Status   int
		Location string `header:"Location" doc:"The path of the backfill; none in a dry run."`
		Body     BackfillPlan
	}
	backfillID struct {
		ID string `path:"id" doc:"The backfill's id."`
	}
	backfillCancel struct {
		ID      string `path:"id" doc:"The backfill's id."`
		RawBody []byte
	}
	backfillShown struct{ Body Backfill }
	backfillsList struct {
		ID string `path:"id" doc:"The schedule's id."`
	}
	backfillsOutput struct{ Body List[Backfill] }
)

func (a *api) addBackfills() {
	tags := []string{"backfills"}
	schemas := a.huma.OpenAPI().Components.Schemas
	plan := schemas.Schema(typeOf[BackfillPlan](), true, "")
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "backfillSchedule", Method: http.MethodPost, Path: "/v1/schedules/{id}/backfill", Tags: tags,
		Summary: "Run past slots of a schedule", DefaultStatus: http.StatusAccepted,
		Description: "Ask with dry_run first. The slots are those of the schedule as it is now, also from before it was created; slots that it has not dealt with are left to it. " +
			"The runs are made beside what the schedule does: they do not meet its overlap policy, a pause does not stop them, and they have ids of their own, with the slot in scheduled_for. " +
			"History is kept for some time only: what ran before cannot be told from what did not.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaJSON: {Schema: schemas.Schema(typeOf[BackfillInput](), false, "")}}},
		Responses: map[string]*huma.Response{"200": {
			Description: "What would be", Content: map[string]*huma.MediaType{mediaJSON: {Schema: plan}},
		}},
	}}, a.startBackfill)
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "listBackfills", Method: http.MethodGet, Path: "/v1/schedules/{id}/backfills", Tags: tags,
		Summary: "List a schedule's backfills, newest first", Description: "The newest 100, on one page.",
	}}, a.backfills)
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "getBackfill", Method: http.MethodGet, Path: "/v1/backfills/{id}", Tags: tags, Summary: "Show a backfill",
	}}, a.backfill)
	handle(a, operation{scope: scopeWrite, optionalBody: true, Operation: huma.Operation{
		OperationID: "cancelBackfill", Method: http.MethodPost, Path: "/v1/backfills/{id}/cancel", Tags: tags,
		Summary: "Let a backfill make no more runs", DefaultStatus: http.StatusAccepted,
		Description: "Its runs that are alive go on, unless the body has cancel_runs. Canceling again, or one that has ended, changes nothing.",
		RequestBody: &huma.RequestBody{Content: map[string]*huma.MediaType{mediaJSON: {Schema: &huma.Schema{
			Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{
				"cancel_runs": {Type: huma.TypeBoolean, Description: "Cancels the runs that are alive, too."},
			},
		}}}},
	}}, a.cancelBackfill)
}

func (a *api) startBackfill(ctx context.Context, tenant uuid.UUID, in *backfillInput) (*backfillOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	o, err := decodeBackfill(in.RawBody)
	if err != nil {
		return nil, err
	}
	o.Request = in.request("POST /v1/schedules/"+in.ID+"/backfill", in.RawBody)
	plan, err := a.service.Backfill(ctx, tenant, id, o)
	if err != nil {
		return nil, err
	}
	out := &backfillOutput{ReplayHeader: showReplayed(plan.Again), Status: http.StatusOK, Body: showPlan(id, plan)}
	if plan.Backfill != nil {
		out.Status, out.Location = http.StatusAccepted, "/v1/backfills/"+out.Body.Backfill.ID
	}
	return out, nil
}

// decodeBackfill reads the body of a backfill.
func decodeBackfill(body []byte) (schedules.BackfillOptions, error) {
	var o schedules.BackfillOptions
	d, object, err := open(body)
	if err != nil {
		return o, err
	}
	for i, name := range object.names {
		value := object.values[i]
		switch name {
		case "from":
			set(d.instant(value, name), &o.From)
		case "to":
			set(d.instant(value, name), &o.To)
		case "order":
			if text := d.text(value, name); text != nil {
				if o.Descending = *text == "descending"; !o.Descending && *text != "ascending" {
					d.add(name, "must be ascending or descending")
				}
			}
		case "max_runs":
			set(d.count(value, name, core.MaxBackfillRuns), &o.MaxRuns)
		case "concurrency":
			set(d.count(value, name, core.MaxBackfillConcurrency), &o.Concurrency)
		case "rerun":
			set(d.boolean(value, name), &o.Rerun)
		case "dry_run":
			set(d.boolean(value, name), &o.DryRun)
		case "payload":
			d.storable(value, name)
			o.Payload = value
		default:
			d.unknown(name)
		}
	}
	d.need(!o.From.IsZero(), "from")
	d.need(!o.To.IsZero(), "to")
	return o, d.err()
}

// count reads a number from one to most.
func (d *decoder) count(raw json.RawMessage, field string, most int) *int {
	n := d.integer(raw, field)
	if n != nil && (*n < 1 || *n > most) {
		d.add(field, fmt.Sprintf("must be from 1 to %d", most))
		return nil
	}
	return n
}

// shownSlots is how many slots an answer lists.
const shownSlots = 100

func showPlan(schedule uuid.UUID, p schedules.BackfillPlan) BackfillPlan {
	out := BackfillPlan{Runs: p.Runs(), Slots: []BackfillSlot{}, Warnings: []string{}}
	out.Done = len(p.Slots) - out.Runs
	if p.Backfill != nil {
		shown := showBackfill(*p.Backfill)
		out.Backfill = &shown
	}
	for _, s := range p.Slots[:min(len(p.Slots), shownSlots)] {
		out.Slots = append(out.Slots, showSlot(schedule, p, s))
	}
	if !p.Unsettled.IsZero() {
		out.Warnings = append(out.Warnings, fmt.Sprintf("slots from %s on are left to the schedule, which has not dealt with them yet", p.Unsettled.UTC().Format(time.RFC3339)))
	}
	return out
}

func showSlot(schedule uuid.UUID, p schedules.BackfillPlan, s backfill.Planned) BackfillSlot {
	out := BackfillSlot{ScheduledFor: s.Slot.UTC(), Runs: !s.Run.Key.IsZero(), State: string(s.Why)}
	if out.Runs && p.Backfill != nil {
		out.RunID = core.RunKey{Region: p.Backfill.Region, ScheduleID: schedule, Slot: s.Run.Key}.ID()
	}
	return out
}

func showBackfill(b core.Backfill) Backfill {
	live := len(b.Count())
	out := Backfill{
		ID: b.ID.String(), ScheduleID: b.ScheduleID.String(), From: b.From.UTC(), To: b.To.UTC(), Order: "ascending", Rerun: b.Rerun,
		Concurrency: b.Concurrency, State: string(b.State), Total: b.Total, Admitted: b.Admitted, Left: b.Total - b.Admitted, Live: live,
		Succeeded: b.Succeeded, Dead: b.Dead, Canceled: b.Canceled, CreatedAt: b.CreatedAt.UTC(), FinishedAt: optional(b.FinishedAt),
	}
	if b.Descending {
		out.Order = "descending"
	}
	return out
}

func (a *api) backfills(ctx context.Context, tenant uuid.UUID, in *backfillsList) (*backfillsOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	all, err := a.service.Backfills(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return &backfillsOutput{list(all, false, showBackfill, nil)}, nil
}

func (a *api) backfill(ctx context.Context, tenant uuid.UUID, in *backfillID) (*backfillShown, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	b, err := a.service.GetBackfill(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return &backfillShown{showBackfill(b)}, nil
}

func (a *api) cancelBackfill(ctx context.Context, tenant uuid.UUID, in *backfillCancel) (*backfillShown, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	runs := false
	if len(in.RawBody) > 0 {
		d, object, err := open(in.RawBody)
		if err != nil {
			return nil, err
		}
		for i, name := range object.names {
			if name != "cancel_runs" {
				d.unknown(name)
				continue
			}
			set(d.boolean(object.values[i], name), &runs)
		}
		if err := d.err(); err != nil {
			return nil, err
		}
	}
	b, err := a.service.CancelBackfill(ctx, tenant, id, runs)
	if err != nil {
		return nil, err
	}
	return &backfillShown{showBackfill(b)}, nil
}
