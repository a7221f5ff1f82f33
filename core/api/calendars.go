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
	"github.com/fencepost/fencepost/core/schedules"
)

// CalendarInput is the body that makes a calendar what it says. Times are those of
// the zone's clocks.
type CalendarInput struct {
	_        struct{}       `additionalProperties:"false"`
	TimeZone string         `json:"time_zone,omitempty" doc:"An IANA zone name. Defaults to UTC." example:"Europe/Berlin"`
	Note     string         `json:"note,omitempty" doc:"What for, for people; at most 500 bytes."`
	Dates    []string       `json:"dates,omitempty" doc:"Whole days, at most 1000." example:"[\"2026-12-25\"]"`
	Ranges   []ClosedRange  `json:"ranges,omitempty" doc:"Longer times, at most 500."`
	Weekly   []ClosedWeekly `json:"weekly,omitempty" doc:"What comes again each week, at most 100."`
}

// ClosedRange is closed from one time to another.
type ClosedRange struct {
	_    struct{} `additionalProperties:"false"`
	From string   `json:"from" doc:"A date, or a date and time on the zone's clocks." example:"2026-12-23T18:00"`
	To   string   `json:"to" doc:"A date, which is closed as a whole, or the date and time when it is open again." example:"2027-01-02"`
}

// ClosedWeekly is closed on some days of the week.
type ClosedWeekly struct {
	_    struct{} `additionalProperties:"false"`
	Days []string `json:"days" enum:"sun,mon,tue,wed,thu,fri,sat" doc:"The days on which it begins."`
	From string   `json:"from,omitempty" doc:"A time of day. Defaults to 00:00." example:"18:00"`
	To   string   `json:"to,omitempty" doc:"A time of day, of the next day if it is not later than from. Defaults to 24:00." example:"06:00"`
}

// Calendar is a named set of closed times: a slot in one of them is recorded as
// blackout, not run, for each schedule that names the calendar.
type Calendar struct {
	Name string `json:"name" example:"de-holidays"`
	// The content is as it was put, empty lists included.
	TimeZone  string         `json:"time_zone" doc:"An IANA zone name; empty is UTC."`
	Note      string         `json:"note"`
	Dates     []string       `json:"dates" nullable:"false"`
	Ranges    []ClosedRange  `json:"ranges" nullable:"false"`
	Weekly    []ClosedWeekly `json:"weekly" nullable:"false"`
	Version   int64          `json:"version" doc:"Rises with every change."`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
}

// CalendarResult is a calendar after a put, with what became of it.
type CalendarResult struct {
	Calendar
	Outcome string `json:"outcome" enum:"created,replaced,unchanged" doc:"What the put came to. Unchanged made no version."`
}

func showCalendar(c core.Calendar) Calendar {
	out := Calendar{
		Name: c.Name, TimeZone: c.TimeZone, Note: c.Note, Dates: append([]string{}, c.Dates...), Ranges: []ClosedRange{}, Weekly: []ClosedWeekly{},
		Version: c.Version, CreatedAt: c.CreatedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC(),
	}
	for _, r := range c.Ranges {
		out.Ranges = append(out.Ranges, ClosedRange{From: r.From, To: r.To})
	}
	for _, w := range c.Weekly {
		out.Weekly = append(out.Weekly, ClosedWeekly{Days: w.Days, From: w.From, To: w.To})
	}
	return out
}

type (
	calendarName struct {
		Name string `path:"name" doc:"The calendar's name."`
	}
	calendarChange struct {
		Name string `path:"name" doc:"The calendar's name."`
		MatchHeader
	}
	calendarPut struct {
		Name string `path:"name" doc:"The calendar's name."`
		MatchHeader
		DryRun  string `query:"dry_run"`
		RawBody []byte
	}
	calendarOutput struct {
		VersionHeader
		Body Calendar
	}
	calendarPutOutput struct {
		VersionHeader
		Status int
		Body   CalendarResult
	}
	calendarsOutput struct{ Body List[Calendar] }
)

