package api_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

const holidays = `{"time_zone":"Europe/Berlin","note":"x","dates":["2099-12-25"],"ranges":[{"from":"2099-12-30","to":"2100-01-02T06:00"}],
	"weekly":[{"days":["sat","sun"]},{"days":["fri"],"from":"18:00","to":"24:00"}]}`

// TestCalendars: a calendar is shown as it was put, makes a version when it
// changes, and stays as long as a schedule names it.
func TestCalendars(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		const path = "/v1/calendars/de-holidays"
		dry := want[api.CalendarResult](s, s.send("PUT", path+"?dry_run=true", holidays), 200)
		if dry.Outcome != "created" || s.send("GET", path, nil).Code != 404 {
			s.Errorf("a dry run: %+v", dry)
		}
		w := s.send("PUT", path, holidays)
		made := want[api.CalendarResult](s, w, 201)
		if made.Outcome != "created" || made.Version != 1 || w.Header().Get("ETag") != `"1"` {
			s.Errorf("%+v", made)
		}
		shown := want[api.Calendar](s, s.send("GET", path, nil), 200)
		if diff := cmp.Diff(made.Calendar, shown); diff != "" || len(shown.Weekly) != 2 || shown.Ranges[0].To != "2100-01-02T06:00" {
			s.Errorf("%+v %s", shown, diff)
		}
		same := want[api.CalendarResult](s, s.send("PUT", path, holidays, "If-Match", `"1"`), 200)
		changed := want[api.CalendarResult](s, s.send("PUT", path, `{"dates":["2099-12-26"]}`, "If-Match", `"1"`), 200)
		if same.Outcome != "unchanged" || changed.Outcome != "replaced" || changed.Version != 2 || changed.TimeZone != "" || !changed.UpdatedAt.After(changed.CreatedAt) && changed.UpdatedAt != changed.CreatedAt {
			s.Errorf("%+v, then %+v", same, changed)
		}
		if p := problem(s, s.send("PUT", path, holidays, "If-Match", `"1"`), 412); p.Code != "version_mismatch" {
			s.Errorf("%+v", p)
		}
		if p := problem(s, s.send("PUT", "/v1/calendars/other", holidays, "If-Match", `*`), 412); p.Code != "version_mismatch" {
			s.Errorf("%+v", p)
		}
		list := want[api.List[api.Calendar]](s, s.send("GET", "/v1/calendars", nil), 200)
		if len(list.Items) != 1 || list.Items[0].Name != "de-holidays" {
			s.Errorf("%+v", list)
		}
		user := s.create(`{"name":"a","spec":"@daily","job":{"queue":"test"},"calendars":["de-holidays"]}`)
		p := problem(s, s.send("DELETE", path, nil), 409)
		if p.Code != "calendar_in_use" || !strings.Contains(p.Detail, "1 schedule names") {
			s.Errorf("%+v", p)
		}
		want[api.Schedule](s, s.send("PATCH", "/v1/schedules/"+user.ID, `{"calendars":[]}`), 200)
		want[struct{}](s, s.send("DELETE", path, nil), 204)
		problem(s, s.send("DELETE", path, nil), 404)
	})
}

// TestSchedulesUnderCalendars: which calendars close its slots is a part of a
// schedule, and what is closed is not what runs next.
func TestSchedulesUnderCalendars(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		for name, body := range map[string]string{"always": `{"ranges":[{"from":"2000-01-01","to":"9999-12-31"}]}`, "never": `{}`, "soon": closedUntil(s, 40*24*time.Hour)} {
			want[api.CalendarResult](s, s.send("PUT", "/v1/calendars/"+name, body), 201)
		}
		made := s.create(`{"name":"a","spec":"0 3 * * *","job":{"queue":"test"},"calendars":["soon","never","soon"]}`)
		if diff := cmp.Diff([]string{"never", "soon"}, made.Calendars); diff != "" {
			s.Error(diff)
		}
		if in := time.Until(*made.NextRunAt); in < 39*24*time.Hour || in > 42*24*time.Hour {
			s.Errorf("next run at %s", made.NextRunAt)
		}
		path := "/v1/schedules/" + made.ID
		same := want[api.Schedule](s, s.send("PATCH", path, `{"calendars":["soon","never"]}`), 200)
		closed := want[api.Schedule](s, s.send("PATCH", path, `{"calendars":["always"]}`), 200)
		if same.Version != 1 || closed.Version != 2 || closed.NextRunAt != nil || len(closed.Warnings) != 1 {
			s.Errorf("%+v, then %+v", same, closed)
		}
		listed := want[api.List[api.Schedule]](s, s.send("GET", "/v1/schedules", nil), 200)
		if diff := cmp.Diff(closed, listed.Items[0]); diff != "" {
			s.Errorf("in a list: %s", diff)
		}
		open := want[api.CalendarResult](s, s.send("PUT", "/v1/calendars/always", `{}`), 200)
		if got := want[api.Schedule](s, s.send("GET", path, nil), 200); open.Outcome != "replaced" || got.NextRunAt == nil || len(got.Warnings) != 0 {
			s.Errorf("%+v", got)
		}
	})
}

