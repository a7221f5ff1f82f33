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

// maxBatchBytes bounds the body of a batch. Each of its items may have as many
// bytes as a body of its own.
const maxBatchBytes = 8 << 20

const batchPath = "/v1/schedules/batch"

// The modes of a batch.
const (
	modeCreate = "create"
	modePut    = "put"
)

// BatchInput is the body that creates or puts many schedules. It serves clients;
// the server decodes more strictly than encoding/json can.
type BatchInput struct {
	// Items are bodies as POST /v1/schedules takes them, at most 1,000.
	Items []json.RawMessage `json:"items"`
	// Mode is create, the default, or put.
	Mode   string `json:"mode,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// BatchItem is what became of one item, as if it had been sent by itself.
type BatchItem struct {
	Status  int      `json:"status" doc:"The HTTP status that the item would have had by itself." example:"201"`
	Outcome string   `json:"outcome,omitempty" enum:"created,replaced,unchanged" doc:"What the item came to, unless there was a problem."`
	ID      string   `json:"id,omitempty" doc:"The schedule's id; none in a dry run that would create it."`
	Name    string   `json:"name,omitempty" doc:"The name that the item asked for."`
	Problem *Problem `json:"problem,omitempty" doc:"Why the item was refused."`
}

// BatchResult has the items of a batch in their order, and how many of them came
// to what.
type BatchResult struct {
	Items     []BatchItem `json:"items" nullable:"false"`
	Created   int         `json:"created"`
	Replaced  int         `json:"replaced"`
	Unchanged int         `json:"unchanged"`
	Refused   int         `json:"refused"`
}

type (
	batchInput struct {
		KeyHeader
		RawBody []byte
	}
	batchOutput struct {
		ReplayHeader
		Body BatchResult
	}
)

func (a *api) addBatch() {
	handle(a, operation{scope: scopeWrite, maxBody: maxBatchBytes, Operation: huma.Operation{
		OperationID: "batchSchedules", Method: http.MethodPost, Path: batchPath, Tags: []string{"schedules"},
		Summary: "Create or put up to 1,000 schedules",
		Description: "The body has at most 8 MiB. The items are taken as if each were sent by itself, in order, and each has its own outcome: " +
			"a wrong one does not stop the others, and the answer is 200. Only a batch that cannot be read, or of which nothing could be decided, fails as a whole. " +
			"In mode put it may be sent again at any time, and in mode create with the same Idempotency-Key: what it made is found then, renamed or not, " +
			"and not made again if it was deleted (already_deleted). Without a key, items that are there already are refused with name_taken.",
		RequestBody: a.batchBody(), BodyReadTimeout: requestTimeout,
	}}, a.batch)
}

// batchBody describes the body.
func (a *api) batchBody() *huma.RequestBody {
	most := schedules.MaxMany
	least := 1
	item := a.bodyOf(mediaJSON, "name", "spec", "job").Content[mediaJSON].Schema
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaJSON: {Schema: &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"items"},
		Properties: map[string]*huma.Schema{
			"items":   {Type: huma.TypeArray, MinItems: &least, MaxItems: &most, Items: item, Description: "The schedules."},
			"mode":    {Type: huma.TypeString, Enum: []any{modeCreate, modePut}, Default: modeCreate, Description: "Put creates or replaces by name, as PUT does."},
			"dry_run": {Type: huma.TypeBoolean, Default: false, Description: "Store nothing, and answer what would be."},
		},
	}}}}
}

func (a *api) batch(ctx context.Context, tenant uuid.UUID, in *batchInput) (*batchOutput, error) {
	b, err := decodeBatch(in.RawBody)
	if err != nil {
		return nil, err
	}
	answer := make([]BatchItem, len(b.items))
	var fields []schedules.Fields
	var at []int // the item of each
	inputs := make([]input, len(b.items))
	for i, raw := range b.items {
		inputs[i], err = decodeItem(raw)
		if name := inputs[i].Name; name != nil && len(*name) <= core.MaxNameBytes {
			answer[i].Name = *name
		}
		if err != nil {
			answer[i].refuse(problemOf(err))
			continue
		}
		fields, at = append(fields, inputs[i].Fields), append(at, i)
	}
	options, err := a.batchOptions(ctx, tenant, in, b)
	if err != nil {
		return nil, err
	}
	results := a.service.Many(ctx, tenant, fields, options)
	failed := 0
	var failure error
	for n, r := range results {
		item := &answer[at[n]]
		if r.Err == nil {
			item.settle(r)
			continue
		}
		p := problemOf(asSent(r.Err, inputs[at[n]]))
		if p.Status >= http.StatusInternalServerError {
			failed, failure = failed+1, r.Err
		}
		item.refuse(p)
	}
	if failed == len(answer) {
		return nil, failure
	}
	if failure != nil {
		report(ctx, http.MethodPost, failure) // one of them is enough for the log
	}
	return &batchOutput{showReplayed(replayed(results)), count(answer)}, nil
}

// replayed reports whether a batch made nothing new, and had made something when it
// was sent before.
func replayed(results []schedules.Result) bool {
	again := false
	for _, r := range results {
		if r.Err == nil && !r.Again && r.Outcome != schedules.Unchanged {
			return false
		}
		again = again || r.Again && r.Err == nil
	}
	return again
}

// batchOptions says what the batch asks for; under an idempotency key the ids of
// what it makes are those of the first time.
func (a *api) batchOptions(ctx context.Context, tenant uuid.UUID, in *batchInput, b decodedBatch) (schedules.ManyOptions, error) {
	o := schedules.ManyOptions{Put: b.put, DryRun: b.dryRun}
	request := in.request("POST "+batchPath, in.RawBody)
	if request == nil || b.dryRun {
		return o, nil
	}
	origin, err := a.service.Reserve(ctx, tenant, *request)
	o.ID = origin.ID
	return o, err
}

func (i *BatchItem) refuse(p *Problem) { i.Status, i.Problem = p.Status, p }

func (i *BatchItem) settle(r schedules.Result) {
	i.Status, i.Outcome = http.StatusOK, string(r.Outcome)
	if id := r.Scheduled.Schedule.ID; id != (uuid.UUID{}) {
		i.ID = id.String()
	}
	if r.Outcome == schedules.Created {
		i.Status = http.StatusCreated
	}
}

func count(items []BatchItem) BatchResult {
	b := BatchResult{Items: items}
	for _, i := range items {
		switch schedules.Outcome(i.Outcome) {
		case schedules.Created:
			b.Created++
		case schedules.Replaced:
			b.Replaced++
		case schedules.Unchanged:
			b.Unchanged++
		default:
			b.Refused++
		}
	}
	return b
}

// decodedBatch is what the body of a batch says, its items not yet looked into.
type decodedBatch struct {
	items       []json.RawMessage
	put, dryRun bool
}

func decodeBatch(body []byte) (decodedBatch, error) {
	var b decodedBatch
	d, object, err := open(body)
	if err != nil {
		return b, err
	}
	for i, name := range object.names {
		value := object.values[i]
		switch name {
		case "items":
			b.items = d.list(value, name, 1, schedules.MaxMany)
		case "mode":
			if mode := d.text(value, name); mode != nil {
				b.put = *mode == modePut
				if !b.put && *mode != modeCreate {
					d.add(name, "must be create or put")
				}
			}
		case "dry_run":
			if on := d.boolean(value, name); on != nil {
				b.dryRun = *on
			}
		default:
			d.unknown(name)
		}
	}
	d.need(b.items != nil, "items")
	return b, d.err()
}

// decodeItem reads an item of a batch, which is like the body that creates a
// schedule. Its syntax was checked with that of the batch.
func decodeItem(raw json.RawMessage) (input, error) {
	var in input
	if len(raw) > maxBodyBytes {
		return in, tooLarge("item", maxBodyBytes)
	}
	d := &decoder{}
	object := d.object(raw, "")
	if object == nil {
		return in, newProblem(http.StatusUnprocessableEntity, string(core.CodeInvalid), "an item must be a JSON object")
	}
	for i, name := range object.names {
		d.field(&in, name, object.values[i])
	}
	d.need(in.Name != nil, "name")
	d.need(in.Spec != nil, "spec")
	d.need(in.Job != nil, "job")
	return in, d.err()
}
