package manifest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// field is a field of a schedule that a file can set.
type field struct {
	name  string
	value json.RawMessage
	// usual is set when the value is what the API makes of a field left out.
	usual bool
}

const auto = "auto"

// fields returns what a schedule has in the form in which it can be sent back, in
// the order in which people read it.
func fields(s *api.Schedule) []field {
	text := func(name, value, usual string) field { return field{name, quote(value), value == usual} }
	timeout := core.FormatDuration(core.DefaultTimeout)
	if s.Job.Queue == httpQueue {
		timeout = core.FormatDuration(core.DefaultHTTPTimeout)
	}
	all := []field{
		text("name", s.Name, ""), text("spec", s.Spec, ""), text("time_zone", s.TimeZone, ""), anchor(s),
		text("dst_gap", s.DSTGap, auto), text("dst_overlap", s.DSTOverlap, auto), text("catch_up_within", s.CatchUpWithin, "0s"),
		labels(s.Labels), job(s.Job), text("misfire", s.Misfire, string(core.MisfireRunOnce)),
		text("misfire_grace", s.MisfireGrace, core.FormatDuration(core.DefaultMisfireGrace)),
		{"misfire_cap", number(s.MisfireCap), s.MisfireCap == core.DefaultMisfireCap},
		text("overlap", s.Overlap, string(core.OverlapSkip)), bound("starts_at", s.StartsAt), bound("ends_at", s.EndsAt),
		{"max_runs", number(int(s.MaxRuns)), s.MaxRuns == 0},
		list("calendars", s.Calendars), text("keep_completed", s.KeepCompleted, core.FormatDuration(core.DefaultKeepCompleted)),
		{"delete_after_completion", number(s.DeleteAfterCompletion), !s.DeleteAfterCompletion}, text("window", s.Window, "0s"),
		{"exact", number(s.Exact), !s.Exact},
		text("timeout", s.Timeout, timeout),
		{"max_attempts", number(s.MaxAttempts), s.MaxAttempts == core.DefaultMaxAttempts},
		{"paused", number(s.State == string(core.SchedulePaused)), s.State != string(core.SchedulePaused)},
	}
	return all
}

// labels are an object, whose members have an order.
func labels(l map[string]string) field {
	text, err := json.Marshal(l)
	if err != nil || len(l) == 0 {
		return field{"labels", json.RawMessage("{}"), true}
	}
	return field{"labels", text, false}
}

func list(name string, texts []string) field {
	text, err := json.Marshal(texts)
	if err != nil || len(texts) == 0 {
		return field{name, json.RawMessage("[]"), true}
	}
	return field{name, text, false}
}

func bound(name string, at *time.Time) field {
	if at == nil {
		return field{name, quote(""), true}
	}
	return field{name, quote(at.UTC().Format(time.RFC3339)), false}
}

// anchor is that of an interval: a time carries its own.
func anchor(s *api.Schedule) field {
	f := field{name: "anchor", value: json.RawMessage("null"), usual: true}
	if s.Anchor != nil && !strings.HasPrefix(s.Spec, "at ") {
		f.value, f.usual = quote(s.Anchor.UTC().Format(time.RFC3339Nano)), false
	}
	return f
}

// httpQueue is the queue of the target that calls a URL, which has a form of its
// own.
const httpQueue = "http"

func job(j api.Job) field {
	payload := strings.TrimSpace(string(j.Payload))
	var text string
	switch {
	case j.Queue == httpQueue && strings.HasPrefix(payload, "{"):
		text = `{"http":` + payload + `}`
	case payload == "null" || payload == "":
		text = `{"queue":` + string(quote(j.Queue)) + `}`
	default:
		text = `{"queue":` + string(quote(j.Queue)) + `,"payload":` + payload + `}`
	}
	return field{"job", json.RawMessage(text), false}
}

func number[T bool | int](v T) json.RawMessage {
	text, _ := json.Marshal(v) // these cannot fail
	return text
}

// telling returns the fields that do not go without saying.
func telling(s *api.Schedule) []field {
	return slices.DeleteFunc(fields(s), func(f field) bool { return f.usual })
}