// closedUntil returns a calendar that is closed from yesterday for some time.
func closedUntil(s *server, d time.Duration) string {
	form := func(t time.Time) string { return t.UTC().Format("2006-01-02") }
	return `{"ranges":[{"from":"` + form(time.Now().Add(-24*time.Hour)) + `","to":"` + form(time.Now().Add(d)) + `"}]}`
}

// TestCalendarsThatAreWrong: each fault names its field.
func TestCalendarsThatAreWrong(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	for body, field := range map[string]string{
		`{"time_zone":"PST"}`: "time_zone", `{"dates":["25.12.2099"]}`: "dates[0]", `{"dates":"2099-12-25"}`: "dates", `{"dates":[1]}`: "dates[0]",
		`{"ranges":[{"from":"2099-12-25"}]}`: "ranges[0].to", `{"ranges":[[]]}`: "ranges[0]", `{"ranges":[{"from":"2099-12-25","to":"2099-12-25","days":["sun"]}]}`: "ranges[0].days",
		`{"weekly":[{}]}`: "weekly[0].days", `{"weekly":[{"days":["monday"]}]}`: "weekly[0].days", `{"weekly":[{"days":["mon"],"from":"8"}]}`: "weekly[0].from",
		`{"weekly":[{"days":["mon"],"until":"8"}]}`: "weekly[0].until", `{"note":"` + strings.Repeat("x", 501) + `"}`: "note", `{"holidays":[]}`: "holidays",
		`{"dates":null}`: "dates", `{"weekly":[{"days":["sun","mon","tue","wed","thu","fri","sat"]}]}`: "weekly",
	} {
		p := problem(s, s.send("PUT", "/v1/calendars/a", body), 422)
		fields := []string{p.Field}
		for _, f := range p.Errors {
			fields = append(fields, f.Field)
		}
		if !slices.Contains(fields, field) {
			t.Errorf("%s: %+v", body, p)
		}
	}
	problem(s, s.send("PUT", "/v1/calendars/A%20b", `{}`), 422)
	problem(s, s.send("GET", "/v1/calendars/A%20b", nil), 404)
	for body, field := range map[string]string{
		`"calendars":["missing"]`: "calendars[0]", `"calendars":"x"`: "calendars", `"calendars":["A B"]`: "calendars[0]", `"calendars":[""]`: "calendars[0]",
		`"calendars":["a","b","c","d","e","f","g","h","i","j","k"]`: "calendars",
	} {
		for _, call := range [][2]string{{"POST", "/v1/schedules"}, {"PUT", "/v1/schedules/by-name/a"}} {
			p := problem(s, s.send(call[0], call[1], `{"name":"a","spec":"@daily","job":{"queue":"test"},`+body+`}`), 422)
			if p.Field != field {
				t.Errorf("%s %s: %+v", call[0], body, p)
			}
		}
	}
	batch := want[api.BatchResult](s, s.send("POST", "/v1/schedules/batch", `{"items":[{"name":"b","spec":"@daily","job":{"queue":"test"},"calendars":["missing"]},`+newSchedule+`]}`), 200)
	if batch.Items[0].Problem == nil || batch.Items[0].Problem.Field != "calendars[0]" || batch.Items[1].Outcome != "created" {
		t.Errorf("%+v", batch)
	}
	dry := want[api.BatchResult](s, s.send("POST", "/v1/schedules/batch", `{"mode":"put","dry_run":true,"items":[{"name":"b","spec":"@daily","job":{"queue":"test"},"calendars":["missing"]}]}`), 200)
	if dry.Items[0].Outcome != "created" {
		t.Errorf("%+v", dry)
	}
}
