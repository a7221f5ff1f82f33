package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// TestPagesWhileRowsAreAdded: what is there throughout is on exactly one page,
// whatever is made and deleted between them (C11).
func TestPagesWhileRowsAreAdded(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	var there []string
	for i := range 6 {
		there = append(there, s.create(daily(fmt.Sprint("there-", i))).ID)
	}
	gone := s.create(daily("gone")).ID
	first := "/v1/schedules/" + there[0]
	want[api.Schedule](s, s.send("PATCH", first, `{"overlap":"allow"}`), 200)
	var runs []string
	for range 6 {
		runs = append([]string{want[api.Run](s, s.send("POST", first+"/trigger", nil), 202).ID}, runs...)
	}
	n := 0
	disturb := func() {
		n++
		s.create(daily(fmt.Sprint("new-", n)))
		want[api.Run](s, s.send("POST", first+"/trigger", nil), 202)
		if n == 2 {
			if w := s.send("DELETE", "/v1/schedules/"+gone, nil); w.Code != 204 {
				t.Errorf("delete: %s", w.Body)
			}
		}
	}
	got := keep(there, walkWith(s, "/v1/schedules?limit=2", disturb, func(v api.Schedule) string { return v.ID }))
	if diff := cmp.Diff(there, got); diff != "" {
		t.Errorf("schedules: %s", diff)
	}
	for _, query := range []string{"?limit=2", "?limit=1&state=queued"} {
		got = keep(runs, walkWith(s, first+"/runs"+query, disturb, func(v api.Run) string { return v.ID }))
		if diff := cmp.Diff(runs, got); diff != "" {
			t.Errorf("runs%s: %s", query, diff)
		}
	}
}

// keep returns those of got that are wanted.
func keep(wanted, got []string) []string {
	return slices.DeleteFunc(got, func(id string) bool { return !slices.Contains(wanted, id) })
}

