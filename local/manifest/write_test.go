package manifest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/local/manifest"
)

// plain is a schedule that has nothing but its defaults.
func plain() api.Schedule {
	return api.Schedule{
		MisfireCap: 1000, KeepCompleted: "30d",
		ID: "0190d4b2-0000-7000-8000-000000000000", Name: "plain", Spec: "0 3 * * *", DSTGap: "auto", DSTOverlap: "auto", CatchUpWithin: "0s",
		Job: api.Job{Queue: "test", Payload: json.RawMessage("null")}, Misfire: "run_once", MisfireGrace: "1m", Overlap: "skip", Window: "0s",
		Spread: "0s", Timeout: "15m", Retry: api.Retry{MaxAttempts: 5, InitialDelay: "10s", MaxDelay: "1h", Multiplier: 2, Jitter: "equal"}, TotalTimeout: "0s", State: "active", Version: 3,
	}
}

// rich is a schedule that has nothing of its defaults.
func rich() api.Schedule {
	anchor := time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC)
	end := anchor.AddDate(1, 0, 0)
	return api.Schedule{
		Name: "rich: 1", Spec: "every 15m", TimeZone: "Europe/Berlin", Anchor: &anchor, DSTGap: "skip", DSTOverlap: "both", CatchUpWithin: "1h",
		Job:     api.Job{Queue: "exec", Payload: json.RawMessage(`{"command": "set -e\nmake report\n", "env": {}, "n": [1, "2", null, true, -1.50, "yes", "~", "<<", " x", "#"]}`)},
		Misfire: "skip", MisfireGrace: "2m", Overlap: "allow", Window: "5m", Exact: true, Timeout: "0s", TotalTimeout: "2h", Retry: api.Retry{MaxAttempts: 1, InitialDelay: "5s", MaxDelay: "2h", Multiplier: 1.5, Jitter: "full"}, State: "paused",
		Labels: map[string]string{"team": "x"}, MisfireCap: 7, MaxRuns: 3, KeepCompleted: "1d", DeleteAfterCompletion: true, StartsAt: &anchor, EndsAt: &end,
	}
}

func calls() api.Schedule {
	s := plain()
	s.Name, s.Timeout = "calls", "1m"
	s.Job = api.Job{Queue: "http", Payload: json.RawMessage(`{"url":"https://example.com/?a=1&b=<2>"}`)}
	return s
}

func once() api.Schedule {
	s := plain()
	at := time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC)
	s.Name, s.Spec, s.Anchor, s.State = "once", "at 2027-01-05T09:00:00Z", &at, "completed"
	return s
}

func TestWrite(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := manifest.NewWriter(&b)
	for _, s := range []api.Schedule{plain(), rich(), calls(), once()} {
		if err := w.Write(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := `schedules:
- name: plain
  spec: 0 3 * * *
  job:
    queue: test
- name: 'rich: 1'
  spec: every 15m
  time_zone: Europe/Berlin
  anchor: "2027-01-05T09:00:00Z"
  dst_gap: skip
  dst_overlap: both
  catch_up_within: 1h
  labels:
    team: x
  job:
    queue: exec
    payload:
      command: |
        set -e
        make report
      env: {}
      "n":
        - 1
        - "2"
        - null
        - true
        - -1.50
        - "yes"
        - "~"
        - "<<"
        - ' x'
        - '#'
  misfire: skip
  misfire_grace: 2m
  misfire_cap: 7
  overlap: allow
  starts_at: "2027-01-05T09:00:00Z"
  ends_at: "2028-01-05T09:00:00Z"
  max_runs: 3
  keep_completed: 1d
  delete_after_completion: true
  window: 5m
  exact: true
  timeout: 0s
  total_timeout: 2h
  retry:
    max_attempts: 1
    initial_delay: 5s
    max_delay: 2h
    multiplier: 1.5
    jitter: full
  paused: true
- name: calls
  spec: 0 3 * * *
  job:
    http:
      url: https://example.com/?a=1&b=<2>
- name: once
  spec: at 2027-01-05T09:00:00Z
  job:
    queue: test
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	read(t, b.String())
}

func TestWriteNothing(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := manifest.NewWriter(&b).Close(); err != nil || b.String() != "schedules: []\n" {
		t.Errorf("%q %v", b.String(), err)
	}
	if f := read(t, b.String()); len(f.Items) != 0 {
		t.Errorf("%+v", f)
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]api.Schedule{
		`{"name":"plain","spec":"0 3 * * *","job":{"queue":"test"}}`:                                  plain(),
		`{"name":"calls","spec":"0 3 * * *","job":{"http":{"url":"https://example.com/?a=1&b=<2>"}}}`: calls(),
		`{"name":"once","spec":"at 2027-01-05T09:00:00Z","job":{"queue":"test"}}`:                     once(),
	} {
		got, err := manifest.Line(&s)
		if err != nil || string(got) != want {
			t.Errorf("%s %v, want %s", got, err, want)
		}
	}
	broken := plain()
	broken.Job.Payload = json.RawMessage(`{`)
	if _, err := manifest.Line(&broken); err == nil {
		t.Error("a payload that is not JSON was written")
	}
	if err := manifest.NewWriter(&bytes.Buffer{}).Write(&broken); err == nil {
		t.Error("a payload that is not JSON was written")
	}
}

// FuzzWrite: what is written is read back as it was, in both forms.
func FuzzWrite(f *testing.F) {
	for _, payload := range []string{
		`null`, `{"a":{"b":[]}}`, `"two\nlines\n"`, `" indented\n block"`, `"ends\n\n"`, `"\n"`, `"a \nb"`, `"tab\tand\u0001\u007f\u0085\u2028\ufeff"`, `"🦀"`,
		`{"":"","- a":"? b","<<":"!x","yes":"no","010":"0x1","null":"~","k: v":"a: b # c"}`, `[1e400,-0,1.0,100000000000000000000000]`, `"2027-01-05"`, `"1:30"`, `"=" `, `"---"`, `"'\""`, `"%a"`,
	} {
		f.Add("name", []byte(payload))
		f.Add(payload, []byte(`{"command":`+payload+`}`))
	}
	f.Fuzz(func(t *testing.T, name string, payload []byte) {
		if !utf8.ValidString(name) || name == "" || len(name) > 200 || !json.Valid(payload) || !utf8.Valid(payload) || len(payload) > 10_000 {
			return
		}
		if depth(decode(t, payload)) > 64 { // which the API refuses
			return
		}
		s := plain()
		s.Name, s.Job.Payload = name, payload
		line, err := manifest.Line(&s)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := manifest.NewWriter(&b).Write(&s); err != nil {
			t.Fatal(err)
		}
		file, err := manifest.Read(&b)
		if err != nil {
			if strings.Contains(err.Error(), "is there twice") { // which the API refuses
				return
			}
			t.Fatalf("%s: %v", line, err)
		}
		if diff := cmp.Diff(decode(t, line), decode(t, file.Items[0].Body)); diff != "" {
			t.Fatalf("%s: %s", line, diff)
		}
		lines := manifest.NewLines(bytes.NewReader(append(line, '\n')))
		if got, err := lines.Next(); err != nil || !bytes.Equal(got.Body, line) {
			t.Fatalf("%s: %+v %v", line, got, err)
		}
	})
}

func depth(v any) int {
	most := 0
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			most = max(most, depth(item)+1)
		}
	case map[string]any:
		for _, item := range v {
			most = max(most, depth(item)+1)
		}
	}
	return most
}
