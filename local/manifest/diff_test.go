package manifest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/local/manifest"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	from, to := plain(), plain()
	if got := manifest.Diff(&from, &to); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	to.ID, to.Version, to.NextRunAt, to.State = "x", 9, to.Anchor, "completed" // are not of the file
	if got := manifest.Diff(&from, &to); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	from.Job.Payload = json.RawMessage(`{"command":"a < b", "env":{"A":"1","B":"2"}, "list":[1,2]}`)
	to = rich()
	to.Job.Payload = json.RawMessage(`{ "list" : [1, 3], "env": {"B":"2","C":"3"}, "command":"a < b", "dir": {} }`)
	want := []manifest.Change{
		{"name", `"plain"`, `"rich: 1"`}, {"spec", `"0 3 * * *"`, `"every 15m"`}, {"time_zone", `""`, `"Europe/Berlin"`},
		{"anchor", ``, `"2027-01-05T09:00:00Z"`}, {"dst_gap", `"auto"`, `"skip"`}, {"dst_overlap", `"auto"`, `"both"`},
		{"catch_up_within", `"0s"`, `"1h"`}, {"labels.team", ``, `"x"`}, {"job.payload.dir", ``, `{}`}, {"job.payload.env.A", `"1"`, ``}, {"job.payload.env.C", ``, `"3"`},
		{"job.payload.list", `[1,2]`, `[1,3]`}, {"job.queue", `"test"`, `"exec"`}, {"misfire", `"run_once"`, `"skip"`},
		{"misfire_grace", `"1m"`, `"2m"`}, {"misfire_cap", `1000`, `7`}, {"overlap", `"skip"`, `"allow"`},
		{"starts_at", `""`, `"2027-01-05T09:00:00Z"`}, {"ends_at", `""`, `"2028-01-05T09:00:00Z"`}, {"max_runs", `0`, `3`},
		{"keep_completed", `"30d"`, `"1d"`}, {"delete_after_completion", `false`, `true`}, {"window", `"0s"`, `"5m"`}, {"exact", `false`, `true`},
		{"timeout", `"15m"`, `"0s"`}, {"total_timeout", `"0s"`, `"2h"`}, {"retry.initial_delay", `"10s"`, `"5s"`}, {"retry.jitter", `"equal"`, `"full"`},
		{"retry.max_attempts", `5`, `1`}, {"retry.max_delay", `"1h"`, `"2h"`}, {"retry.multiplier", `2`, `1.5`}, {"paused", `false`, `true`},
	}
	if diff := cmp.Diff(want, manifest.Diff(&from, &to)); diff != "" {
		t.Error(diff)
	}
	http := calls()
	want = []manifest.Change{{"job.http.url", `"https://example.com/?a=1&b=<2>"`, ``}, {"job.queue", ``, `"test"`}}
	from = plain()
	got := manifest.Diff(&http, &from)
	if diff := cmp.Diff(want, got[1:3]); diff != "" {
		t.Error(diff)
	}
}

// TestDiffNamesEveryField: a field that files can set but a diff is blind to would
// be changed without a word.
func TestDiffNamesEveryField(t *testing.T) {
	t.Parallel()
	from, to := plain(), rich()
	seen := map[string]bool{"labels": true, "retry": true} // member by member
	for _, c := range manifest.Diff(&from, &to) {
		seen[c.Field] = true
	}
	in := api.ScheduleInput{
		Name: "x", Spec: "x", TimeZone: "x", Anchor: "x", DSTGap: "x", DSTOverlap: "x", CatchUpWithin: "x", Job: &api.JobInput{}, Misfire: "x",
		Grace: "x", Overlap: "x", Window: "x", Exact: true, Timeout: "x", TotalTimeout: "x", Retry: &api.RetryInput{MaxAttempts: 1}, Paused: new(bool), MisfireCap: 1, StartsAt: "x", EndsAt: "x", MaxRuns: 1, KeepCompleted: "x",
		DeleteAfterCompletion: true, Labels: map[string]string{"a": "b"},
	}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !seen[name] && name != "job" {
			t.Errorf("a diff does not show %s", name)
		}
	}
}
