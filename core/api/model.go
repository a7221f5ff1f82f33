package api

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/core/spec"
)

// ScheduleInput is the body that creates or changes a schedule. It documents
// the fields and serves clients; the server decodes more strictly than
// encoding/json can. Empty fields are not sent.
type ScheduleInput struct {
	_                     struct{}          `additionalProperties:"false"`
	Name                  string            `json:"name,omitempty" doc:"Unique among your schedules, at most 200 bytes." example:"nightly-report"`
	Spec                  string            `json:"spec,omitempty" doc:"A cron expression, every 15m, at 2027-01-05T09:00 or in 3d." example:"0 3 * * *"`
	TimeZone              string            `json:"time_zone,omitempty" doc:"An IANA zone name. Defaults to UTC." example:"Europe/Berlin"`
	Anchor                string            `json:"anchor,omitempty" format:"date-time" doc:"The origin of an interval, RFC 3339. Without one the schedule's id decides the phase."`
	DSTGap                string            `json:"dst_gap,omitempty" enum:"auto,run_after,skip" default:"auto" doc:"What becomes of slots that a clock change skips: auto, run_after or skip. Defaults to auto." example:"auto"`
	DSTOverlap            string            `json:"dst_overlap,omitempty" enum:"auto,first,both" default:"auto" doc:"Which pass of a repeated hour counts: auto, first or both. Defaults to auto." example:"auto"`
	CatchUpWithin         string            `json:"catch_up_within,omitempty" doc:"How late a one-time schedule may be created and still fire, at once. Defaults to 0s: not at all." example:"1h"`
	Labels                map[string]string `json:"labels,omitempty" doc:"What you find schedules by: at most 32, keys of up to 63 letters, digits and . _ - /, values of up to 200 bytes. Replaced as a whole."`
	Job                   *JobInput         `json:"job,omitempty" doc:"What a run does."`
	Misfire               string            `json:"misfire,omitempty" enum:"run_once,skip,run_all" default:"run_once" doc:"What becomes of slots that passed in an outage: run_once runs the newest, skip none, run_all up to misfire_cap of them, in order." example:"run_once"`
	MisfireCap            int               `json:"misfire_cap,omitempty" minimum:"1" maximum:"10000" doc:"How many missed slots run_all runs, the newest. Defaults to 1000." example:"100"`
	Grace                 string            `json:"misfire_grace,omitempty" doc:"How late a slot may be claimed and still count as on time. Defaults to 60s." example:"60s"`
	Overlap               string            `json:"overlap,omitempty" enum:"skip,allow,queue_one,cancel_previous" default:"skip" doc:"What becomes of a slot that comes while a run is alive: skip records it, allow runs it too, queue_one lets one wait, cancel_previous cancels the run." example:"skip"`
	StartsAt              string            `json:"starts_at,omitempty" doc:"No slots before this time, RFC 3339; an empty string is no bound. An interval without an anchor begins there." example:"2027-01-01T00:00:00Z"`
	EndsAt                string            `json:"ends_at,omitempty" doc:"No slots from this time on, RFC 3339; an empty string is no bound." example:"2028-01-01T00:00:00Z"`
	MaxRuns               int64             `json:"max_runs,omitempty" minimum:"0" doc:"How often it runs before it is completed; manual runs, retries and skipped slots do not count. Defaults to 0: no limit." example:"10"`
	Calendars             []string          `json:"calendars,omitempty" doc:"Names of calendars in which slots are closed: recorded as blackout, not run. At most 10; an empty list is none." example:"[\"de-holidays\"]"`
	KeepCompleted         string            `json:"keep_completed,omitempty" doc:"How long it stays once it will not fire again. Defaults to 30d." example:"30d"`
	DeleteAfterCompletion bool              `json:"delete_after_completion,omitempty" doc:"Deletes it as soon as it is completed and its last run has ended. Defaults to false."`
	Window                string            `json:"window,omitempty" doc:"How far starts may be spread after their slot. Defaults to 0s; @hourly, @daily, @weekly, @monthly and @yearly are spread over an hour." example:"5m"`
	Exact                 bool              `json:"exact,omitempty" doc:"Keeps such a macro on its nominal time. Defaults to false."`
	Timeout               string            `json:"timeout,omitempty" doc:"How long one attempt may take; 0s is no limit. Defaults to 15m, for http to 60s." example:"15m"`
	TotalTimeout          string            `json:"total_timeout,omitempty" doc:"How long a run may take from when it is queued first, with all attempts and the waiting between. Defaults to 0s: no limit." example:"2h"`
	Retry                 *RetryInput       `json:"retry,omitempty" doc:"When and how often a failed attempt is tried again. A change replaces the members that it has."`
	Paused                *bool             `json:"paused,omitempty" doc:"Whether it is paused. Defaults to false; an existing schedule stays as it is."`
}

