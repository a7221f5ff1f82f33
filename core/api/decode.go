package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

const (
	maxFaults     = 30 // that one answer lists
	maxFieldBytes = 64 // of a name in an answer that the caller chose
)

// httpQueue is the queue of the built-in target that calls a URL.
const httpQueue = "http"

// input is what a body says about a schedule.
type input struct {
	schedules.Fields
	viaHTTP bool // the job came as job.http
}

// decodeCreate reads the body that creates a schedule.
func decodeCreate(body []byte) (input, error) {
	in, d, err := decode(body)
	if err != nil {
		return in, err
	}
	d.need(in.Name != nil, "name")
	d.need(in.Spec != nil, "spec")
	d.need(in.Job != nil, "job")
	return in, d.err()
}

// decodePatch reads the body that changes a schedule: the fields it has replace
// the schedule's, the job as a whole.
func decodePatch(body []byte) (input, error) {
	in, d, err := decode(body)
	if err != nil {
		return in, err
	}
	return in, d.err()
}

func decode(body []byte) (input, *decoder, error) {
	var in input
	d, object, err := open(body)
	if err != nil {
		return in, d, err
	}
	for i, name := range object.names {
		d.field(&in, name, object.values[i])
	}
	return in, d, nil
}

// open takes the object that a body has to be apart.
func open(body []byte) (*decoder, *members, error) {
	d := &decoder{}
	if err := checkSyntax(body); err != nil {
		return d, nil, err
	}
	object := d.object(bytes.Trim(body, " \t\r\n"), "")
	if object == nil {
		return d, nil, newProblem(http.StatusUnprocessableEntity, string(core.CodeInvalid), "the body must be a JSON object")
	}
	return d, object, nil
}

// preview is what a body asks about a spec.
type preview struct {
	input
	from  time.Time // zero: now
	count int
}

// decodePreview reads the body that asks when a spec would come.
func decodePreview(body []byte) (preview, error) {
	p := preview{count: defaultCount}
	d, object, err := open(body)
	if err != nil {
		return p, err
	}
	for i, name := range object.names {
		value := object.values[i]
		switch {
		case name == "from":
			if from := d.instant(value, name); from != nil && from.IsZero() {
				d.add(name, "is the zero time; leave it out to begin now")
			} else if from != nil {
				p.from = *from
			}
		case name == "count":
			if n := d.integer(value, name); n != nil {
				p.count = *n
			}
		case !d.slots(&p.input, name, value):
			d.unknown(name)
		}
	}
	d.need(p.Spec != nil, "spec")
	if p.count < 1 || p.count > maxCount {
		d.add("count", fmt.Sprintf("must be a whole number from 1 to %d", maxCount))
	}
	return p, d.err()
}

// decoder collects what is wrong with a body, so that one answer tells all.
type decoder struct {
	faults []FieldError
}

// field decodes one member of the body.
func (d *decoder) field(in *input, name string, raw json.RawMessage) {
	switch name {
	case "name":
		in.Name = d.text(raw, name)
	case "job":
		in.Job, in.viaHTTP = d.job(raw)
	case "misfire":
		in.Misfire = (*core.Misfire)(d.text(raw, name))
	case "misfire_grace":
		in.MisfireGrace = d.duration(raw, name)
	case "overlap":
		in.Overlap = (*core.Overlap)(d.text(raw, name))
	case "timeout":
		in.Timeout = d.duration(raw, name)
	case "total_timeout":
		in.TotalTimeout = d.duration(raw, name)
	case "retry":
		d.retry(in, raw)
	case "misfire_cap":
		in.MisfireCap = d.integer(raw, name)
	case "max_runs":
		if n := d.integer(raw, name); n != nil {
			runs := int64(*n)
			in.MaxRuns = &runs
		}
	case "keep_completed":
		in.KeepCompleted = d.duration(raw, name)
	case "delete_after_completion":
		in.DeleteAfterCompletion = d.boolean(raw, name)
	case "calendars":
		in.Calendars = d.texts(raw, name, core.MaxCalendarsOfSchedule)
	case "labels":
		in.Labels = d.labels(raw, name)
	case "paused":
		in.Paused = d.boolean(raw, name)
	default:
		if !d.slots(in, name, raw) {
			d.unknown(name)
		}
	}
}