// walkWith reads a list to its end and does something before each further page.
func walkWith[T any](s *server, path string, between func(), id func(T) string) []string {
	s.Helper()
	var all []string
	next := path
	for range 100 {
		page := want[api.List[T]](s, s.send("GET", next, nil), 200)
		for _, item := range page.Items {
			all = append(all, id(item))
		}
		if page.NextCursor == nil {
			return all
		}
		between()
		next = path + "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
	s.Fatalf("%s does not end", path)
	return nil
}

// TestCursorsBelongToTheirList: one of another tenant, list or filter, or one that
// was changed, is refused.
func TestCursorsBelongToTheirList(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	made := s.create(daily("a"))
	s.create(daily("b"))
	path := "/v1/schedules/" + made.ID
	want[api.Schedule](s, s.send("PATCH", path, `{"overlap":"allow"}`), 200)
	for range 2 {
		want[api.Run](s, s.send("POST", path+"/trigger", nil), 202)
	}
	cursor := *want[api.List[api.Schedule]](s, s.send("GET", "/v1/schedules?limit=1&state=active", nil), 200).NextCursor
	runs := *want[api.List[api.Run]](s, s.send("GET", path+"/runs?limit=1", nil), 200).NextCursor
	stranger := s.as(s.addKey(uuid.New(), "admin"))
	for name, w := range map[string]struct {
		s    *server
		path string
	}{
		"another filter": {s, "/v1/schedules?state=paused&cursor=" + cursor},
		"no filter":      {s, "/v1/schedules?cursor=" + cursor},
		"another tenant": {stranger, "/v1/schedules?state=active&cursor=" + cursor},
		"another list":   {s, "/v1/schedules?state=active&cursor=" + runs},
		"another bound":  {s, path + "/runs?to=2099-01-01T00:00:00Z&cursor=" + runs},
		"changed":        {s, "/v1/schedules?state=active&cursor=" + strings.ToUpper(cursor)},
		"another end":    {s, "/v1/schedules?state=active&cursor=" + other(cursor)},
		"another slot":   {s, path + "/runs?cursor=" + other(runs)},
		"cut":            {s, "/v1/schedules?state=active&cursor=" + cursor[:20]},
		"padded":         {s, "/v1/schedules?state=active&cursor=" + cursor + "="},
	} {
		if p := problem(w.s, w.s.send("GET", w.path, nil), 422); p.Field != "cursor" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if got := want[api.List[api.Schedule]](s, s.send("GET", "/v1/schedules?limit=50&state=active&cursor="+cursor, nil), 200); len(got.Items) != 1 {
		t.Errorf("%d items after the first", len(got.Items))
	}
}

// other returns a cursor that differs in one bit of its position.
func other(cursor string) string {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return err.Error()
	}
	b[len(b)-1] ^= 1
	return base64.RawURLEncoding.EncodeToString(b)
}

// TestForgedCursors: who knows how a cursor is made can name any slot, and only
// finds other runs of the same list.
func TestForgedCursors(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	tenant := uuid.New()
	s = s.as(s.addKey(tenant, "admin"))
	made := s.create(daily("a"))
	path := "/v1/schedules/" + made.ID
	run := want[api.Run](s, s.send("POST", path+"/trigger", nil), 202)
	forge := func(micros int64) string {
		position := binary.BigEndian.AppendUint64(nil, uint64(micros))
		sum := sha256.Sum256(append([]byte("runs of "+made.ID+"\n"+tenant.String()+"\nfrom=&state=&to=\n"), position...))
		return base64.RawURLEncoding.EncodeToString(slices.Concat([]byte{2}, sum[:8], position))
	}
	for _, micros := range []int64{math.MinInt64, math.MaxInt64, -62_135_596_800_000_000, core.Forever.UnixMicro() + 1} {
		if p := problem(s, s.send("GET", path+"/runs?cursor="+forge(micros), nil), 422); p.Field != "cursor" {
			t.Errorf("%d: %+v", micros, p)
		}
	}
	for micros, items := range map[int64]int{-62_135_596_799_999_999: 0, 0: 0, run.ScheduledFor.UnixMicro(): 0, core.Forever.UnixMicro(): 1} {
		if got := want[api.List[api.Run]](s, s.send("GET", path+"/runs?cursor="+forge(micros), nil), 200); len(got.Items) != items {
			t.Errorf("%d: %d runs, want %d", micros, len(got.Items), items)
		}
	}
}

// TestLargePagesAreCut: a page of large payloads ends early and goes on.
func TestLargePagesAreCut(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	large := []byte(`{"text":"` + strings.Repeat("x", 200<<10) + `"}`)
	var ids []string
	for i := range 30 {
		ids = append(ids, s.create(api.ScheduleInput{Name: fmt.Sprint(i), Spec: "@daily", Job: &api.JobInput{Queue: "test", Payload: large}}).ID)
	}
	pages := 0
	got := walkWith(s, "/v1/schedules?limit=1000", func() { pages++ }, func(v api.Schedule) string { return v.ID })
	if diff := cmp.Diff(ids, got); diff != "" || pages != 1 {
		t.Errorf("%d further pages: %s", pages, diff)
	}
}

// TestFilters: each parameter narrows the list, and lists show the last run.
func TestFilters(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	a := s.create(`{"name":"nightly a","spec":"@daily","job":{"queue":"test"},"labels":{"team":"x","env":"test"}}`)
	b := s.create(`{"name":"nightly b","spec":"@daily","job":{"queue":"http","payload":{"url":"https://example.com"}},"labels":{"team":"y"}}`)
	if diff := cmp.Diff(map[string]string{"team": "x", "env": "test"}, a.Labels); diff != "" || a.LastRun != nil || a.LastState != nil {
		t.Errorf("%v %v %s", a.LastRun, a.LastState, diff)
	}
	run := want[api.Run](s, s.send("POST", "/v1/schedules/"+a.ID+"/trigger", nil), 202)
	want[api.Schedule](s, s.send("POST", "/v1/schedules/"+b.ID+"/pause", nil), 200)
	for query, names := range map[string]string{
		"state=active": "nightly a", "state=paused,completed": "nightly b", "queue=http": "nightly b", "name=nightly+b": "nightly b",
		"name=nightly": "", "name=nightly+b&state=active": "", "name_prefix=nightly": "nightly a nightly b", "name_prefix=Nightly": "",
		"labels=team%3Dx": "nightly a", "labels=team%3Dx,env!%3Dtest": "", "labels=!env": "nightly b", "labels=team,env": "nightly a",
	} {
		var got []string
		for _, item := range want[api.List[api.Schedule]](s, s.send("GET", "/v1/schedules?"+query, nil), 200).Items {
			got = append(got, item.Name)
			if item.ID == a.ID && (item.LastRun == nil || item.LastRun.ID != run.ID || item.LastState == nil || *item.LastState != "queued") {
				t.Errorf("last run of %s: %+v %v", query, item.LastRun, item.LastState)
			}
		}
		if diff := cmp.Diff(names, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	for _, labels := range []string{`{"":"x"}`, `{"-a":"x"}`, `{"a b":"x"}`, `{"a":"x,y"}`, `{"a":"x\n"}`, `{"a":1}`, `{"a":"\ud800"}`, `{"a":"\u0000"}`, `[]`, `{"a":"x","a":"y"}`} {
		if p := problem(s, s.send("PATCH", "/v1/schedules/"+a.ID, `{"labels":`+labels+`}`), 422); !strings.HasPrefix(p.Field, "labels") {
			t.Errorf("%s: %+v", labels, p)
		}
	}
	cleared := want[api.Schedule](s, s.send("PATCH", "/v1/schedules/"+a.ID, `{"labels":{}}`), 200)
	if len(cleared.Labels) != 0 || cleared.Version != 2 || !cleared.NextRunAt.Equal(*a.NextRunAt) {
		t.Errorf("%+v", cleared)
	}
}