// JobInput is a job by queue and payload, or by http alone, which is the queue
// http with that object as its payload. Giving both is refused.
type JobInput struct {
	_       struct{}        `additionalProperties:"false"`
	Queue   string          `json:"queue,omitempty" doc:"The queue whose executors run the job." example:"reports"`
	Payload json.RawMessage `json:"payload,omitempty" doc:"Any JSON that the executor understands. Defaults to null."`
	HTTP    *HTTPInput      `json:"http,omitempty" doc:"A request to send, instead of queue and payload."`
}

// HTTPInput is the request that an http job sends.
type HTTPInput struct {
	Method  string            `json:"method,omitempty" doc:"Defaults to POST." example:"POST"`
	URL     string            `json:"url" doc:"Where to, http or https." example:"https://example.com/hook"`
	Headers map[string]string `json:"headers,omitempty" doc:"Headers to add."`
	Body    json.RawMessage   `json:"body,omitempty" doc:"A string is sent as it is, anything else as JSON. Defaults to an envelope that names the run."`
}

// Job is what a run does, always by queue and payload, whichever form it was
// sent in.
type Job struct {
	Queue   string          `json:"queue" doc:"The queue whose executors run the job."`
	Payload json.RawMessage `json:"payload" doc:"What the executor gets."`
}

// Schedule is a schedule as the API shows it: durations are text, times UTC.
type Schedule struct {
	ID                    string            `json:"id" doc:"A UUID that sorts by creation."`
	Name                  string            `json:"name"`
	Spec                  string            `json:"spec" doc:"The normalized spec."`
	TimeZone              string            `json:"time_zone" doc:"An IANA zone name; empty is UTC."`
	Anchor                *time.Time        `json:"anchor,omitempty" doc:"The origin of an interval or the instant of a one-time schedule."`
	TimeZoneTarget        string            `json:"time_zone_target,omitempty" doc:"The zone that time_zone stands for, if it is a legacy name."`
	DSTGap                string            `json:"dst_gap" enum:"auto,run_after,skip"`
	DSTOverlap            string            `json:"dst_overlap" enum:"auto,first,both"`
	DST                   *DST              `json:"dst,omitempty" doc:"How the spec meets clock changes, with auto resolved."`
	CatchUpWithin         string            `json:"catch_up_within"`
	Hint                  string            `json:"hint,omitempty" doc:"What the spec may not say plainly."`
	Labels                map[string]string `json:"labels" nullable:"false" doc:"What its owner finds it by."`
	Job                   Job               `json:"job"`
	Misfire               string            `json:"misfire"`
	MisfireGrace          string            `json:"misfire_grace"`
	Overlap               string            `json:"overlap"`
	Window                string            `json:"window"`
	Exact                 bool              `json:"exact" doc:"Whether a macro is kept on its nominal time."`
	Spread                string            `json:"spread" doc:"How far starts are spread after their slot: the window, or an hour for a macro that is not exact."`
	Timeout               string            `json:"timeout"`
	TotalTimeout          string            `json:"total_timeout" doc:"How long a run may take with all its attempts; 0s is no limit."`
	Retry                 Retry             `json:"retry" doc:"When and how often a failed attempt is tried again."`
	Calendars             []string          `json:"calendars" nullable:"false" doc:"The calendars in which slots are closed: recorded as blackout, not run."`
	MisfireCap            int               `json:"misfire_cap" doc:"How many missed slots run_all runs."`
	StartsAt              *time.Time        `json:"starts_at,omitempty" doc:"No slots before this time."`
	EndsAt                *time.Time        `json:"ends_at,omitempty" doc:"No slots from this time on."`
	MaxRuns               int64             `json:"max_runs" doc:"How often it runs before it is completed; 0 is no limit."`
	RunsLeft              *int64            `json:"runs_left,omitempty" doc:"How many of these are left."`
	KeepCompleted         string            `json:"keep_completed" doc:"How long it stays once it will not fire again."`
	DeleteAfterCompletion bool              `json:"delete_after_completion"`
	PausedUntil           *time.Time        `json:"paused_until,omitempty" doc:"When the pause ends by itself."`
	PauseNote             string            `json:"pause_note,omitempty" doc:"What the person who paused had to say."`
	Warnings              []string          `json:"warnings,omitempty" nullable:"false" doc:"What is legitimate and may surprise."`
	State                 string            `json:"state" enum:"active,paused,completed"`
	// NextRunAt is nil while the schedule is paused or completed.
	NextRunAt *time.Time `json:"next_run_at" doc:"When the next run is due, the spread included; null if paused or completed."`
	// LastRun is nil before the first run.
	LastRun   *LastRun  `json:"last_run"`
	LastState *string   `json:"last_state" doc:"The state of that run; null before the first, and once its history has expired."`
	Version   int64     `json:"version" doc:"Rises with every edit, pause and resume."`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// TransformSchema describes what the tags cannot, as [huma.SchemaTransformer]:
// an object that may be null.
func (Schedule) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	last := s.Properties["last_run"]
	s.Properties["last_run"] = &huma.Schema{
		Description: "The last run that was admitted; null before the first.",
		AnyOf:       []*huma.Schema{{Ref: last.Ref}, {Type: "null"}},
	}
	return s
}

