package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/explain"
)

// Section is what a file says under simulate. Times are RFC 3339, or on the clocks
// of TimeZone; those of assertions on the clocks of their schedule.
type Section struct {
	From     string             `json:"from"`
	To       string             `json:"to"`
	TimeZone string             `json:"time_zone"`
	Outages  []SectionSpan      `json:"outages"`
	RunTime  string             `json:"run_time"`
	Jobs     map[string]JobText `json:"jobs"`
	Assert   []Assertion        `json:"assert"`
}

// SectionSpan is a time from one to another.
type SectionSpan struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// JobText is how the runs of one schedule go.
type JobText struct {
	RunTime string `json:"run_time"`
	Fail    int    `json:"fail"`
}

// Assertion is what has to hold for one schedule. Fields that are left out assert
// nothing; runs are those that were admitted, whatever became of them.
type Assertion struct {
	Schedule string           `json:"schedule"`
	Runs     *int64           `json:"runs,omitempty"`
	AtLeast  *int64           `json:"at_least,omitempty"`
	AtMost   *int64           `json:"at_most,omitempty"`
	Skipped  map[string]int64 `json:"skipped,omitempty"` // slots by reason
	RunsAt   []string         `json:"runs_at,omitempty"` // slots that have a run
	// NoRunsBetween are two times between which no run begins.
	NoRunsBetween []string `json:"no_runs_between,omitempty"`
	MaxAlive      *int64   `json:"max_alive,omitempty"` // runs at the same time
	State         string   `json:"state,omitempty"`     // of the schedule at the end
}

// ReadSection reads a section, which is JSON by now. The error names the field.
func ReadSection(body json.RawMessage) (Section, error) {
	var s Section
	if len(body) == 0 {
		return s, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(&s)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return s, core.Invalid(wrong.Field, "must not be a %s", wrong.Value)
	case err != nil && strings.Contains(err.Error(), "unknown field "):
		_, name, _ := strings.Cut(err.Error(), "unknown field ")
		return s, core.Invalid(strings.Trim(name, `"`), "is not a field here; there are from, to, time_zone, outages, run_time, jobs and assert")
	case err != nil:
		return s, core.Invalid("", "cannot be read: %s", err)
	}
	return s, nil
}

// Scenario reads the times of a section. The error names the field.
func (s *Section) Scenario() (Scenario, error) {
	var out Scenario
	if s.From == "" || s.To == "" {
		return out, core.Invalid(map[bool]string{true: "from", false: "to"}[s.From == ""], "is required")
	}
	span, err := s.span("", SectionSpan{s.From, s.To})
	out.Span = span
	for i, o := range s.Outages {
		if err != nil {
			break
		}
		span, err = s.span(fmt.Sprintf("outages[%d].", i), o)
		out.Outages = append(out.Outages, span)
	}
	return out, err
}

func (s *Section) span(prefix string, text SectionSpan) (Span, error) {
	from, err := at(prefix+"from", text.From, s.TimeZone)
	if err != nil {
		return Span{}, err
	}
	to, err := at(prefix+"to", text.To, s.TimeZone)
	if err == nil && !to.After(from) {
		err = core.Invalid(prefix+"to", "must be after from")
	}
	return Span{from, to}, err
}

// at reads a time of the file.
func at(field, text, zone string) (time.Time, error) {
	if _, err := explain.Zone(zone); err != nil {
		return time.Time{}, core.Invalid("time_zone", "is not a name of the IANA database")
	}
	if text == "" {
		return time.Time{}, core.Invalid(field, "is required")
	}
	t, err := explain.ParseAt(text, zone, time.Time{})
	if err != nil {
		return time.Time{}, core.Invalid(field, `must be a time such as "2026-03-29T01:00:00Z", or "2026-03-29T02:30" on the clocks of the zone`)
	}
	return t.Time, nil
}

// Job returns how the runs of a schedule go. The error names the field.
func (s *Section) Job(schedule string) (Job, error) {
	text, own := s.Jobs[schedule]
	field := "run_time"
	if own && text.RunTime != "" {
		field = "jobs." + schedule + ".run_time"
	} else {
		text.RunTime = s.RunTime
	}
	job := Job{Fail: text.Fail}
	if text.Fail < 0 {
		return job, core.Invalid("jobs."+schedule+".fail", "must not be negative")
	}
	if text.RunTime == "" {
		return job, nil
	}
	var err error
	if job.RunTime, err = core.ParseDuration(text.RunTime); err != nil {
		return job, core.Invalid(field, `is not a duration; write it as "90s", "15m", "3d" or "P3D"`)
	}
	return job, nil
}
