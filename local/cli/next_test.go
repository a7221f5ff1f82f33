package cli_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/local/cli"
)

// TestNextAgreesWithTheVectors runs all cases of core/cron's oracle through the
// command.
func TestNextAgreesWithTheVectors(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../core/cron/testdata/vectors.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	type vector struct {
		ID, Class, Spec, TZ, From string
		Next                      []string
	}
	var vectors []vector
	var in bytes.Buffer
	encoder := json.NewEncoder(&in)
	for d := json.NewDecoder(unzipped); d.More(); {
		var v vector
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
		if err := encoder.Encode(map[string]any{"spec": v.Spec, "tz": v.TZ, "from": v.From, "count": 5}); err != nil {
			t.Fatal(err)
		}
	}
	s := newShell(t)
	s.in = in.String()
	lines := strings.Split(strings.TrimSuffix(s.ok("next", "--jsonl"), "\n"), "\n")
	if len(vectors) != 2600 || len(lines) != len(vectors) {
		t.Fatalf("%d vectors, %d answers", len(vectors), len(lines))
	}
	for i, v := range vectors {
		var got struct {
			Next  []string
			Error string
		}
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		if v.Class == "never" {
			if got.Error == "" || len(got.Next) > 0 {
				t.Errorf("%s: %q never fires, and is answered with %s", v.ID, v.Spec, lines[i])
			}
			continue
		}
		if diff := cmp.Diff(v.Next, got.Next); diff != "" || got.Error != "" {
			t.Errorf("%s: %q in %s: %s%s", v.ID, v.Spec, v.TZ, got.Error, diff)
		}
	}
}

func TestNextLines(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.in = `{"spec":"0 9 * * MONDAY"}
{"spec":"at 2020-01-01T00:00"}

{"spec":"0 9 * * *","tz":"PST"}
{"sepc":"0 9 * * *"}
{"spec":"0 9 * * *","count":0}
nonsense
{}
{"spec":"at 2027-01-05T09:00","from":"2027-01-01T00:00:00Z"}
{"spec":"@daily","from":"2027-01-01T00:00:00Z","count":2}
`
	const object = `{"error":"the line is not an object such as {\"spec\": \"30 2 * * *\", \"tz\": \"Europe/Berlin\", \"from\": \"2026-03-28T00:00:00Z\", \"count\": 5}"}`
	want := strings.Join([]string{
		`{"error":"spec: day of week field, column 9, \"MONDAY\": not a value of this field; names have three letters: MON"}`,
		`{"error":"spec: time, column 4, \"2020-01-01T00:00\": lies in the past; to run something now, trigger it; to create late what should still fire, set catch_up_within"}`,
		`{"error":"time_zone: column 1, \"PST\": not a name of the IANA database; use America/Los_Angeles"}`,
		`{"error":"the line has a key that is not spec, tz, from or count"}`,
		`{"error":"count: must be from 1 to 1000"}`,
		object,
		`{"error":"spec: is missing"}`,
		`{"next":["2027-01-05T09:00:00Z"]}`,
		`{"next":["2027-01-02T00:00:00Z","2027-01-03T00:00:00Z"]}`,
		"",
	}, "\n")
	if diff := cmp.Diff(want, s.ok("next", "--jsonl")); diff != "" {
		t.Error(diff)
	}
}

