package api_test

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

// route is a line of the tenant table: which scope a route needs, and with what a
// call of it succeeds.
type route struct {
	scope string // empty: open to everybody
	of    string // what the path names: schedule, name, run or key
	lists string // what the owner finds in the answer and a stranger does not
	// own says that the name in the path is the caller's own, whatever other
	// tenants call theirs.
	own bool
	// query and body may have NEW, a text of each call's own.
	query, body string
}

const (
	newSchedule = `{"name":"NEW","spec":"@daily","job":{"queue":"test"}}`
	newKey      = `{"name":"NEW","scopes":["read"]}`
	wholePut    = `{"spec":"@daily","job":{"queue":"test"}}`
	twoDays     = `{"from":"2026-01-01T00:00:00Z","to":"2026-01-03T00:00:00Z","rerun":true}`
)

// routes has every route of the API. A new one must be added here, and is held
// by it to the rules of scopes and tenants.
func routes() map[string]route {
	return map[string]route{
		"POST /v1/schedules":                   {scope: "write", body: newSchedule},
		"GET /v1/schedules":                    {scope: "read", lists: "schedule"},
		"GET /v1/schedules/{id}":               {scope: "read", of: "schedule"},
		"PATCH /v1/schedules/{id}":             {scope: "write", of: "schedule", body: `{"name":"NEW"}`},
		"DELETE /v1/schedules/{id}":            {scope: "write", of: "schedule"},
		"POST /v1/schedules/{id}/trigger":      {scope: "write", of: "schedule"},
		"POST /v1/schedules/{id}/pause":        {scope: "write", of: "schedule"},
		"POST /v1/schedules/{id}/resume":       {scope: "write", of: "schedule"},
		"GET /v1/schedules/{id}/runs":          {scope: "read", of: "schedule", lists: "run"},
		"GET /v1/schedules/{id}/next":          {scope: "read", of: "schedule"},
		"GET /v1/schedules/{id}/explain":       {scope: "read", of: "schedule", query: "?at=2099-01-05"},
		"GET /v1/schedules/{id}/exceptions":    {scope: "read", of: "schedule"},
		"POST /v1/schedules/{id}/exceptions":   {scope: "write", of: "schedule", body: `{"slot":"2099-12-24T00:00:00Z","skip":true}`},
		"DELETE /v1/schedules/{id}/exceptions": {scope: "write", of: "schedule", query: "?slot=2099-12-24T00:00:00Z"},
		"GET /v1/schedules/by-name/{name}":     {scope: "read", of: "name"},
		"PUT /v1/schedules/by-name/{name}":     {scope: "write", of: "name", own: true, body: wholePut},
		"DELETE /v1/schedules/by-name/{name}":  {scope: "write", of: "name"},
		"POST /v1/schedules/batch":             {scope: "write", body: `{"items":[` + newSchedule + `]}`},
		"GET /v1/calendars":                    {scope: "read", lists: "calendar"},
		"GET /v1/calendars/{name}":             {scope: "read", of: "calendar"},
		"PUT /v1/calendars/{name}":             {scope: "write", of: "calendar", own: true, body: `{"note":"NEW"}`},
		"DELETE /v1/calendars/{name}":          {scope: "write", of: "calendar"},
		"POST /v1/schedules/{id}/backfill":     {scope: "write", of: "schedule", body: twoDays},
		"GET /v1/schedules/{id}/backfills":     {scope: "read", of: "schedule", lists: "backfill"},
		"GET /v1/backfills/{id}":               {scope: "read", of: "backfill"},
		"POST /v1/backfills/{id}/cancel":       {scope: "write", of: "backfill"},
		"GET /v1/runs/{id}":                    {scope: "read", of: "run"},
		"POST /v1/keys":                        {scope: "admin", body: newKey},
		"GET /v1/keys":                         {scope: "admin", lists: "key"},
		"DELETE /v1/keys/{id}":                 {scope: "admin", of: "key"},
		"POST /v1/runs/{id}/cancel":            {scope: "write", of: "run"},
		"GET /v1/queues":                       {scope: "read", lists: "limit"},
		"PUT /v1/queues/{queue}/limit":         {scope: "write", of: "limit", own: true, body: `{"concurrency":7}`},
		"DELETE /v1/queues/{queue}/limit":      {scope: "write", of: "limit"},
		"POST /v1/queues/{queue}/lease":        {scope: "worker", of: "queue", own: true},
		"POST /v1/runs/{id}/heartbeat":         {scope: "worker", of: "held", body: `{"fence":FENCE}`},
		"POST /v1/runs/{id}/finish":            {scope: "worker", of: "held", body: `{"fence":FENCE,"outcome":"handed_back"}`},
		"POST /v1/runs/{id}/redrive":           {scope: "write", of: "run"},
		"POST /v1/runs/redrive":                {scope: "write", body: `{"queue":"test"}`},
		"POST /v1/next":                        {scope: "read", body: `{"spec":"@daily"}`},
		"GET /v1/info":                         {scope: "read"},
		"GET /healthz":                         {},
		"GET /readyz":                          {},
	}
}