func (a *api) addCalendars() {
	tags, path := []string{"calendars"}, "/v1/calendars/{name}"
	schemas := a.huma.OpenAPI().Components.Schemas
	schema := schemas.Schema(typeOf[CalendarInput](), false, "")
	result := schemas.Schema(typeOf[CalendarResult](), true, "")
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "listCalendars", Method: http.MethodGet, Path: "/v1/calendars", Tags: tags,
		Summary: "List calendars", Description: "All of them, on one page.",
	}}, a.calendars)
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "getCalendar", Method: http.MethodGet, Path: path, Tags: tags, Summary: "Show a calendar",
	}}, a.calendar)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "putCalendar", Method: http.MethodPut, Path: path, Tags: tags,
		Summary: "Create or replace a calendar",
		Description: "The body is the whole calendar. Equal content makes no version. Once it is answered it holds for every slot that has not been claimed. " +
			"A slot is judged by its nominal time: a run that starts late, spread or after a retry may do so in a closed time. " +
			"What an exception moves, or gives another payload, runs. With dry_run nothing is stored, and the answer is what would be.",
		Parameters:  dryRunParam(),
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaJSON: {Schema: schema}}},
		Responses: map[string]*huma.Response{"201": {
			Description: "Created", Content: map[string]*huma.MediaType{mediaJSON: {Schema: result}},
		}},
	}}, a.putCalendar)
	handle(a, operation{scope: scopeWrite, Operation: huma.Operation{
		OperationID: "deleteCalendar", Method: http.MethodDelete, Path: path, Tags: tags,
		Summary: "Delete a calendar", Description: "Refused as calendar_in_use while a schedule names it.",
	}}, a.deleteCalendar)
}

func (a *api) calendars(ctx context.Context, tenant uuid.UUID, _ *struct{}) (*calendarsOutput, error) {
	all, err := a.service.Calendars(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := &calendarsOutput{List[Calendar]{Items: make([]Calendar, len(all))}}
	for i, c := range all {
		out.Body.Items[i] = showCalendar(c)
	}
	return out, nil
}

func (a *api) calendar(ctx context.Context, tenant uuid.UUID, in *calendarName) (*calendarOutput, error) {
	c, err := a.service.Calendar(ctx, tenant, in.Name)
	if err != nil {
		return nil, err
	}
	return &calendarOutput{etag(c.Version), showCalendar(c)}, nil
}

func (a *api) putCalendar(ctx context.Context, tenant uuid.UUID, in *calendarPut) (*calendarPutOutput, error) {
	dryRun, err := parseDryRun(in.DryRun)
	if err != nil {
		return nil, err
	}
	content, err := decodeCalendar(in.RawBody)
	if err != nil {
		return nil, err
	}
	match, err := in.match()
	if err != nil {
		return nil, err
	}
	c, outcome, err := a.service.If(match).PutCalendar(ctx, tenant, in.Name, content, dryRun)
	if err != nil {
		return nil, err
	}
	out := &calendarPutOutput{Status: http.StatusOK, Body: CalendarResult{showCalendar(c), string(outcome)}}
	if !dryRun {
		out.VersionHeader = etag(c.Version)
	}
	if outcome == schedules.Created && !dryRun {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (a *api) deleteCalendar(ctx context.Context, tenant uuid.UUID, in *calendarChange) (*struct{}, error) {
	match, err := in.match()
	if err != nil {
		return nil, err
	}
	return nil, a.service.If(match).DeleteCalendar(ctx, tenant, in.Name)
}

// The bounds of the lists are the decoder's; core/calendar has its own.
const (
	maxDates = 1000
	maxSpans = 500
	maxDays  = 7
)

func decodeCalendar(body []byte) (core.CalendarContent, error) {
	var c core.CalendarContent
	d, object, err := open(body)
	if err != nil {
		return c, err
	}
	for i, name := range object.names {
		value := object.values[i]
		switch name {
		case "time_zone":
			set(d.text(value, name), &c.TimeZone)
		case "note":
			set(d.text(value, name), &c.Note)
		case "dates":
			c.Dates = *d.texts(value, name, maxDates)
		case "ranges":
			for n, item := range d.list(value, name, 0, maxSpans) {
				r := core.ClosedRange{}
				d.closed(item, fmt.Sprintf("ranges[%d]", n), &r.From, &r.To, nil)
				c.Ranges = append(c.Ranges, r)
			}
		case "weekly":
			for n, item := range d.list(value, name, 0, maxSpans) {
				w := core.ClosedWeekly{}
				d.closed(item, fmt.Sprintf("weekly[%d]", n), &w.From, &w.To, &w.Days)
				c.Weekly = append(c.Weekly, w)
			}
		default:
			d.unknown(name)
		}
	}
	return c, d.err()
}

// closed reads a closed time; days is nil where there are none.
func (d *decoder) closed(raw json.RawMessage, field string, from, to *string, days *[]string) {
	object := d.object(raw, field)
	if object == nil {
		return
	}
	for i, name := range object.names {
		value, path := object.values[i], field+"."+shorten(name)
		switch {
		case name == "from":
			set(d.text(value, path), from)
		case name == "to":
			set(d.text(value, path), to)
		case name == "days" && days != nil:
			*days = *d.texts(value, path, maxDays)
		default:
			d.unknown(path)
		}
	}
}
