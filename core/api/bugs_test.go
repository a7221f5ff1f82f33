package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// The tests of this file are named after reports of what other schedulers did.

// TestBugH31: an edit of the name leaves the zone, and with it the next time.
func TestBugH31(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	eachStore(t, func(s *server) {
		made := s.create(`{"name":"a","spec":"0 8 * * *","time_zone":"Europe/Berlin","job":{"queue":"test"}}`)
		path := "/v1/schedules/" + made.ID
		want[api.Schedule](s, s.send("PATCH", path, `{"name":"b"}`), 200)
		got := want[api.Schedule](s, s.send("GET", path, nil), 200)
		if got.NextRunAt != nil && got.NextRunAt.In(berlin).Hour() != 8 {
			t.Errorf("next is %v", got.NextRunAt)
		}
		if got.Name != "b" || got.TimeZone != "Europe/Berlin" || got.NextRunAt == nil || !got.NextRunAt.Equal(*made.NextRunAt) {
			t.Errorf("%s %q, next %v, before %v", got.Name, got.TimeZone, got.NextRunAt, made.NextRunAt)
		}
	})
}

// TestBugH54: a payload above the limit is refused at once, with the limit, and
// is not something to try again.
func TestBugH54(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	payload := `"` + strings.Repeat("x", core.MaxPayloadBytes-1) + `"` // a byte too many
	body := `{"name":"n","spec":"@daily","job":{"queue":"test","payload":` + payload + `}}`
	for _, w := range []struct{ method, path string }{
		{"POST", "/v1/schedules"}, {"PUT", "/v1/schedules/by-name/n"}, {"PATCH", aSchedule},
	} {
		p := problem(s, s.send(w.method, w.path, body), 413)
		if p.Code != "too_large" || !strings.Contains(p.Detail, "256 KiB") {
			t.Errorf("%s: %+v", w.method, p)
		}
	}
}
