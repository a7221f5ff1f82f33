package manifest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/local/manifest"
)

func read(t *testing.T, text string) *manifest.File {
	t.Helper()
	f, err := manifest.Read(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

func decode(t *testing.T, raw json.RawMessage) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

const whole = `# what runs at night
set: nightly
defaults:
  time_zone: Europe/Berlin
  overlap: skip
  job: &call
    http:
      headers: {a: b, c: "1"}
schedules:
  - name: report
    spec: "30 2 * * 1-5"
    job:
      http:
        url: https://example.com/report
        headers: {c: "2"}
  - name: übrig / 2
    spec: every 15m
    anchor: 2027-01-05T09:00:00Z
    time_zone: ""
    exact: True
    retry: {max_attempts: 3}
    timeout: 1h30m
    job: &exec
      queue: exec
      http: null
      payload:
        command: |
          set -e
          make report
        list: [1, -2.50, 1e3, 123456789012345678901234567890, 1e400, true, null, "5", yes, ~, {}]
  - {name: same, spec: '@daily', job: *exec}
`

func TestRead(t *testing.T) {
	t.Parallel()
	got := read(t, whole)
	if got.Set != "nightly" || len(got.Items) != 3 {
		t.Fatalf("set %q with %d schedules", got.Set, len(got.Items))
	}
	exec := `{"queue":"exec","http":null,"payload":{"command":"set -e\nmake report\n",
		"list":[1,-2.50,1e3,123456789012345678901234567890,1e400,true,null,"5","yes",null,{}]}}`
	for i, want := range []string{
		`{"name":"report","spec":"30 2 * * 1-5","time_zone":"Europe/Berlin","overlap":"skip","labels":{"fencepost.io/set":"nightly"},
			"job":{"http":{"url":"https://example.com/report","headers":{"a":"b","c":"2"}}}}`,
		`{"name":"übrig / 2","spec":"every 15m","anchor":"2027-01-05T09:00:00Z","time_zone":"","exact":true,"retry":{"max_attempts":3},
			"timeout":"1h30m","overlap":"skip","labels":{"fencepost.io/set":"nightly"},"job":` + exec + `}`,
		`{"name":"same","spec":"@daily","time_zone":"Europe/Berlin","overlap":"skip","labels":{"fencepost.io/set":"nightly"},"job":` + exec + `}`,
	} {
		if diff := cmp.Diff(decode(t, json.RawMessage(want)), decode(t, got.Items[i].Body)); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}
	for field, want := range map[string]string{
		"": "10:5", "name": "10:5", "spec": "11:5", "job.http.url": "14:9", "job.http.headers.c": "15:19", "job.http.headers.a": "8:17",
		"time_zone": "4:3", "window": "10:5", "job.http.body": "13:7", "job.http.url.x": "14:9", "jobs": "10:5",
	} {
		line, column := got.Items[0].Where(field)
		if at := fmt.Sprintf("%d:%d", line, column); at != want {
			t.Errorf("%s is at %s, want %s", field, at, want)
		}
	}
}

// TestJSONIsRead: with tabs, without blanks and with escapes that YAML has not.
func TestJSONIsRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"schedules":[{"name":"a","job":{"payload":["\/","\ud83e\udd80","\\ud83e\\udd80","\\\uD83E\uDD80","é"]}}]}`,
		"{\n\t\"schedules\": [\n\t\t{\n\t\t\t\"name\": \"a\",\n\t\t\t\"job\": {\"payload\": [\"/\", \"🦀\", \"\\\\ud83e\\\\udd80\", \"\\\\🦀\", \"\\u00e9\"]}\n\t\t}\n\t]\n}\n",
	} {
		want := `{"name":"a","job":{"payload":["/","🦀","\\ud83e\\udd80","\\🦀","é"]}}`
		if diff := cmp.Diff(decode(t, json.RawMessage(want)), decode(t, read(t, text).Items[0].Body)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

const one = "schedules:\n- name: a\n"

func TestFaults(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 20 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	deep := "a0: &a0 []\n"
	for i := range 200 {
		deep += fmt.Sprintf("a%d: &a%d [*a%d]\n", i+1, i+1, i)
	}
	indented := func(text string) string {
		return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
	}
	for text, want := range map[string]string{
		"":                                       "1:1: the file is empty",
		"# nothing\n":                            "1:1: the file is empty",
		"null\n":                                 "1:1: must be a mapping with the list schedules",
		"- a\n":                                  "1:1: must be a mapping with the list schedules",
		"text\n":                                 "1:1: must be a mapping with the list schedules",
		"{}\n":                                   "1:1: schedules: is required",
		"\xff\xfe\x00":                           "1:1: the file is not text in UTF-8",
		"PK\x03\x04\x00\x00":                     "1:1: the file is not text in UTF-8",
		"schedules:\n":                           "1:1: schedules: must be a list",
		"schedules: {a: b}\n":                    "1:1: schedules: must be a list",
		one + "---\n" + one:                      "3:1: the file has a second document; put each into a file of its own",
		one + "---\n":                            "3:1: the file has a second document; put each into a file of its own",
		one + "sets: a\n":                        "3:1: sets: is not a field here; there are set, defaults, calendars, schedules and simulate",
		one + "set: 5\n":                         "3:1: set: must be a name of letters, digits, dots, dashes and underscores, at most 63",
		one + "set: a b\n":                       "3:1: set: must be a name of letters, digits, dots, dashes and underscores, at most 63",
		one + "set: [a]\n":                       "3:1: set: must be a name of letters, digits, dots, dashes and underscores, at most 63",
		one + "set: ''\n":                        "3:1: set: must be a name of letters, digits, dots, dashes and underscores, at most 63",
		one + "defaults: a\n":                    "3:1: defaults: must be a mapping",
		one + "defaults: {name: x}\n":            "3:1: defaults.name: cannot be the same for all schedules",
		one + "schedules: []\n":                  "3:1: schedules: is there twice",
		one + "  spec: a\n  spec: b\n":           "4:3: schedules[0].spec: is there twice",
		one + "  job: {queue: a, queue: b}\n":    "3:19: schedules[0].job.queue: is there twice",
		one + "- name: b\n- name: a\n":           "4:3: schedules[2]: has the name of the schedule in line 2",
		"schedules: [5]\n":                       "1:13: schedules[0]: must be a mapping",
		"schedules:\n- spec: a\n":                "2:3: schedules[0]: name is required",
		"schedules:\n- name: 5\n":                "2:9: schedules[0]: name must be a string; put it in quotes",
		"schedules:\n- name: ''\n":               "2:9: schedules[0]: name must be a string; put it in quotes",
		"schedules:\n- name: [a]\n":              "2:9: schedules[0]: name must be a string; put it in quotes",
		one + "  spec: */5 * * * *\n":            "3:9: a value that begins with * needs quotes",
		one + "  spec: * * * * *\n":              "3:9: a value that begins with * needs quotes",
		one + "  spec: @daily\n":                 "3:9: a value that begins with @ needs quotes",
		"schedules:\n- spec: @daily\n":           "2:9: a value that begins with @ needs quotes",
		one + "  x: %a\n":                        "3:6: a value that begins with % needs quotes",
		"schedules:\n\t- name: a\n":              "2:1: the line is indented with a tab; YAML takes blanks only",
		"schedules:\n  - name: a\n\t  spec: b\n": "3:1: the line is indented with a tab; YAML takes blanks only",
		one + "  spec: *x\n":                     "1:1: unknown anchor 'x' referenced",
		one + "  spec: 'a\n":                     "3:1: found unexpected end of stream",
		one + "  x: \x01\n":                      "1:1: control characters are not allowed",
		one + "  payload: 010\n":                 "3:12: schedules[0].payload: is not a plain decimal number; write it so, or put it in quotes",
		one + "  payload: [0x1F]\n":              "3:13: schedules[0].payload[0]: is not a plain decimal number; write it so, or put it in quotes",
		one + "  payload: .inf\n":                "3:12: schedules[0].payload: is not a plain decimal number; write it so, or put it in quotes",
		one + "  payload: 1_000\n":               "3:12: schedules[0].payload: is not a plain decimal number; write it so, or put it in quotes",
		one + "  payload: !!binary aGk=\n":       "3:12: schedules[0].payload: has a tag, which means nothing here",
		one + "  payload: !secret {a: b}\n":      "3:12: schedules[0].payload: has a tag, which means nothing here",
		one + "  payload: !!set {a, b}\n":        "3:12: schedules[0].payload: has a tag, which means nothing here",
		one + "  payload: !!bool x\n":            "3:12: schedules[0].payload: must be true or false",
		one + "  payload: {5: a}\n":              "3:13: schedules[0].payload.5: a key must be a string; put it in quotes",
		one + "  payload: {true: a}\n":           "3:13: schedules[0].payload.true: a key must be a string; put it in quotes",
		one + "  payload: {[a]: b}\n":            "3:13: schedules[0].payload.: a key must be a string; put it in quotes",
		one + "  <<: {spec: a}\n":                "3:3: schedules[0].<<: merge keys are not taken; use defaults, or an alias of a whole value",
		one + "  payload: &a [*a]\n":             "3:16: schedules[0].payload[0]: is an alias of something that it is in",
		one + "  payload: &a {b: {c: *a}}\n":     "3:23: schedules[0].payload.b.c: is an alias of something that it is in",
		one + "  payload:\n  " + indented(bomb):  "2:3: schedules[0]: is larger than 256 KiB",
		one + "  payload:\n  " + indented(deep):  "104:9: schedules: is nested deeper than 100 levels (and 2 more)",
		one + "  payload: " + strings.Repeat("[", 99) + strings.Repeat("]", 99) + "\n": "3:110: schedules: is nested deeper than 100 levels",
		one + "  payload: " + strings.Repeat("[", 20_000):                              "3:1: exceeded max depth of 10000",
		one + "  payload: " + strings.Repeat("x", 256<<10) + "\n":                      "2:3: schedules[0]: is larger than 256 KiB",
		one + "#" + strings.Repeat("x", 10<<20):                                        "1:1: the file is larger than 10 MiB",
	} {
		f, err := manifest.Read(strings.NewReader(text))
		var faults manifest.Faults
		if !errors.As(err, &faults) || f != nil {
			t.Errorf("%.80q: %v %v", text, f, err)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%.80q: %s", text, diff)
		}
	}
}

// TestFaultsAreCollected: one reading tells all, up to a bound.
func TestFaultsAreCollected(t *testing.T) {
	t.Parallel()
	_, err := manifest.Read(strings.NewReader("schedules: [" + strings.Repeat("5,", 50) + "5]\n"))
	var faults manifest.Faults
	if !errors.As(err, &faults) || len(faults) != 20 || err.Error() != "1:13: schedules[0]: must be a mapping (and 19 more)" {
		t.Errorf("%d faults: %v", len(faults), err)
	}
}

// TestDefaultsAreCounted: a large default under many schedules is bounded too.
func TestDefaultsAreCounted(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	fmt.Fprintf(&b, "defaults: {payload: %s}\nschedules:\n", strings.Repeat("x", 200<<10))
	for i := range 1000 {
		fmt.Fprintf(&b, "- name: n%d\n", i)
	}
	_, err := manifest.Read(strings.NewReader(b.String()))
	if err == nil || !strings.HasSuffix(err.Error(), "schedules[327]: the schedules up to here have more than 64 MiB") {
		t.Error(err)
	}
}

func TestReadersFail(t *testing.T) {
	t.Parallel()
	_, err := manifest.Read(iotest.ErrReader(io.ErrClosedPipe))
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// FuzzRead: whatever a file holds, it is refused by place or its schedules are
// JSON objects of a bounded size with distinct names.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		whole, one, "{\"schedules\":[{\"name\":\"\\ud83e\\udd80\"}]}", one + "  payload: &a [*a]\n", "a: &a {b: *a}\nschedules: [*a]\n",
		"schedules:\n- &x {name: a}\n- *x\n", "? &k name\n: a\n? *k\n: b\n", "!!map {schedules: !!seq []}", "\ufeffschedules: []", "schedules: [{<<: a}]",
		"schedules: [{name: a, &x b: *x}]", "%YAML 1.1\n--- \nschedules: [{name: \"\\x00\"}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := manifest.Read(strings.NewReader(string(text)))
		if err != nil {
			var faults manifest.Faults
			if !errors.As(err, &faults) || len(faults) == 0 || file != nil {
				t.Fatalf("%q: %v", text, err)
			}
			for _, fault := range faults {
				if fault.Line < 1 || fault.Column < 1 || fault.Message == "" || fault.Line > strings.Count(string(text), "\n")+strings.Count(string(text), "\r")+strings.Count(string(text), "\u2028")+strings.Count(string(text), "\u2029")+strings.Count(string(text), "\u0085")+2 {
					t.Fatalf("%q: %+v", text, fault)
				}
			}
			return
		}
		names := map[string]bool{}
		for _, item := range file.Items {
			if !json.Valid(item.Body) {
				t.Fatalf("%q: %q is %s", text, item.Name, item.Body)
			}
			object, ok := decode(t, item.Body).(map[string]any)
			if !ok || object["name"] != item.Name || item.Name == "" || names[item.Name] || len(item.Body) > manifest.MaxScheduleBytes {
				t.Fatalf("%q: %q is %s", text, item.Name, item.Body)
			}
			names[item.Name] = true
			for field := range object {
				if line, column := item.Where(field); line < 1 || column < 1 {
					t.Fatalf("%q: %s is at %d:%d", text, field, line, column)
				}
			}
		}
	})
}
