package api

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

const maxRedrives = 100

// deadReasons are those that a dead run can have.
var deadReasons = [...]string{string(core.ReasonExhausted), string(core.ReasonPermanent), string(core.ReasonTimeout), string(core.ReasonLost), string(core.ReasonTotal)}

// RedriveInput is the body that redrives dead runs by a filter, of which one field
// at least has to be there. Empty fields are not sent.
type RedriveInput struct {
	_          struct{} `additionalProperties:"false"`
	ScheduleID string   `json:"schedule_id,omitempty" doc:"Only runs of this schedule."`
	Queue      string   `json:"queue,omitempty" doc:"Only runs of schedules whose job names this queue." example:"http"`
	NamePrefix string   `json:"name_prefix,omitempty" doc:"Only runs of schedules whose name begins so." example:"nightly-"`
	Labels     string   `json:"labels,omitempty" doc:"Only runs of schedules whose labels meet all of these conditions, as in the list of schedules." example:"team=payments"`
	From       string   `json:"from,omitempty" doc:"Only runs whose slot is not before this time, RFC 3339." example:"2026-12-01T00:00:00Z"`
	To         string   `json:"to,omitempty" doc:"Only runs whose slot is before this time, RFC 3339." example:"2026-12-02T00:00:00Z"`
	Reasons    []string `json:"reasons,omitempty" enum:"exhausted,permanent,timeout,lost,total_timeout" doc:"Only runs that are dead for one of these reasons."`
	Limit      int      `json:"limit,omitempty" minimum:"1" maximum:"100" default:"100" doc:"How many runs to redrive at most."`
	Cursor     string   `json:"cursor,omitempty" doc:"The next_cursor of the answer before, with the same filters."`
	DryRun     bool     `json:"dry_run,omitempty" doc:"Change nothing, and answer what would be redriven."`
}

// RedriveItem is what became of one dead run.
type RedriveItem struct {
	Run     Run      `json:"run" doc:"The run as it is now."`
	Problem *Problem `json:"problem,omitempty" doc:"Why the run was left alone; none if it was redriven, or would be."`
}

type (
	redriveInput  struct{ RawBody []byte }
	redriveOutput struct{ Body List[RedriveItem] }
)

func (a *api) addRedrives() {
	tags := []string{"runs"}
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "redriveRun", Method: http.MethodPost, Path: "/v1/runs/{id}/redrive", Tags: tags,
		Summary: "Try a dead run again", DefaultStatus: http.StatusAccepted,
		Description: "It gets as many attempts more as its schedule has, with the schedule's job as it is then, and keeps its slot and its interval of data. " +
			"A run that is alive is answered as it is, so that a redrive may be sent again. Refused as run_not_dead for one that ended otherwise, " +
			"and as run_superseded if a later run was admitted and overlap is not allow.",
	}}, a.redrive)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "redriveRuns", Method: http.MethodPost, Path: "/v1/runs/redrive", Tags: tags,
		Summary: "Try dead runs again that a filter chooses",
		Description: "Of schedules whose overlap is not allow only the last run that was admitted can be chosen: later runs supersede the others. " +
			"An answer may have fewer items than the limit, or none, although there are more: go on while next_cursor is not null.",
		RequestBody: a.redriveBody(),
	}}, a.redriveMany)
}

// redriveBody describes the body.
func (a *api) redriveBody() *huma.RequestBody {
	schema := a.huma.OpenAPI().Components.Schemas.Schema(typeOf[RedriveInput](), false, "")
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaJSON: {Schema: schema}}}
}

func (a *api) redrive(ctx context.Context, tenant uuid.UUID, in *runID) (*cancelOutput, error) {
	key, err := core.ParseRunID(in.ID)
	if err != nil {
		return nil, err
	}
	run, err := a.service.Redrive(ctx, tenant, key)
	if err != nil {
		return nil, err
	}
	return &cancelOutput{showRun(run)}, nil
}

