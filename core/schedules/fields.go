package schedules

import (
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fencepost/fencepost/core"
)

// Fields are what a user may set of a schedule. A nil field is left as it is by
// Edit and gets its default from Create.
type Fields struct {
	Name *string
	// Spec is a cron expression, "every 15m", "at 2027-01-05T09:00" or "in 3d".
	Spec     *string
	TimeZone *string // IANA name; empty is UTC
	// Anchor is the origin of an interval. Without one the phase is a hash of
	// the schedule's id.
	Anchor        *time.Time
	DSTGap        *core.DSTGap
	DSTOverlap    *core.DSTOverlap
	CatchUpWithin *time.Duration
	Job           *core.Job
	Misfire       *core.Misfire
	MisfireGrace  *time.Duration
	Overlap       *core.Overlap
	Window        *time.Duration
	// Exact keeps a macro such as @daily on its nominal time.
	Exact       *bool
	Timeout     *time.Duration
	MaxAttempts *int
	// TotalTimeout bounds a run with all its attempts; zero is no limit.
	TotalTimeout *time.Duration
	Retry        RetryFields
	// MisfireCap is for run_all.
	MisfireCap *int
	// StartsAt and EndsAt bound the slots; zero is no bound.
	StartsAt, EndsAt *time.Time
	MaxRuns          *int64 // zero: no limit
	// KeepCompleted is how long a schedule stays that will not fire again.
	KeepCompleted         *time.Duration
	DeleteAfterCompletion *bool
	// Calendars are the names of those in which slots are closed; they replace those
	// that are there.
	Calendars *[]string
	// Labels replace those that are there.
	Labels *map[string]string
	// Paused is a state rather than content: Put leaves it as it is when nil.
	Paused *bool
}

// The bounds of the fields.
const (
	// minGrace is how late a healthy installation may be.
	minGrace     = 5 * time.Second
	maxWindow    = 24 * time.Hour
	defaultQueue = "http"
)

// apply copies the given fields into s and checks them, except for what makes
// up the spec. The errors name the field.
func (s *Service) apply(f Fields, to *core.Schedule) error {
	set(f.Name, &to.Name)
	set(f.TimeZone, &to.TimeZone)
	setSlots(f, to)
	set(f.Misfire, &to.Misfire)
	set(f.MisfireGrace, &to.MisfireGrace)
	set(f.Overlap, &to.Overlap)
	set(f.Timeout, &to.Timeout)
	set(f.MaxAttempts, &to.MaxAttempts)
	setRules(f, &to.Rules)
	if err := setRetries(f, &to.Rules); err != nil {
		return err
	}
	if err := setCalendars(f.Calendars, &to.Rules); err != nil {
		return err
	}
	if f.Paused != nil && *f.Paused != to.Paused {
		to.Paused = *f.Paused
		to.Rules.PausedUntil, to.Rules.PauseNote = time.Time{}, ""
	}
	if f.Labels != nil {
		if err := core.CheckLabels(*f.Labels); err != nil {
			return err
		}
		to.Labels = nil // none has one form
		if len(*f.Labels) > 0 {
			to.Labels = *f.Labels
		}
	}
	if f.Job != nil {
		to.Job = *f.Job
		if err := s.checkJob(to.Job); err != nil {
			return err
		}
	}
	if err := checkName(to.Name); err != nil {
		return err
	}
	return checkPolicies(to)
}

// setSlots copies what decides about slots and their spread, but for the spec.
func setSlots(f Fields, to *core.Schedule) {
	set(f.DSTGap, &to.DSTGap)
	set(f.DSTOverlap, &to.DSTOverlap)
	set(f.CatchUpWithin, &to.CatchUpWithin)
	set(f.Window, &to.Window)
	set(f.Exact, &to.Exact)
}

func set[T any](from *T, to *T) {
	if from != nil {
		*to = *from
	}
}

func checkName(name string) error {
	switch {
	case name == "":
		return core.Invalid("name", "is missing")
	case len(name) > core.MaxNameBytes:
		return core.Invalid("name", "is longer than %d bytes", core.MaxNameBytes)
	case !utf8.ValidString(name):
		return core.Invalid("name", "is not valid UTF-8")
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return core.Invalid("name", "has a control character")
		}
	}
	return nil
}

func checkPolicies(s *core.Schedule) error {
	switch {
	case !slices.Contains(misfires, s.Misfire):
		return core.Invalid("misfire", "must be run_once, skip or run_all")
	case !slices.Contains(overlaps, s.Overlap):
		return core.Invalid("overlap", "must be skip, allow, queue_one or cancel_previous")
	case s.MisfireGrace < minGrace:
		return core.Invalid("misfire_grace", "must be at least %s", core.FormatDuration(minGrace))
	case s.Timeout < 0:
		return core.Invalid("timeout", `must not be negative; "0s" is no limit`)
	case s.MaxAttempts < 1 || s.MaxAttempts > maxAttempts:
		return core.Invalid("retry.max_attempts", "must be between 1 and %d; the first attempt counts", maxAttempts)
	}
	if err := checkRules(s); err != nil {
		return err
	}
	return checkSlots(s)
}

// checkSlots refuses wrong policies of slots and their spread.
func checkSlots(s *core.Schedule) error {
	switch {
	case s.Window < 0 || s.Window > maxWindow || s.Window%time.Second != 0:
		return core.Invalid("window", "must be whole seconds, at most %s", core.FormatDuration(maxWindow))
	case s.Window > 0 && s.Exact:
		return core.Invalid("exact", `does not go with a window; set window to "0s"`)
	case s.DSTGap != core.DSTGapAuto && s.DSTGap != core.DSTGapRunAfter && s.DSTGap != core.DSTGapSkip:
		return core.Invalid("dst_gap", "must be auto, run_after or skip")
	case s.DSTOverlap != core.DSTOverlapAuto && s.DSTOverlap != core.DSTOverlapFirst && s.DSTOverlap != core.DSTOverlapBoth:
		return core.Invalid("dst_overlap", "must be auto, first or both")
	case s.CatchUpWithin < 0:
		return core.Invalid("catch_up_within", "must not be negative")
	}
	return nil
}

// checkJob refuses jobs that nothing here could execute.
func (s *Service) checkJob(j core.Job) error {
	if j.Queue == "" {
		return core.Invalid("job.queue", "is missing")
	}
	target, ok := s.targets[j.Queue]
	if !ok {
		if j.Queue == "exec" {
			return core.Invalid("job.queue", "is off here; start with --allow-exec to run commands")
		}
		return core.Invalid("job.queue", "is not one that this installation serves; %s", s.known)
	}
	switch {
	case len(j.Payload) > core.MaxPayloadBytes:
		return core.Invalid("job.payload", "is larger than %d bytes", core.MaxPayloadBytes)
	case !json.Valid(j.Payload):
		return core.Invalid("job.payload", "is not valid JSON")
	}
	err := target.Check(j.Payload)
	var ce *core.Error
	if errors.As(err, &ce) {
		return &core.Error{Code: ce.Code, Kind: ce.Kind, Field: joinField("job.payload", ce.Field), Message: ce.Message}
	}
	return err
}

func joinField(parent, child string) string {
	if child == "" {
		return parent
	}
	return parent + "." + child
}