// things are a tenant's, one of each kind that a path can name.
type things map[string]string

// make makes things of the tenant whose key the server holds.
func (s *server) make() things {
	s.Helper()
	made := s.create(`{"name":"of ` + uuid.NewString() + `","spec":"@daily","job":{"queue":"test"},"overlap":"allow"}`)
	run := want[api.Run](s, s.send("POST", "/v1/schedules/"+made.ID+"/trigger", nil), 202)
	key := want[api.CreatedKey](s, s.send("POST", "/v1/keys", newKey), 201)
	name := "of-" + uuid.NewString()
	want[api.CalendarResult](s, s.send("PUT", "/v1/calendars/"+name, `{"dates":["2099-12-25"]}`), 201)
	held := s.hold(want[api.Run](s, s.send("POST", "/v1/schedules/"+made.ID+"/trigger", nil), 202))
	want[api.QueueLimit](s, s.send("PUT", "/v1/queues/narrow/limit", `{"concurrency":1}`), 200)
	fill := want[api.BackfillPlan](s, s.send("POST", "/v1/schedules/"+made.ID+"/backfill", twoDays), 202)
	return things{"schedule": made.ID, "name": made.Name, "run": run.ID, "key": key.ID, "calendar": name, "backfill": fill.Backfill.ID, "queue": "test", "limit": "narrow", "held": held.Key.ID(), "fence": fmt.Sprint(held.Fence)}
}

// hold starts a queued run, as an executor or a worker does.
func (s *server) hold(run api.Run) core.Held {
	s.Helper()
	key, err := core.ParseRunID(run.ID)
	if err != nil {
		s.Fatal(err)
	}
	started, err := s.keys.(core.RunStore).Start(s.Context(), []core.Delivery{{Message: core.Message{Key: key, Fence: run.Fence}, Token: uuid.New()}}, time.Minute)
	if err != nil || len(started) != 1 {
		s.Fatalf("start: %v, %v", started, err)
	}
	return core.Held{Key: key, Fence: started[0].Fence}
}

// nobodys are things in the form of those that exist.
func nobodys() things {
	id := uuid.Must(uuid.NewV7())
	key := core.RunKey{Region: region, ScheduleID: id, Slot: time.Date(2027, 1, 5, 9, 0, 0, 1000, time.UTC)}
	return things{"schedule": id.String(), "name": "of " + uuid.NewString(), "run": key.ID(), "key": "key_" + strings.ReplaceAll(id.String(), "-", "")[16:], "calendar": "of-" + uuid.NewString(), "backfill": uuid.NewString(), "queue": "test", "limit": "wide", "held": key.ID(), "fence": "65537"}
}

var parameter = regexp.MustCompile(`\{\w+\}`)

// call calls a route; what it names in its path is one of the things.
func (s *server) call(name string, on things) *httptest.ResponseRecorder {
	s.Helper()
	method, path, _ := strings.Cut(name, " ")
	r := routes()[name]
	if parameter.MatchString(path) {
		if on[r.of] == "" {
			s.Fatalf("%s: the table does not say what the path names", name)
		}
		path = parameter.ReplaceAllString(path, strings.ReplaceAll(on[r.of], " ", "%20"))
	}
	fill := strings.NewReplacer("NEW", uuid.NewString(), "FENCE", on["fence"])
	if r.body == "" {
		return s.send(method, path+fill.Replace(r.query), nil)
	}
	return s.send(method, path+fill.Replace(r.query), fill.Replace(r.body))
}

// documented returns the routes that the API tells of, in order.
func documented(s *server) []string {
	s.Helper()
	var all []string
	for path, methods := range want[openAPI](s, s.send("GET", "/openapi.json", nil), 200).Paths {
		for method := range methods {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		_, x, _ := strings.Cut(a, " ")
		_, y, _ := strings.Cut(b, " ")
		return strings.Compare(x+" "+a, y+" "+b)
	})
	return all
}

// eachStore runs a test on the store in memory and on a database.
func eachStore(t *testing.T, test func(s *server)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		store := memory.New(region, clock.System{})
		test(newServer(t, store, store, nil))
	})
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		db, err := database.Open(t.Context(), database.Config{URL: dbtest.New(t), Region: region, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		test(newServer(t, db, db, nil))
	})
}