// LastRun is the last run of a schedule that was admitted, which skipped slots
// are not.
type LastRun struct {
	ID           string    `json:"id"`
	ScheduledFor time.Time `json:"scheduled_for" doc:"Its slot."`
}

// DST is how a spec meets clock changes.
type DST struct {
	Gap     string `json:"gap" enum:"run_after,skip" doc:"What becomes of slots that a clock change skips."`
	Overlap string `json:"overlap" enum:"first,both" doc:"Which pass of a repeated hour counts."`
	Reason  string `json:"reason" doc:"Why it is so."`
}

func showDST(d spec.DST) *DST {
	return &DST{Gap: string(d.Gap), Overlap: string(d.Overlap), Reason: d.Reason}
}

// auto is what the API calls a policy that is left to the spec.
const auto = "auto"

func showSchedule(s core.Scheduled) Schedule {
	c := &s.Schedule
	shown := Schedule{
		ID: c.ID.String(), Name: c.Name, Spec: c.Spec, TimeZone: c.TimeZone, Anchor: optional(c.Anchor),
		DSTGap: cmp.Or(string(c.DSTGap), auto), DSTOverlap: cmp.Or(string(c.DSTOverlap), auto),
		CatchUpWithin: core.FormatDuration(c.CatchUpWithin), Exact: c.Exact, Spread: core.FormatDuration(c.Spread()),
		TimeZoneTarget: linkTarget(c.TimeZone),
		Labels:         c.Labels,
		Job:            Job{Queue: c.Job.Queue, Payload: c.Job.Payload},
		Misfire:        string(c.Misfire), MisfireGrace: core.FormatDuration(c.MisfireGrace), Overlap: string(c.Overlap),
		Window: core.FormatDuration(c.Window), Timeout: core.FormatDuration(c.Timeout), TotalTimeout: core.FormatDuration(c.Rules.TotalTimeout), Retry: showRetry(c),
		State: string(s.State()), Version: c.Version, CreatedAt: c.CreatedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC(),
	}
	if shown.Labels == nil {
		shown.Labels = map[string]string{}
	}
	if s.Timer.FireAt.Before(core.Forever) {
		shown.NextRunAt = optional(s.Timer.FireAt)
	}
	if parsed, err := spec.Of(&s); err == nil { // else it was parked with an alert
		shown.DST, shown.Hint = showDST(parsed.DST), parsed.Hint
		shown.Warnings = schedules.Warnings(&s, parsed)
		if shown.NextRunAt != nil && len(c.Rules.Calendars)+len(c.Rules.Exceptions) > 0 {
			shown.NextRunAt = optional(plan.NextStart(&s, parsed))
		}
	}
	shown.rules(&s)
	if last := s.Timer.LastRun; !last.IsZero() {
		shown.LastRun = &LastRun{core.RunKey{Region: c.Region, ScheduleID: c.ID, Slot: last}.ID(), last.UTC()}
		if s.LastState != "" {
			state := string(s.LastState)
			shown.LastState = &state
		}
	}
	return shown
}

// rules puts what limits a schedule into the form of the API.
func (s *Schedule) rules(from *core.Scheduled) {
	r := &from.Schedule.Rules
	s.Calendars = append([]string{}, r.Calendars...)
	s.MisfireCap = cmp.Or(r.MisfireCap, core.DefaultMisfireCap)
	s.StartsAt, s.EndsAt = optional(r.StartsAt), optional(r.EndsAt)
	s.MaxRuns, s.RunsLeft = r.MaxRuns, from.Timer.RunsLeft
	s.KeepCompleted = core.FormatDuration(cmp.Or(r.KeepCompleted, core.DefaultKeepCompleted))
	s.DeleteAfterCompletion = r.DeleteAfterCompletion
	if from.Schedule.PausedAt(from.Now) {
		s.PausedUntil, s.PauseNote = optional(r.PausedUntil), r.PauseNote
	}
}