// slots decodes a member that decides about slots or their spread, and reports
// whether name is one. What makes no sense in a spec or a zone is left to their
// parsers, which say where it stands.
func (d *decoder) slots(in *input, name string, raw json.RawMessage) bool {
	switch name {
	case "spec":
		in.Spec = d.string(raw, name)
	case "time_zone":
		in.TimeZone = d.string(raw, name)
	case "anchor":
		in.Anchor = d.instant(raw, name)
	case "dst_gap":
		in.DSTGap = (*core.DSTGap)(d.policy(raw, name))
	case "dst_overlap":
		in.DSTOverlap = (*core.DSTOverlap)(d.policy(raw, name))
	case "catch_up_within":
		in.CatchUpWithin = d.duration(raw, name)
	case "starts_at":
		in.StartsAt = d.bound(raw, name)
	case "ends_at":
		in.EndsAt = d.bound(raw, name)
	case "window":
		in.Window = d.duration(raw, name)
	case "exact":
		in.Exact = d.boolean(raw, name)
	default:
		return false
	}
	return true
}

// policy reads a policy that may be left to the spec.
func (d *decoder) policy(raw json.RawMessage, field string) *string {
	text := d.text(raw, field)
	switch {
	case text == nil:
	case *text == "":
		d.add(field, "must not be empty; leave the field out, or write auto")
	case *text == auto:
		*text = ""
	}
	return text
}

// job makes one of both forms of a job and reports whether it came as job.http.
func (d *decoder) job(raw json.RawMessage) (*core.Job, bool) {
	object := d.object(raw, "job")
	if object == nil {
		return nil, false
	}
	job := core.Job{Payload: json.RawMessage("null")}
	for i, name := range object.names {
		field, value := "job."+name, object.values[i]
		switch name {
		case "queue":
			if queue := d.text(value, field); queue != nil {
				job.Queue = *queue
			}
		case "payload":
			d.storable(value, field)
			job.Payload = value
		case "http":
			if d.object(value, field) != nil {
				d.storable(value, field)
			}
			job.Queue, job.Payload = httpQueue, value
		default:
			d.unknown(field)
		}
	}
	viaHTTP := slices.Contains(object.names, "http")
	switch {
	case !viaHTTP:
		d.need(job.Queue != "", "job.queue")
	case slices.Contains(object.names, "queue"), slices.Contains(object.names, "payload"):
		d.add("job", "must have either http, or queue and payload, but not both")
	}
	return &job, viaHTTP
}

// object takes an object apart; it returns nil for any other value.
func (d *decoder) object(raw json.RawMessage, field string) *members {
	if d.isNull(raw, field) {
		return nil
	}
	m, ok := split(raw)
	if !ok {
		d.add(field, "must be an object")
		return nil
	}
	for _, name := range m.twice {
		d.add(strings.TrimPrefix(field+"."+shorten(name), "."), "is there twice")
	}
	return &m
}

func (d *decoder) isNull(raw json.RawMessage, field string) bool {
	if string(raw) != "null" {
		return false
	}
	d.add(field, "must not be null; leave the field out instead")
	return true
}

func (d *decoder) storable(raw json.RawMessage, field string) {
	if why := unstorable(raw); why != "" {
		d.add(field, why)
	}
}

// need reports a field that is missing, unless it is there and was reported for
// something else.
func (d *decoder) need(there bool, field string) {
	reported := slices.ContainsFunc(d.faults, func(f FieldError) bool { return f.Field == field })
	if !there && !reported {
		d.add(field, "is required")
	}
}

func (d *decoder) unknown(field string) {
	d.fault(FieldError{shorten(field), codeUnknownField, "is not a field here"})
}

func (d *decoder) add(field, message string) {
	d.fault(FieldError{field, string(core.CodeInvalid), message})
}

func (d *decoder) fault(f FieldError) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, f)
	}
}

// err returns what was collected as one problem.
func (d *decoder) err() error {
	if len(d.faults) == 0 {
		return nil
	}
	return refusal(d.faults)
}

// shorten bounds a name that the caller chose.
func shorten(name string) string {
	if len(name) <= maxFieldBytes {
		return name
	}
	return strings.ToValidUTF8(name[:maxFieldBytes], "") + "…"
}