// TestNextLinesAnswersAtOnce: an answer does not wait for the end of the input.
func TestNextLinesAnswersAtOnce(t *testing.T) {
	t.Parallel()
	in, write := io.Pipe()
	read, out := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(t.Context(), cli.System{
			Args: []string{"next", "--jsonl"}, In: in, Out: out, Err: io.Discard, Getenv: func(string) string { return "" }, Clock: clock.System{},
		})
		_ = out.Close()
	}()
	answers := bufio.NewReader(read)
	for _, c := range [][2]string{
		{`{"spec": "0 9 * * *", "from": "2026-12-01T00:00:00Z", "count": 1}`, `{"next":["2026-12-01T09:00:00Z"]}`},
		{strings.Repeat("x", 3<<20), `{"error":"the line is longer than 1048576 bytes"}`},
		{`{"Spec": "0 9 * * *"}`, `{"error":"the line has a key that is not spec, tz, from or count"}`},
		{`{"spec": "0 10 * * *", "from": "2026-12-01T00:00:00Z", "count": 1}`, `{"next":["2026-12-01T10:00:00Z"]}`},
	} {
		if _, err := io.WriteString(write, c[0]+"\n"); err != nil {
			t.Fatal(err)
		}
		got, err := answers.ReadString('\n')
		if err != nil || got != c[1]+"\n" {
			t.Fatalf("%.60s is answered by %q, %v", c[0], got, err)
		}
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const fixed = "clock changes: gap run_after, overlap first; fixed: neither the minute nor the hour field begins with a star, so it follows the wall clock\n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-28T12:00:00Z", "-n", "2"}, `30 2 * * *: at 02:30 every day, Europe/Berlin time
` + fixed + `2026-03-29T03:00:00+02:00	2026-03-29T01:00:00Z	clocks went from 02:00 to 03:00: runs now for 02:30, which did not exist
2026-03-30T02:30:00+02:00	2026-03-30T00:30:00Z	
`},
		{[]string{"@daily", "--tz", "EST5EDT", "--from", "2026-12-01T00:00:00Z", "-n", "1"}, `@daily: at 00:00 every day, EST5EDT time
` + fixed + `EST5EDT stands for America/New_York
starts are spread over 1h after each slot
2026-12-01T00:00:00-05:00	2026-12-01T05:00:00Z	
`},
		{[]string{"30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-28T12:00:00Z", "-n", "1", "--dst-gap", "skip", "--dst-overlap", "both"},
			`30 2 * * *: at 02:30 every day, Europe/Berlin time
clock changes: gap skip, overlap both; set for this schedule
2026-03-30T02:30:00+02:00	2026-03-30T00:30:00Z	clocks went from 02:00 to 03:00: 02:30 did not exist and was skipped
`},
	} {
		if diff := cmp.Diff(c.want, s.ok(append([]string{"next"}, c.args...)...)); diff != "" {
			t.Errorf("%q: %s", c.args, diff)
		}
	}
	var p api.Preview
	if err := json.Unmarshal([]byte(s.ok("next", "every 1 day", "--json")), &p); err != nil || len(p.Next) != 5 || p.Spec != "every 1d" || p.Hint == "" {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestNextRefusals: each refusal names the token and where it stands, and
// suggests something.
func TestNextRefusals(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct{ spec, zone, want string }{
		{"0 0 * * 8", "", `spec: day of week field, column 9, "8": out of range; use 0 to 7`},
		{"60 * * * *", "", `spec: minute field, column 1, "60": out of range; use 0 to 59`},
		{"*/0 * * * *", "", `spec: minute field, column 1, "*/0": the step is not a number above zero; write a step such as */15, or drop it`},
		{"5-1 * * * *", "", `spec: minute field, column 1, "5-1": the range ends before it begins; split it: 5-59,0-1`},
		{"0 0 31 2 *", "", `spec: day of month field, column 5, "31": no year has such a day in these months; choose a day that the months have`},
		{"0 9 * * MONDAY", "", `spec: day of week field, column 9, "MONDAY": not a value of this field; names have three letters: MON`},
		{"0 9 * * 🚀", "", `spec: day of week field, column 9, "🚀": character U+1F680 does not belong here; use letters, digits and * , - / ? # ( ) only, with blanks between fields`},
		{"0 9 * * \x00", "", `spec: day of week field, column 9, "\x00": character U+0000 does not belong here; use letters, digits and * , - / ? # ( ) only, with blanks between fields`},
		{strings.Repeat("*", 10_000), "", `spec: expression field, column 1, "` + strings.Repeat("*", 40) + `": 10000 bytes are too long; write at most 256 characters`},
		{"0 9 * * *", "europe/berlin", `time_zone: column 1, "europe/berlin": not a name of the IANA database; use Europe/Berlin`},
		{"0 9 * * *", "Local", `time_zone: column 1, "Local": not a name of the IANA database; it depends on the host: name a place, such as Europe/Berlin`},
		{"0 9 * * *", "+02:00", `time_zone: column 1, "+02:00": not a name of the IANA database; a bare offset knows no clock changes: name a place, such as Europe/Berlin, or Etc/GMT-2, whose sign is reversed`},
		{"rate(5 minutes)", "", `spec: expression, column 1, "rate(5 minutes)": this is EventBridge's form; write "every 5m"`},
		{"0 0 12 ? * 2-6", "", `spec: expression, column 1, "0 0 12 ? * 2-6": this is Quartz's form; write "0 12 * * 1-5"`},
	} {
		r := s.run("next", c.spec, "--tz", c.zone)
		if diff := cmp.Diff("fencepost: "+c.want+"\n", r.err); diff != "" || r.code != 1 || r.out != "" {
			t.Errorf("%.40q in %q: exit code %d: %s", c.spec, c.zone, r.code, diff)
		}
	}
	for _, args := range [][]string{
		{"next"}, {"next", "@daily", "--jsonl"}, {"next", "@daily", "-n", "0"}, {"next", "@daily", "-n", "1001"}, {"next", "@daily", "--from", "now"},
		{"next", "@daily", "--dst-gap", "x"}, {"next", "@daily", "--dst-overlap", "x"}, {"next", "@daily", "x"},
	} {
		if r := s.run(args...); r.code != 2 || r.err == "" {
			t.Errorf("%q: exit code %d: %s", args, r.code, r.err)
		}
	}
}
