package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/schedules"
)

const batch = "/v1/schedules/batch"

// said renders the items of an answer for comparison.
func said(b api.BatchResult) []string {
	out := make([]string, len(b.Items))
	for i, item := range b.Items {
		out[i] = fmt.Sprint(item.Status, " ", item.Name, " ", item.Outcome)
		if p := item.Problem; p != nil {
			out[i] += p.Code + " " + p.Field
		}
		if (item.ID != "") != (item.Outcome != "") {
			out[i] += fmt.Sprintf(" with id %q", item.ID)
		}
	}
	return out
}

const mixedItems = `[
	{"name":"a","spec":"0 3 * * *","job":{"queue":"test"}},
	{"name":"b","spec":"61 * * * *","job":{"queue":"test"}},
	{"name":"a","spec":"0 4 * * *","job":{"queue":"test"}},
	{"name":"c","spec":"0 3 * * *","job":{"queue":"test"},"colour":"red"},
	7, null, {}, [{"name":"d"}],
	{"name":"e","spec":"@daily","job":{"http":{"url":"bad"}}},
	{"name":"f","name":"g","spec":"@daily","job":{"queue":"test"}},
	{"name":"h","spec":"in 3d","job":{"queue":"test"}}
]`

func TestBatch(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	refusals := []string{
		"422 c unknown_field colour", "422  invalid ", "422  invalid ", "422  invalid name", "422  invalid ",
		"422 e invalid job.http.url", "422 f invalid name",
	}
	create := append([]string{"201 a created", "422 b invalid spec", "409 a name_taken name"}, refusals...)
	for i, c := range []struct {
		body   string
		want   []string
		counts [4]int
	}{
		{`{"items":` + mixedItems + `}`, append(create, "201 h created"), [4]int{2, 0, 0, 9}},
		{`{"mode":"create","items":` + mixedItems + `}`, append([]string{"409 a name_taken name", "422 b invalid spec", "409 a name_taken name"}, append(refusals, "409 h name_taken name")...), [4]int{0, 0, 0, 11}},
		{`{"mode":"put","items":` + mixedItems + `}`, append([]string{"200 a unchanged", "422 b invalid spec", "200 a replaced"}, append(refusals, "422 h invalid spec")...), [4]int{0, 1, 1, 9}},
	} {
		got := want[api.BatchResult](s, s.send("POST", batch, c.body), 200)
		if diff := cmp.Diff(c.want, said(got)); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
		if diff := cmp.Diff(c.counts, [4]int{got.Created, got.Replaced, got.Unchanged, got.Refused}); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}
	if got := want[api.Schedule](s, s.send("GET", named("a"), nil), 200); got.Spec != "0 4 * * *" || got.Version != 2 {
		t.Errorf("a is %+v", got)
	}
}

func TestDryBatch(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	s.create(daily("old"))
	for mode, outcome := range map[string]string{"create": "409 old name_taken name", "put": "200 old unchanged"} {
		got := want[api.BatchResult](s, s.send("POST", batch, `{"dry_run":true,"mode":"`+mode+`","items":[
			{"name":"new","spec":"every 1h","job":{"queue":"test"}},{"name":"old","spec":"0 3 * * *","job":{"queue":"test"}}]}`), 200)
		if diff := cmp.Diff([]string{`201 new created with id ""`, outcome}, said(got)); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
	if list := want[api.List[api.Schedule]](s, s.send("GET", "/v1/schedules", nil), 200); len(list.Items) != 1 {
		t.Errorf("%d schedules after dry runs", len(list.Items))
	}
}

func TestWrongBatches(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{err: errors.New("the store was asked")})
	item := `{"name":"canary-5e1f"}`
	for _, c := range []wrongBody{
		{``, 400, "invalid", "", "the body is empty; send a JSON object"},
		{`[` + item + `]`, 422, "invalid", "", "the body must be a JSON object"},
		{`{"items":[` + item, 400, "invalid", "", "the body ends before its JSON does: line 1, column 33"},
		{`{}`, 422, "invalid", "items", "is required"},
		{`{"items":null}`, 422, "invalid", "items", "must not be null; leave the field out instead"},
		{`{"items":` + item + `}`, 422, "invalid", "items", "must be an array"},
		{`{"items":[]}`, 422, "invalid", "items", "must have from 1 to 1000 items"},
		{`{"items":[` + strings.Repeat("1,", schedules.MaxMany) + `1]}`, 422, "invalid", "items", "must have from 1 to 1000 items"},
		{`{"items":[` + item + `],"items":[]}`, 422, "invalid", "items", "is there twice"},
		{`{"items":[` + item + `],"mode":"canary-5e1f"}`, 422, "invalid", "mode", "must be create or put"},
		{`{"items":[` + item + `],"mode":1}`, 422, "invalid", "mode", "must be a string"},
		{`{"items":[` + item + `],"dry_run":"true"}`, 422, "invalid", "dry_run", "must be true or false"},
		{`{"items":[` + item + `],"dryrun":true}`, 422, "unknown_field", "dryrun", "is not a field here"},
		{`{"items":[` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `]}`, 400, "invalid", "", "the body is nested deeper than 1000 levels: line 1, column 1009"},
	} {
		w := s.send("POST", batch, c.body)
		p := problem(s, w, c.status)
		if diff := cmp.Diff([]string{c.code, c.field, c.detail}, []string{p.Code, p.Field, p.Detail}); diff != "" {
			t.Errorf("%.100s: %s", c.body, diff)
		}
		if strings.Contains(w.Body.String(), canary) {
			t.Errorf("%.100s is repeated: %s", c.body, w.Body)
		}
	}
}

func TestBatchIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	item := func(name string, size int) string {
		head := `{"name":"` + name + `","spec":"@daily","job":{"queue":"test","payload":"`
		return head + strings.Repeat("x", size-len(head)-len(`"}}`)) + `"}}`
	}
	var items []string
	for i := range 30 {
		items = append(items, item(fmt.Sprint(i), core.MaxPayloadBytes))
	}
	body := []byte(`{"items":[` + strings.Join(items, ",") + "," + item("large", core.MaxPayloadBytes+1) + "]}")
	full := append(body, bytes.Repeat([]byte(" "), 8<<20-len(body))...)
	got := want[api.BatchResult](s, s.send("POST", batch, full), 200)
	if got.Created != 30 || got.Items[30].Status != 413 || got.Items[30].Problem.Code != "too_large" {
		t.Errorf("%d created; %+v", got.Created, got.Items[30])
	}
	for _, body := range []any{append(full, ' '), io.MultiReader(bytes.NewReader(full), strings.NewReader(" "))} {
		if p := problem(s, s.send("POST", batch, body), 413); p.Detail != "the body is larger than 8192 KiB" {
			t.Errorf("%+v", p)
		}
	}
	unread := &countingReader{}
	problem(s, s.as(s.addKey(uuid.New(), "read")).send("POST", batch, unread), 403)
	if unread.read > 0 {
		t.Errorf("%d bytes were read for nothing", unread.read)
	}
}

// TestBatchOfAThousand fits into one request easily, as a load or as a repeat.
func TestBatchOfAThousand(t *testing.T) {
	t.Parallel()
	s, _ := newReal(t)
	for _, c := range []struct {
		mode, spec               string
		created, replaced, taken int
	}{
		{"create", "0 3 * * *", 1000, 0, 0}, {"create", "0 3 * * *", 0, 0, 1000}, {"put", "0 3 * * *", 0, 0, 0}, {"put", "0 4 * * *", 0, 1000, 0},
	} {
		in := api.BatchInput{Mode: c.mode}
		for i := range schedules.MaxMany {
			in.Items = append(in.Items, json.RawMessage(fmt.Sprintf(`{"name":"n%d","spec":"%s","job":{"queue":"test"}}`, i, c.spec)))
		}
		begin := time.Now()
		got := want[api.BatchResult](s, s.send("POST", batch, in), 200)
		if got.Created != c.created || got.Replaced != c.replaced || got.Refused != c.taken {
			t.Errorf("%s: %d created, %d replaced, %d unchanged, %d refused", c.mode, got.Created, got.Replaced, got.Unchanged, got.Refused)
		}
		t.Logf("%s of %s: %s", c.mode, c.spec, time.Since(begin))
	}
}

// broken is a store that creates the first part of a batch and then loses its
// database.
type broken struct {
	core.ScheduleStore
	down bool
}

func (b *broken) Named(ctx context.Context, tenant uuid.UUID, names []string) ([]core.Scheduled, error) {
	if b.down {
		return nil, &core.Error{Code: core.CodeUnavailable, Message: "the database does not answer", Err: errors.New("hidden")}
	}
	return b.ScheduleStore.Named(ctx, tenant, names)
}

// TestBatchWithoutADatabase: a failure of ours is the item's; of all items, the
// request's.
func TestBatchWithoutADatabase(t *testing.T) {
	t.Parallel()
	_, db := newReal(t)
	store := &broken{ScheduleStore: db, down: true}
	s := newServer(t, store, db, nil)
	item := `{"name":"a","spec":"@daily","job":{"queue":"test"}}`
	w := s.send("POST", batch, `{"mode":"put","items":[`+item+`]}`)
	if p := problem(s, w, 503); p.Code != "unavailable" || w.Header().Get("Retry-After") == "" {
		t.Errorf("%+v", p)
	}
	got := want[api.BatchResult](s, s.send("POST", batch, `{"mode":"put","items":[`+item+`,{}]}`), 200)
	if diff := cmp.Diff([]string{"503 a unavailable ", "422  invalid name"}, said(got)); diff != "" {
		t.Error(diff)
	}
	if strings.Count(s.log.String(), "hidden") != 2 {
		t.Errorf("want the cause logged once for each request: %s", s.log)
	}
}