// linkTarget returns what a legacy zone name stands for, "" for any other.
func linkTarget(zone string) string {
	if target := cron.LinkTarget(zone); target != zone {
		return target
	}
	return ""
}

// Run is a run as the API shows it. Times that have not come are nil.
type Run struct {
	ID              string          `json:"id"`
	ScheduleID      string          `json:"schedule_id"`
	ScheduledFor    time.Time       `json:"scheduled_for" doc:"The slot: the nominal time, before any spread."`
	State           string          `json:"state" enum:"queued,running,retrying,succeeded,dead,skipped,canceled"`
	Cause           string          `json:"cause" enum:"schedule,catch_up,manual,backfill"`
	Reason          string          `json:"reason,omitempty" doc:"Why the run is dead, skipped or canceled."`
	RangeFrom       *time.Time      `json:"range_from,omitempty" doc:"The first slot, if the row stands for a range of skipped slots."`
	RangeCount      int64           `json:"range_count,omitempty" doc:"How many slots the range has; 10000 stands for at least so many."`
	Queue           string          `json:"queue"`
	Attempt         int             `json:"attempt" doc:"Attempts begun."`
	MaxAttempts     int             `json:"max_attempts"`
	Fence           int64           `json:"fence" doc:"Rises with each change of holder."`
	ScheduleVersion int64           `json:"schedule_version,omitempty" doc:"The schedule's version that the last attempt executed."`
	CoversFrom      *time.Time      `json:"covers_from,omitempty" doc:"The start of the data interval that the run is responsible for."`
	CoversTo        *time.Time      `json:"covers_to,omitempty" doc:"The end of that interval."`
	CancelRequested bool            `json:"cancel_requested,omitempty"`
	CreatedAt       time.Time       `json:"created_at"`
	StartedAt       *time.Time      `json:"started_at,omitempty" doc:"When the last attempt started."`
	FinishedAt      *time.Time      `json:"finished_at,omitempty"`
	Result          json.RawMessage `json:"result,omitempty" doc:"What the job returned."`
	Error           string          `json:"error,omitempty" doc:"What the last failed attempt said."`
}

func showRun(r core.Run) Run {
	return Run{
		ID: r.Key.ID(), ScheduleID: r.Key.ScheduleID.String(), ScheduledFor: r.ScheduledFor().UTC(),
		State: string(r.State), Cause: string(r.Cause), Reason: string(r.Reason),
		RangeFrom: optional(r.RangeFrom), RangeCount: r.RangeCount, Queue: r.Queue,
		Attempt: r.Attempt, MaxAttempts: r.MaxAttempts, Fence: r.Fence, ScheduleVersion: r.Version,
		CoversFrom: optional(r.CoversFrom), CoversTo: optional(r.CoversTo), CancelRequested: r.CancelRequested,
		CreatedAt: r.CreatedAt.UTC(), StartedAt: optional(r.StartedAt), FinishedAt: optional(r.FinishedAt),
		Result: r.Result, Error: r.Error,
	}
}

// Attempt is a failed execution of a run; a successful one shows in the run
// itself.
type Attempt struct {
	Number     int        `json:"number" doc:"From 1, only rising."`
	Fence      int64      `json:"fence"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	Error      string     `json:"error"`
}

// RunDetail is one run with its failed attempts, oldest first.
type RunDetail struct {
	Run
	// Payload is nil unless the run has its own.
	Payload  json.RawMessage `json:"payload,omitempty" doc:"What the run gets instead of its schedule's payload."`
	Attempts []Attempt       `json:"attempts" nullable:"false" doc:"The failed attempts, oldest first."`
}

func showDetail(r core.Run, attempts []core.Attempt) RunDetail {
	d := RunDetail{Run: showRun(r), Payload: r.Payload, Attempts: make([]Attempt, len(attempts))}
	for i, a := range attempts {
		d.Attempts[i] = Attempt{a.Number, a.Fence, optional(a.StartedAt), optional(a.FinishedAt), a.Error}
	}
	return d
}

// List is a page of a list. A NextCursor of nil says that it is the last one.
type List[T any] struct {
	Items      []T     `json:"items" nullable:"false"`
	NextCursor *string `json:"next_cursor" doc:"Where the next page begins; null on the last page."`
}

// optional returns nil for the zero time, which JSON then leaves out.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
