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
	// whole is the value with what goes without saying, where value leaves that out.
	whole json.RawMessage
}

const auto = "auto"

// fields returns what a schedule has in the form in which it can be sent back, in
// the order in which people read it.
func fields(s *api.Schedule) []field {
	text := func(name, value, usual string) field {
		return field{name: name, value: quote(value), usual: value == usual}
	}
	timeout := core.FormatDuration(core.DefaultTimeout)
	if s.Job.Queue == httpQueue {
		timeout = core.FormatDuration(core.DefaultHTTPTimeout)
	}
	all := []field{
		text("name", s.Name, ""), text("spec", s.Spec, ""), text("time_zone", s.TimeZone, ""), anchor(s),
		text("dst_gap", s.DSTGap, auto), text("dst_overlap", s.DSTOverlap, auto), text("catch_up_within", s.CatchUpWithin, "0s"),
		labels(s.Labels), job(s.Job), text("misfire", s.Misfire, string(core.MisfireRunOnce)),
		text("misfire_grace", s.MisfireGrace, core.FormatDuration(core.DefaultMisfireGrace)),
		{name: "misfire_cap", value: number(s.MisfireCap), usual: s.MisfireCap == core.DefaultMisfireCap},
		text("overlap", s.Overlap, string(core.OverlapSkip)), bound("starts_at", s.StartsAt), bound("ends_at", s.EndsAt),
		{name: "max_runs", value: number(int(s.MaxRuns)), usual: s.MaxRuns == 0},
		list("calendars", s.Calendars), text("keep_completed", s.KeepCompleted, core.FormatDuration(core.DefaultKeepCompleted)),
		{name: "delete_after_completion", value: number(s.DeleteAfterCompletion), usual: !s.DeleteAfterCompletion}, text("window", s.Window, "0s"),
		{name: "exact", value: number(s.Exact), usual: !s.Exact},
		text("timeout", s.Timeout, timeout),
		text("total_timeout", s.TotalTimeout, "0s"), retry(s.Retry),
		{name: "paused", value: number(s.State == string(core.SchedulePaused)), usual: s.State != string(core.SchedulePaused)},
	}
	return all
}

// labels are an object, whose members have an order.
func labels(l map[string]string) field {
	text, err := json.Marshal(l)
	if err != nil || len(l) == 0 {
		return field{name: "labels", value: json.RawMessage("{}"), usual: true}
	}
	return field{name: "labels", value: text}
}

// retry are the members that are not the defaults.
func retry(r api.Retry) field {
	usual := core.Retry{}.WithDefaults()
	var in api.RetryInput
	if r.MaxAttempts != core.DefaultMaxAttempts {
		in.MaxAttempts = r.MaxAttempts
	}
	if r.InitialDelay != core.FormatDuration(usual.InitialDelay) {
		in.InitialDelay = r.InitialDelay
	}
	if r.MaxDelay != core.FormatDuration(usual.MaxDelay) {
		in.MaxDelay = r.MaxDelay
	}
	if r.Multiplier != usual.Multiplier {
		in.Multiplier = r.Multiplier
	}
	if r.Jitter != string(usual.Jitter) {
		in.Jitter = r.Jitter
	}
	text, _ := json.Marshal(in) // these cannot fail
	whole, _ := json.Marshal(r)
	return field{name: "retry", value: text, usual: in == (api.RetryInput{}), whole: whole}
}

func list(name string, texts []string) field {
	text, err := json.Marshal(texts)
	if err != nil || len(texts) == 0 {
		return field{name: name, value: json.RawMessage("[]"), usual: true}
	}
	return field{name: name, value: text}
}

func bound(name string, at *time.Time) field {
	if at == nil {
		return field{name: name, value: quote(""), usual: true}
	}
	return field{name: name, value: quote(at.UTC().Format(time.RFC3339))}
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
	return field{name: "job", value: json.RawMessage(text)}
}

func number[T bool | int](v T) json.RawMessage {
	text, _ := json.Marshal(v) // these cannot fail
	return text
}

// telling returns the fields that do not go without saying.
func telling(s *api.Schedule) []field {
	return slices.DeleteFunc(fields(s), func(f field) bool { return f.usual })
}