func TestEveryRouteIsInTheTenantTable(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(routes())), slices.Sorted(slices.Values(documented(newFake(t, &fakeStore{}))))); diff != "" {
		t.Errorf("add each new route to routes (-table +API):\n%s", diff)
	}
}

// TestScopes calls every route with every scope; -v prints the table.
func TestScopes(t *testing.T) {
	t.Parallel()
	reach := map[string][]string{
		"": {"none", "worker", "read", "write", "admin"}, "worker": {"worker", "admin"},
		"read": {"read", "write", "admin"}, "write": {"write", "admin"}, "admin": {"admin"},
	}
	eachStore(t, func(s *server) {
		tenant := uuid.New()
		owner := s.as(s.addKey(tenant, "admin"))
		callers := map[string]string{"none": ""}
		for _, scope := range []string{"worker", "read", "write", "admin"} {
			callers[scope] = s.addKey(tenant, scope)
		}
		var text strings.Builder
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "\n"+strings.Join(append([]string{"route"}, reach[""]...), "\t"))
		for _, name := range documented(s) {
			row := []string{name}
			for _, scope := range reach[""] {
				w := s.as(callers[scope]).call(name, owner.make())
				row = append(row, fmt.Sprint(w.Code))
				refusal := 403
				if scope == "none" {
					refusal = 401
				}
				allowed := slices.Contains(reach[routes()[name].scope], scope)
				if allowed && w.Code/100 != 2 || !allowed && w.Code != refusal {
					s.Errorf("%s with scope %s: %d %s", name, scope, w.Code, w.Body)
				}
			}
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
		_ = table.Flush() // a strings.Builder takes everything
		s.Log(text.String())
	})
}

// TestTenantsDoNotSeeEachOther: what belongs to another tenant is answered like
// what does not exist, word for word, and no call changes it.
func TestTenantsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *server) {
		owner, stranger := s.as(s.addKey(uuid.New(), "admin")), s.as(s.addKey(uuid.New(), "admin"))
		foreign := owner.make()
		before := owner.look(foreign)
		for _, name := range documented(s) {
			r, inPath := routes()[name], parameter.MatchString(name)
			switch {
			case inPath:
				unknown := nobodys()
				got, same := stranger.call(name, foreign), stranger.call(name, unknown)
				if diff := cmp.Diff(faceless(same, unknown), faceless(got, foreign)); diff != "" {
					s.Errorf("%s tells an unknown %s from a foreign one (-unknown +foreign):\n%s", name, r.of, diff)
				}
				if !r.own && got.Code != 404 {
					s.Errorf("%s on a foreign %s: %d %s", name, r.of, got.Code, got.Body)
				}
			default:
				body := stranger.call(name, nil).Body.String()
				for what, id := range foreign {
					if what == "queue" || what == "fence" {
						continue // every tenant has such
					}
					if strings.Contains(body, id) {
						s.Errorf("%s shows a foreign %s: %s", name, what, body)
					}
				}
				if strings.HasPrefix(name, "GET ") && strings.Contains(body, `"items":`) && r.lists == "" {
					s.Errorf("%s: the table does not say what it lists", name)
				}
			}
			if r.lists != "" && !strings.Contains(owner.call(name, foreign).Body.String(), foreign[r.lists]) {
				s.Errorf("%s does not list the owner's %s", name, r.lists)
			}
		}
		if diff := cmp.Diff(before, owner.look(foreign)); diff != "" {
			s.Errorf("a stranger changed something (-before +after):\n%s", diff)
		}
	})
}

// look returns what the owner of things sees of them.
func (s *server) look(on things) map[string]string {
	s.Helper()
	seen := map[string]string{}
	for name, r := range routes() {
		if strings.HasPrefix(name, "GET ") && r.of+r.lists != "" && !strings.HasSuffix(name, "/next") {
			seen[name] = s.call(name, on).Body.String()
		}
	}
	return seen
}

var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
)

// faceless returns an answer without what any two answers differ in.
func faceless(w *httptest.ResponseRecorder, on things) string {
	headers := w.Header().Clone()
	headers.Del("X-Request-Id")
	headers.Del("Etag") // of an id that differs
	text := fmt.Sprintf("%d %v %s", w.Code, headers, w.Body)
	for what, id := range on {
		text = strings.ReplaceAll(text, id, what)
	}
	return anyTime.ReplaceAllString(anyID.ReplaceAllString(text, "ID"), "TIME")
}
