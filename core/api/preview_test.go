package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/cron"
)

func TestPreviewOfASpec(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	got := want[api.Preview](s, s.send("POST", "/v1/next",
		`{"spec":"30 2 * * *","time_zone":"Europe/Berlin","from":"2026-03-28T12:00:00Z","count":2}`), 200)
	expected := api.Preview{
		Spec: "30 2 * * *", TimeZone: "Europe/Berlin", Description: "at 02:30 every day, Europe/Berlin time", Spread: "0s",
		DST: api.DST{Gap: "run_after", Overlap: "first", Reason: "fixed: neither the minute nor the hour field begins with a star, so it follows the wall clock"},
		Next: []api.PreviewSlot{
			{
				ScheduledFor: time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), Local: "2026-03-29T03:00:00+02:00", UTCOffset: "+02:00",
				Reason: "clocks went from 02:00 to 03:00: runs now for 02:30, which did not exist",
			},
			{ScheduledFor: time.Date(2026, 3, 30, 0, 30, 0, 0, time.UTC), Local: "2026-03-30T02:30:00+02:00", UTCOffset: "+02:00"},
		},
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Error(diff)
	}
}

func TestPreviewHints(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	for body, hint := range map[string]string{
		`{"spec":"H H * * *"}`:                                 "the id of a schedule decides",
		`{"spec":"every 90m"}`:                                 "the id of a schedule decides",
		`{"spec":"every 1 day"}`:                               `"0 9 * * *"`,
		`{"spec":"every 90m","anchor":"2027-01-01T00:00:00Z"}`: "",
		`{"spec":"0 9 * * THU"}`:                               "",
	} {
		got := want[api.Preview](s, s.send("POST", "/v1/next", body), 200)
		if len(got.Next) != 5 || !strings.Contains(got.Hint, hint) || (hint == "") != (got.Hint == "") {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestWrongPreviews(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	for body, field := range map[string]string{
		`{}`: "spec", `{"spec":"@daily","count":0}`: "count", `{"spec":"@daily","count":1001}`: "count", `{"spec":"@daily","from":"now"}`: "from",
		`{"spec":"@daily","name":"x"}`: "name", `{"spec":"@daily","dst_gap":"jump"}`: "dst_gap", `{"spec":"@daily","dst_overlap":""}`: "dst_overlap",
		`{"spec":"@daily","window":"5m","exact":true}`: "exact", `{"spec":"@daily","exact":1}`: "exact",
		`{"spec":"at 2020-01-01T00:00"}`: "spec", `{"spec":"30 2 ? 3 0L","time_zone":"Europe/Berlin","dst_gap":"skip"}`: "dst_gap",
	} {
		if p := problem(s, s.send("POST", "/v1/next", body), 422); p.Field != field {
			t.Errorf("%s: field %q, %s", body, p.Field, p.Detail)
		}
	}
	for _, n := range []string{"0", "1001", "x", "-1"} {
		if p := problem(s, s.send("GET", aSchedule+"/next?n="+n, nil), 422); p.Field != "n" {
			t.Errorf("n=%s: %+v", n, p)
		}
	}
}

// TestBadInput: each refusal names the token and where it stands, and suggests
// something.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	for _, c := range []struct{ spec, zone, field, detail string }{
		{"0 0 * * 8", "", "spec", `day of week field, column 9, "8": out of range; use 0 to 7`},
		{"60 * * * *", "", "spec", `minute field, column 1, "60": out of range; use 0 to 59`},
		{"*/0 * * * *", "", "spec", `minute field, column 1, "*/0": the step is not a number above zero; write a step such as */15, or drop it`},
		{"5-1 * * * *", "", "spec", `minute field, column 1, "5-1": the range ends before it begins; split it: 5-59,0-1`},
		{"0 0 31 2 *", "", "spec", `day of month field, column 5, "31": no year has such a day in these months; choose a day that the months have`},
		{"0 9 * * MONDAY", "", "spec", `day of week field, column 9, "MONDAY": not a value of this field; names have three letters: MON`},
		{"0 9 * * 🚀", "", "spec", `day of week field, column 9, "🚀": character U+1F680 does not belong here; use letters, digits and * , - / ? # ( ) only, with blanks between fields`},
		{`0 9 * * 1\u0000`, "", "spec", `day of week field, column 10, "\x00": character U+0000 does not belong here; use letters, digits and * , - / ? # ( ) only, with blanks between fields`},
		{strings.Repeat("*", 10_000), "", "spec", `expression field, column 1, "` + strings.Repeat("*", 40) + `": 10000 bytes are too long; write at most 256 characters`},
		{"0 9 * * *", "europe/berlin", "time_zone", `column 1, "europe/berlin": not a name of the IANA database; use Europe/Berlin`},
		{"0 9 * * *", "PST", "time_zone", `column 1, "PST": not a name of the IANA database; use America/Los_Angeles`},
		{"0 9 * * *", "Local", "time_zone", `column 1, "Local": not a name of the IANA database; it depends on the host: name a place, such as Europe/Berlin`},
		{"0 9 * * *", "+02:00", "time_zone", `column 1, "+02:00": not a name of the IANA database; a bare offset knows no clock changes: name a place, such as Europe/Berlin, or Etc/GMT-2, whose sign is reversed`},
		{"0 9 * * *", `UTC\u0000`, "time_zone", `column 1, "UTC\x00": not a name of the IANA database; use UTC`},
	} {
		for path, rest := range map[string]string{"/v1/schedules": `,"name":"n","job":{"queue":"test"}`, "/v1/next": ""} {
			p := problem(s, s.send("POST", path, `{"spec":"`+c.spec+`","time_zone":"`+c.zone+`"`+rest+`}`), 422)
			if diff := cmp.Diff([]string{"invalid", c.field, c.detail}, []string{p.Code, p.Field, p.Detail}); diff != "" {
				t.Errorf("%.40q in %q at %s: %s", c.spec, c.zone, path, diff)
			}
		}
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC)
	var fail error
	store := &fakeStore{
		overdue: []core.Overdue{{Count: 2, Since: now}, {State: core.RunQueued, Queue: "mails", Count: 1, Since: now}},
		alerts:  []core.Alert{{Name: "a", Kind: core.AlertClaimRefused, Detail: "what the database said", OpenedAt: now}},
	}
	s := newServer(t, store, &fakeKeys{}, func(c *api.Config) {
		c.Inspect = func(context.Context) (core.DatabaseInfo, error) {
			return core.DatabaseInfo{
				Server: "PostgreSQL 15.18", Schema: 8, Known: 9, Now: now, ClockOffset: -time.Second, PartitionsUntil: now,
				Regions: []core.RegionInfo{{Name: "local", Claimers: 1, Shards: 63}},
			}, fail
		}
	})
	look := func() api.Info { return want[api.Info](s, s.send("GET", "/v1/info", nil), 200) }
	expected := api.Info{
		Version: "1.2.3", ZoneData: cron.ZoneVersion(),
		Database: &api.DatabaseInfo{
			Server: "PostgreSQL 15.18", Schema: 8, Known: 9, Time: now, ClockOffset: -1, PartitionsUntil: &now,
			Regions: []api.RegionInfo{{Name: "local", Claimers: 1, Shards: 63}},
		},
		Overdue: []api.Overdue{{What: "schedule", Count: 2, Since: now}, {What: "queued", Queue: "mails", Count: 1, Since: now}},
		Alerts:  []api.Alert{{ScheduleID: uuid.Nil.String(), Name: "a", Kind: "claim_refused", Since: now}},
	}
	if diff := cmp.Diff(expected, look()); diff != "" {
		t.Error(diff)
	}
	store.err = errors.New("gone") // nobody may think that all is well
	expected.Overdue, expected.Alerts = nil, nil
	if diff := cmp.Diff(expected, look()); diff != "" {
		t.Error(diff)
	}
	fail = errors.New("gone")
	expected.Database = nil
	if diff := cmp.Diff(expected, look()); diff != "" {
		t.Error(diff)
	}
	problem(s.as(""), s.as("").send("GET", "/v1/info", nil), 401)
}
