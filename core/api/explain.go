package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core/explain"
	"github.com/fencepost/fencepost/core/schedules"
)

// Explanation is what a schedule did or will do around an instant, and why.
type Explanation struct {
	ScheduleID string    `json:"schedule_id"`
	Name       string    `json:"name"`
	State      string    `json:"state" enum:"active,paused,completed"`
	TimeZone   string    `json:"time_zone" doc:"An IANA zone name; empty is UTC."`
	At         time.Time `json:"at" doc:"The instant that was asked about."`
	IsSlot     bool      `json:"is_slot" doc:"Whether it is a slot."`
	Notes      []string  `json:"notes" nullable:"false" doc:"What the clocks did to a time on the clocks of the zone, and that there is no slot then."`
	// Before and After are nil if there is no such slot.
	Before *ExplainedSlot `json:"before,omitempty" doc:"The last slot that is not after it; none if there is no such slot."`
	After  *ExplainedSlot `json:"after,omitempty" doc:"The first slot after it; none if no more come."`
}

// ExplainedSlot is what became of a slot and why.
type ExplainedSlot struct {
	ScheduledFor time.Time `json:"scheduled_for" doc:"The slot, in UTC."`
	Local        string    `json:"local" doc:"The slot on the zone's clocks." example:"2026-03-29T03:00:00+02:00"`
	StartsAt     time.Time `json:"starts_at" doc:"When its run starts: the slot and the spread of this schedule, or when an exception says."`
	Verdict      string    `json:"verdict" enum:"queued,running,retrying,succeeded,dead,canceled,skipped,expected,will_skip,blocked,waiting,due,completed,before_creation,expired,changed,missing" doc:"What became of it: the state of its run or row, or what is to come of it, or why it has no row."`
	Reason       string    `json:"reason,omitempty" doc:"Why it is, or will be, skipped, dead or canceled."`
	RunID        string    `json:"run_id,omitempty" doc:"The row that stands for it."`
	OtherRunID   string    `json:"other_run_id,omitempty" doc:"The run that stands in for it, that it met or that it waits for."`
	ClockChange  string    `json:"clock_change,omitempty" doc:"What a clock change did to it."`
	Sentence     string    `json:"sentence" doc:"All that in plain English." example:"ran: the first attempt succeeded at 2026-03-29 03:00:01 +02:00"`
}

type (
	explainInput struct {
		ID string `path:"id" doc:"The schedule's id."`
		At string `query:"at" doc:"An instant, RFC 3339, or a time on the clocks of the schedule's zone; now if it is left out." example:"2026-03-29T02:30"`
	}
	explainOutput struct{ Body Explanation }
)

func (a *api) addExplain() {
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "explainSchedule", Method: http.MethodGet, Path: "/v1/schedules/{id}/explain", Tags: []string{"schedules"},
		Summary:     "Tell what became of the slots around an instant, and why",
		Description: "Runs that somebody asked for are no slots, and left out.",
	}}, a.explain)
}

func (a *api) explain(ctx context.Context, tenant uuid.UUID, in *explainInput) (*explainOutput, error) {
	id, err := parseID(in.ID)
	if err != nil {
		return nil, err
	}
	e, err := a.service.Explain(ctx, tenant, id, in.At)
	if err != nil {
		return nil, err
	}
	return &explainOutput{showExplanation(e)}, nil
}

func showExplanation(e schedules.Explanation) Explanation {
	out := Explanation{
		ScheduleID: e.Cur.Schedule.ID.String(), Name: e.Cur.Schedule.Name, State: string(e.Cur.State()), TimeZone: e.Slots.Zone,
		At: e.At.UTC(), Notes: []string{}, Before: showExplained(e.Before), After: showExplained(e.After),
		IsSlot: e.Before != nil && e.Before.ScheduledFor.Equal(e.At.Time),
	}
	if e.At.Note != "" {
		out.Notes = append(out.Notes, e.At.Note)
	}
	switch {
	case e.Before == nil && e.After == nil:
		out.Notes = append(out.Notes, "the schedule has no slots")
	case e.Before == nil:
		out.Notes = append(out.Notes, "no slot comes before that")
	case e.After == nil:
		out.Notes = append(out.Notes, "no slot comes after that")
	}
	if e.At.Asked != "" && e.At.Note == "" && !out.IsSlot {
		out.Notes = append(out.Notes, fmt.Sprintf("there is no slot then: %s", describe(e.Slots)))
	}
	return out
}

func showExplained(s *explain.Slot) *ExplainedSlot {
	if s == nil {
		return nil
	}
	out := &ExplainedSlot{
		ScheduledFor: s.ScheduledFor.UTC(), Local: s.Local.Format(offsetLayout), StartsAt: s.StartsAt.UTC(),
		Verdict: string(s.Verdict), Reason: string(s.Reason), ClockChange: s.ClockChange, Sentence: s.Sentence,
	}
	if s.Run != nil {
		out.RunID = s.Run.Key.ID()
	}
	if s.Other != nil {
		out.OtherRunID = s.Other.Key.ID()
	}
	return out
}
