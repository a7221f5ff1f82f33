package cron_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/cron"
)

// bug is a report against another scheduler, with the answer that is right by
// our convention.
type bug struct {
	ID    string `json:"id"`
	Input struct {
		Spec  string   `json:"spec"`
		Specs []string `json:"specs"`
		Zone  string   `json:"tz"`
		From  string   `json:"from"`
	} `json:"input"`
	Expected map[string]json.RawMessage `json:"expected"`
}

func loadBugs(t *testing.T) []bug {
	t.Helper()
	text, err := os.ReadFile("testdata/bugs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var bugs []bug
	for line := range bytes.Lines(text) {
		var b bug
		if err := json.Unmarshal(line, &b); err != nil {
			t.Fatal(err)
		}
		bugs = append(bugs, b)
	}
	return bugs
}

func TestBugs(t *testing.T) {
	t.Parallel()
	bugs := loadBugs(t)
	if want := 30; len(bugs) != want {
		t.Fatalf("%d bugs, want %d", len(bugs), want)
	}
	for _, b := range bugs {
		t.Run(b.ID, func(t *testing.T) {
			t.Parallel()
			b.check(t)
		})
	}
}

// check goes through the ways in which the reports state their answer.
func (b bug) check(t *testing.T) {
	if b.Input.Zone == "" {
		b.Input.Zone = "UTC"
	}
	checked := 0
	for key, value := range b.Expected {
		switch key {
		case "next":
			b.checkNext(t, b.Input.Spec, value)
		case "each_next":
			for _, spec := range b.Input.Specs {
				b.checkNext(t, spec, value)
			}
		case "sat-sun", "6-7":
			b.checkNext(t, "0 0 * * "+key, value)
		case "5-1":
			b.checkRefused(t, "0 0 * * "+key, "day of week")
		case "each":
			for _, spec := range b.Input.Specs {
				b.checkRefused(t, spec, "")
			}
		case "create":
			b.checkRefused(t, b.Input.Spec, "")
		case "fires_that_day":
			b.checkBurst(t)
		default:
			continue
		}
		checked++
	}
	if checked == 0 {
		t.Error("no expectation was checked")
	}
}

func (b bug) parse(t *testing.T, spec string) (*cron.Expression, error) {
	t.Helper()
	return cron.Parse(spec, cron.Options{Location: zone(t, b.Input.Zone)})
}

func (b bug) checkNext(t *testing.T, spec string, value json.RawMessage) {
	t.Helper()
	var want []string
	if err := json.Unmarshal(value, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 {
		b.checkRefused(t, spec, "day of month")
		return
	}
	for i := range want {
		want[i], _, _ = strings.Cut(want[i], " ")
	}
	e, err := b.parse(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, slots(e, instant(t, b.Input.From), len(want))); diff != "" {
		t.Errorf("%q in %s (-want +got)\n%s", spec, b.Input.Zone, diff)
	}
}

func (b bug) checkRefused(t *testing.T, spec, field string) {
	t.Helper()
	e, err := b.parse(t, spec)
	var refusal *cron.ParseError
	if !errors.As(err, &refusal) {
		t.Fatalf("Parse(%q) = %v, %v; want a refusal", spec, e, err)
	}
	if field != "" && refusal.Field != field {
		t.Errorf("Parse(%q) blames %q, want %q", spec, refusal.Field, field)
	}
}

// checkBurst counts the slots of a day.
func (b bug) checkBurst(t *testing.T) {
	t.Helper()
	e, err := b.parse(t, b.Input.Spec)
	if err != nil {
		t.Fatal(err)
	}
	all := slots(e, instant(t, "2021-08-03T23:59:59Z"), 61)
	got := []string{all[0], all[59], all[60]}
	want := []string{"2021-08-04T00:00:00Z", "2021-08-04T00:59:00Z", "2021-08-05T00:00:00Z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("first, sixtieth and next slot (-want +got)\n%s", diff)
	}
}

// TestHostZone runs the tables above in processes whose own zone is another.
func TestHostZone(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"Australia/Sydney", "Europe/London", "Pacific/Apia"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), self, "-test.run=^(TestBugs|TestVectors)$", "-test.v")
			c.Env = append(os.Environ(), "TZ="+host)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !bytes.Contains(out, []byte("--- PASS: TestBugs")) || !bytes.Contains(out, []byte("--- PASS: TestVectors")) {
				t.Errorf("the tables did not run:\n%s", out)
			}
		})
	}
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := cron.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func mustParse(t testing.TB, spec string, o cron.Options) *cron.Expression {
	t.Helper()
	e, err := cron.Parse(spec, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// slots returns the next n slots after from in UTC.
func slots(e *cron.Expression, from time.Time, n int) []string {
	var list []string
	for range n {
		from = e.Next(from)
		list = append(list, from.UTC().Format(time.RFC3339))
	}
	return list
}