func (a *api) redriveMany(ctx context.Context, tenant uuid.UUID, in *redriveInput) (*redriveOutput, error) {
	q, l, err := decodeRedrive(in.RawBody, tenant)
	if err != nil {
		return nil, err
	}
	page, err := a.service.RedriveAll(ctx, tenant, q)
	if err != nil {
		return nil, err
	}
	show := func(r schedules.Redriven) RedriveItem {
		item := RedriveItem{Run: showRun(r.Run)}
		if r.Err != nil {
			item.Problem = problemOf(r.Err)
		}
		return item
	}
	return &redriveOutput{list(page.Items, page.More, show, func() string { return l.format(formatRedrive(page.Last)) })}, nil
}

// decodeRedrive reads the body of a redrive by filter, and to what its cursors
// belong.
func decodeRedrive(body []byte, tenant uuid.UUID) (schedules.RedriveQuery, listing, error) {
	q := schedules.RedriveQuery{Limit: maxRedrives}
	l := listing{"redrive", tenant, url.Values{}}
	d, object, err := open(body)
	if err != nil {
		return q, l, err
	}
	cursor := ""
	for i, name := range object.names {
		value := object.values[i]
		switch name {
		case "limit":
			if n := d.integer(value, name); n != nil {
				q.Limit = *n
			}
		case "dry_run":
			if on := d.boolean(value, name); on != nil {
				q.DryRun = *on
			}
		case "cursor":
			if text := d.text(value, name); text != nil {
				cursor = *text
			}
		default:
			d.redriveFilter(&q, name, value)
			l.filter.Set(name, string(value))
		}
	}
	switch {
	case q.Limit < 1 || q.Limit > maxRedrives:
		d.add("limit", fmt.Sprintf("must be a whole number from 1 to %d", maxRedrives))
	case len(l.filter) == 0:
		d.add("", `chooses everything; give a filter, such as "from"`)
	}
	l.filter.Set("dry_run", strconv.FormatBool(q.DryRun))
	if err := d.err(); err != nil {
		return q, l, err
	}
	position, err := l.parse(cursor, redriveBytes)
	if err == nil && position != nil {
		q.After, err = parseRedrive(position)
	}
	return q, l, err
}

// redriveFilter decodes one field that chooses runs.
func (d *decoder) redriveFilter(q *schedules.RedriveQuery, name string, raw json.RawMessage) {
	var err error
	switch name {
	case "reasons":
		d.deadReasons(q, raw)
	case "schedule_id", "queue", "name_prefix", "labels", "from", "to":
		text := d.text(raw, name)
		if text == nil {
			return
		}
		switch name {
		case "schedule_id":
			if q.Schedule, err = parseID(*text); err != nil {
				err = core.Invalid(name, "is no id of a schedule")
			}
		case "queue":
			q.Schedules.Queue = *text
		case "name_prefix":
			q.Schedules.NamePrefix = *text
		case "labels":
			q.Schedules.Labels, err = core.ParseSelector(*text)
		case "from":
			q.From, err = parseBound(name, *text)
		case "to":
			q.Before, err = parseBound(name, *text)
		}
		if *text == "" || hasControl(*text) {
			err = core.Invalid(name, "is empty or has a control character")
		}
	default:
		d.unknown(name)
	}
	if err != nil {
		d.add(name, problemOf(err).Detail)
	}
}

func (d *decoder) deadReasons(q *schedules.RedriveQuery, raw json.RawMessage) {
	reasons := d.texts(raw, "reasons", len(deadReasons))
	if reasons == nil {
		return
	}
	for i, reason := range *reasons {
		if !slices.Contains(deadReasons[:], reason) {
			d.add(fmt.Sprintf("reasons[%d]", i), "must be one of "+strings.Join(deadReasons[:], ", "))
		}
		q.Reasons = append(q.Reasons, core.Reason(reason))
	}
}

// redriveBytes is the length of what formatRedrive returns.
const redriveBytes = len(uuid.UUID{}) + slotBytes

func formatRedrive(p schedules.RedrivePosition) []byte {
	if p.Slot.IsZero() {
		return append(p.Schedule[:], make([]byte, slotBytes)...)
	}
	return append(p.Schedule[:], formatSlot(p.Slot)...)
}

func parseRedrive(b []byte) (p schedules.RedrivePosition, err error) {
	n := copy(p.Schedule[:], b)
	if binary.BigEndian.Uint64(b[n:]) == 0 {
		return p, nil
	}
	p.Slot, err = parseSlot(b[n:])
	return p, err
}
