package api_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

// TestSlotPolicies stores what decides about slots and changes it.
func TestSlotPolicies(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	made := want[api.Schedule](s, s.send("POST", "/v1/schedules", `{"name":"a","spec":"TZ=EST5EDT @Daily","dst_gap":"skip","dst_overlap":"both",
		"catch_up_within":"1h","exact":true,"job":{"queue":"test"}}`), 201)
	path := "/v1/schedules/" + made.ID
	check := func(got api.Schedule, fields ...string) {
		t.Helper()
		if diff := cmp.Diff(fields, []string{
			got.Spec, got.TimeZone, got.TimeZoneTarget, got.DSTGap, got.DSTOverlap, got.DST.Gap, got.DST.Overlap, got.CatchUpWithin, got.Spread,
		}); diff != "" {
			t.Error(diff)
		}
	}
	check(made, "@daily", "EST5EDT", "America/New_York", "skip", "both", "skip", "both", "1h", "0s")
	if made.NextRunAt.Minute() != 0 || made.NextRunAt.Second() != 0 {
		t.Errorf("an exact schedule comes at %s", made.NextRunAt)
	}
	changed := want[api.Schedule](s, s.send("PATCH", path, `{"dst_gap":"auto","dst_overlap":"auto","catch_up_within":"0s","exact":false}`), 200)
	check(changed, "@daily", "EST5EDT", "America/New_York", "auto", "auto", "run_after", "first", "0s", "1h")
	next := want[api.Preview](s, s.send("GET", path+"/next?n=3", nil), 200)
	if len(next.Next) != 3 || !next.Next[0].StartsAt.Equal(*changed.NextRunAt) || next.Next[0].StartsAt.Sub(next.Next[0].ScheduledFor) >= time.Hour {
		t.Errorf("next run at %s, preview %+v", changed.NextRunAt, next)
	}
	p := problem(s, s.send("PATCH", path, `{"spec":"30 2 ? 3 0L","time_zone":"Europe/Berlin","dst_gap":"skip"}`), 422)
	if p.Field != "dst_gap" {
		t.Errorf("a spec that never fires: %+v", p)
	}
}

// TestLateOneTimeSchedules fire at once within their limit, and are refused
// beyond it or in an edit.
func TestLateOneTimeSchedules(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	past := time.Now().UTC().Add(-time.Minute).Truncate(time.Second)
	body := `"spec":"at ` + past.Format(time.RFC3339) + `","job":{"queue":"test"}}`
	if p := problem(s, s.send("POST", "/v1/schedules", `{"name":"a",`+body), 422); p.Field != "spec" {
		t.Errorf("%+v", p)
	}
	late := want[api.Schedule](s, s.send("POST", "/v1/schedules", `{"name":"a","catch_up_within":"1h",`+body), 201)
	if late.State != "active" || late.NextRunAt == nil || late.NextRunAt.Sub(late.CreatedAt) > time.Second {
		t.Errorf("a late schedule is %+v", late)
	}
	// What it is now is no new spec; another time in the past is.
	want[api.Schedule](s, s.send("PATCH", "/v1/schedules/"+late.ID, `{"retry":{"max_attempts":2},"spec":"`+late.Spec+`"}`), 200)
	p := problem(s, s.send("PATCH", "/v1/schedules/"+late.ID, `{"spec":"at `+past.Add(time.Second).Format(time.RFC3339)+`"}`), 422)
	if p.Field != "spec" {
		t.Errorf("%+v", p)
	}
}
