package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core/api"
)

// TestExplain: what a database answers about slots is found by the sentence.
func TestExplain(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		skipped := s.skipped() // in a pause
		path := "/v1/schedules/" + skipped.ScheduleID + "/explain"
		got := want[api.Explanation](s, s.send("GET", path+"?at="+skipped.ScheduledFor.Format(time.RFC3339), nil), 200)
		if b := got.Before; b == nil || b.Verdict != "skipped" || b.Reason != "paused" || b.RunID != skipped.ID || got.After != nil || !got.IsSlot {
			t.Errorf("a slot of a pause: %+v", got)
		}
		daily := s.create(daily("a"))
		got = want[api.Explanation](s, s.send("GET", "/v1/schedules/"+daily.ID+"/explain", nil), 200)
		if got.Before == nil || got.Before.Verdict != "before_creation" || got.After == nil || got.After.Verdict != "expected" || !got.After.StartsAt.Equal(*daily.NextRunAt) {
			t.Errorf("a new schedule: %+v %+v", got.Before, got.After)
		}
		if p := problem(s, s.send("GET", "/v1/schedules/"+daily.ID+"/explain?at=soon", nil), 422); p.Field != "at" || !strings.Contains(p.Detail, "2026-03-29T02:30") {
			t.Errorf("%+v", p)
		}
		problem(s, s.send("GET", "/v1/schedules/"+nobodys()["schedule"]+"/explain", nil), 404)
	})
}

// TestPreviewTellsOfExceptions: slots that are skipped or moved are not shown as
// if they came.
func TestPreviewTellsOfExceptions(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		day := time.Now().UTC().AddDate(0, 0, 2).Truncate(24 * time.Hour)
		want[api.CalendarResult](s, s.send("PUT", "/v1/calendars/closed", `{"dates":["`+day.Format(time.DateOnly)+`"]}`), 201)
		made := s.create(`{"name":"a","spec":"0 9 * * *","job":{"queue":"test"},"calendars":["closed"]}`)
		path := "/v1/schedules/" + made.ID
		at := func(days, hour int) string {
			return day.AddDate(0, 0, days).Add(time.Duration(hour) * time.Hour).Format(time.RFC3339)
		}
		for _, body := range []string{`{"slot":"` + at(1, 9) + `","skip":true}`, `{"slot":"` + at(2, 9) + `","move_to":"` + at(2, 11) + `"}`} {
			if w := s.send("POST", path+"/exceptions", body); w.Code >= 300 {
				s.Fatal(w.Body)
			}
		}
		found := map[string]string{}
		for _, slot := range want[api.Preview](s, s.send("GET", path+"/next?n=5", nil), 200).Next {
			found[slot.ScheduledFor.Format(time.RFC3339)] = slot.Skipped + " " + slot.StartsAt.Format(time.RFC3339)
		}
		for slot, said := range map[string]string{at(0, 9): "blackout " + at(0, 9), at(1, 9): "exception " + at(1, 9), at(2, 9): " " + at(2, 11)} {
			if found[slot] != said {
				s.Errorf("the slot of %s is shown as %q, want %q", slot, found[slot], said)
			}
		}
	})
}
