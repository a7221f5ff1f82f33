package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// The bounds of a preview.
const (
	defaultCount = 5
	maxCount     = 1000
)

// PreviewInput is the body that asks when a spec would come. It documents the
// fields and serves clients, as ScheduleInput does.
type PreviewInput struct {
	_             struct{} `additionalProperties:"false"`
	Spec          string   `json:"spec" doc:"A cron expression, every 15m, at 2027-01-05T09:00 or in 3d." example:"30 2 * * *"`
	TimeZone      string   `json:"time_zone,omitempty" doc:"An IANA zone name. Defaults to UTC." example:"Europe/Berlin"`
	Anchor        string   `json:"anchor,omitempty" format:"date-time" doc:"The origin of an interval."`
	DSTGap        string   `json:"dst_gap,omitempty" enum:"auto,run_after,skip" default:"auto" doc:"auto, run_after or skip. Defaults to auto."`
	DSTOverlap    string   `json:"dst_overlap,omitempty" enum:"auto,first,both" default:"auto" doc:"auto, first or both. Defaults to auto."`
	CatchUpWithin string   `json:"catch_up_within,omitempty" doc:"How late a one-time spec may be."`
	Window        string   `json:"window,omitempty" doc:"How far starts would be spread."`
	Exact         bool     `json:"exact,omitempty" doc:"Whether a macro would be kept on its nominal time."`
	From          string   `json:"from,omitempty" format:"date-time" doc:"Only slots after this time. Defaults to now." example:"2026-03-28T00:00:00Z"`
	Count         int      `json:"count,omitempty" minimum:"1" maximum:"1000" doc:"How many slots. Defaults to 5."`
}

// Preview is what a spec was taken for and when it comes next.
type Preview struct {
	Spec           string        `json:"spec" doc:"The normalized spec."`
	TimeZone       string        `json:"time_zone" doc:"An IANA zone name; empty is UTC."`
	TimeZoneTarget string        `json:"time_zone_target,omitempty" doc:"The zone that time_zone stands for, if it is a legacy name."`
	Description    string        `json:"description" doc:"The spec in plain English." example:"at 02:30 every day, Europe/Berlin time"`
	DST            DST           `json:"dst" doc:"How the spec meets clock changes."`
	Spread         string        `json:"spread" doc:"How far starts are spread after their slot."`
	Hint           string        `json:"hint,omitempty" doc:"What the spec may not say plainly."`
	Next           []PreviewSlot `json:"next" nullable:"false" doc:"The slots, soonest first; fewer than asked for if no more come."`
}

// PreviewSlot is one slot of a preview, as the zone's clocks show it.
type PreviewSlot struct {
	ScheduledFor time.Time `json:"scheduled_for" doc:"The slot, in UTC."`
	// StartsAt is nil where there is no schedule yet, whose id decides.
	StartsAt  *time.Time `json:"starts_at,omitempty" doc:"When its run starts: the slot and the spread of this schedule, or when an exception says."`
	Skipped   string     `json:"skipped,omitempty" doc:"Why it will be recorded and not run, as far as is known: exception or blackout." example:"blackout"`
	Local     string     `json:"local" doc:"The slot on the zone's clocks." example:"2026-03-29T03:00:00+02:00"`
	UTCOffset string     `json:"utc_offset" doc:"How far these are from UTC." example:"+02:00"`
	Reason    string     `json:"reason,omitempty" doc:"What a clock change did to the slot." example:"clocks went from 02:00 to 03:00: runs now for 02:30, which did not exist"`
}

// NewPreview lists up to n slots of s after from; parsed is its spec. It is a
// pure function; n is bounded by the caller.
func NewPreview(s *core.Schedule, parsed spec.Spec, from time.Time, n int) Preview {
	p := Preview{
		Spec: parsed.Text, TimeZone: parsed.Zone, TimeZoneTarget: linkTarget(parsed.Zone), DST: *showDST(parsed.DST),
		Description: describe(parsed), Hint: parsed.Hint, Next: make([]PreviewSlot, 0, n),
	}
	spread := *s
	spread.Spec, spread.Paused = parsed.Text, false
	p.Spread = core.FormatDuration(spread.Spread())
	if s.ID == uuid.Nil && p.Hint == "" && parsed.FromID {
		p.Hint = "the id of a schedule decides about its slots here; these are those of one such schedule"
	}
	loc, err := cron.LoadLocation(parsed.Zone)
	if err != nil {
		loc = time.UTC // impossible: the spec was parsed with it
	}
	for at := parsed.Next(from); !at.IsZero() && at.Before(core.Forever) && len(p.Next) < n; at = parsed.Next(at) {
		local := at.In(loc)
		slot := PreviewSlot{ScheduledFor: at.UTC(), Local: local.Format(offsetLayout), UTCOffset: local.Format("-07:00"), Reason: parsed.Explain(at)}
		if s.ID != uuid.Nil {
			slot.StartsAt = optional(spread.Effective(at))
			why, _ := plan.Judge(&spread, parsed, at, at)
			slot.Skipped = string(why)
		}
		p.Next = append(p.Next, slot)
	}
	return p
}

// offsetLayout is RFC 3339 with +00:00 instead of Z, since it is local time.
const offsetLayout = "2006-01-02T15:04:05-07:00"

func describe(parsed spec.Spec) string {
	text := parsed.Describe()
	if strings.HasPrefix(parsed.Text, "every ") {
		return text
	}
	if parsed.Zone == "" {
		return text + ", UTC"
	}
	return text + ", " + parsed.Zone + " time"
}

type (
	nextInput struct {
		ID string `path:"id" doc:"The schedule's id."`
		N  string `query:"n"`
	}
	previewInput  struct{ RawBody []byte }
	previewOutput struct{ Body Preview }
)

func (a *api) addPreviews() {
	low, high := 1.0, float64(maxCount)
	schema := a.huma.OpenAPI().Components.Schemas.Schema(typeOf[PreviewInput](), false, "")
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "previewSchedule", Method: http.MethodGet, Path: "/v1/schedules/{id}/next", Tags: []string{"schedules"},
		Summary: "Tell when a schedule comes next", Description: "As if it were not paused.",
		Parameters: []*huma.Param{{
			Name: "n", In: "query", Description: "How many slots.",
			Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &low, Maximum: &high, Default: defaultCount},
		}},
	}}, a.next)
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "previewSpec", Method: http.MethodPost, Path: "/v1/next", Tags: []string{"schedules"},
		Summary: "Tell when a spec would come next", Description: "Nothing is stored.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{mediaJSON: {Schema: schema}}},
	}}, a.preview)
}

func (a *api) next(ctx context.Context, tenant uuid.UUID, in *nextInput) (*previewOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	n := defaultCount
	if in.N != "" {
		if n, err = strconv.Atoi(in.N); err != nil || n < 1 || n > maxCount {
			return nil, core.Invalid("n", "must be a whole number from 1 to %d", maxCount)
		}
	}
	s, parsed, from, err := a.service.Upcoming(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return &previewOutput{NewPreview(&s, parsed, from, n)}, nil
}

func (a *api) preview(ctx context.Context, _ uuid.UUID, in *previewInput) (*previewOutput, error) {
	body, err := decodePreview(in.RawBody)
	if err != nil {
		return nil, err
	}
	s, parsed, from, err := a.service.Preview(ctx, body.Fields, body.from)
	if err != nil {
		return nil, err
	}
	return &previewOutput{NewPreview(&s, parsed, from, body.count)}, nil
}
