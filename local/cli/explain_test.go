package cli_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/core/spec"
	"github.com/fencepost/fencepost/infra/clock"
)

// past is an API on the store in memory whose time a test moves, with everything
// that becomes due in between.
type past struct {
	*shell
	store  *memory.Store
	tenant uuid.UUID
	mu     sync.Mutex
	at     time.Time
	// takes is how long runs take, fails whether they fail for good.
	takes time.Duration
	fails bool
}

func (p *past) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

func (*past) Sleep(context.Context, time.Duration) error { panic("the store slept") }
func (*past) After(time.Duration) <-chan time.Time       { panic("the store waited") }

func newPast(t *testing.T, at string) *past {
	t.Helper()
	p := &past{tenant: uuid.New(), at: instant(t, at), takes: time.Second}
	p.store = memory.New(region, p)
	target := testTarget{}
	handler, err := api.New(api.Config{
		Service: schedules.New(p.store, region, map[string]core.Target{"mails": target}), Keys: p.store,
		Ready: p.store.Ping, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), Version: "v1.2.3",
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	key, hash := api.NewKey()
	if err := p.store.AddKey(t.Context(), core.APIKey{Hash: hash, TenantID: p.tenant, Name: "test", Scopes: []string{"admin"}}); err != nil {
		t.Fatal(err)
	}
	p.shell = &shell{TB: t, env: map[string]string{"FENCEPOST_URL": server.URL, "FENCEPOST_API_KEY": key, "TZ": "UTC"}}
	return p
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UTC()
}

// down lets time pass without a claimer.
func (p *past) down(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = instant(p, to)
}

func (p *past) move(to time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = later(p.at, to)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (p *past) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// up lets time pass in which a schedule is claimed and its runs are executed.
func (p *past) up(name, to string) {
	p.Helper()
	end := instant(p, to)
	var ends []func()
	var when []time.Time
	for {
		found, err := p.store.Named(p.Context(), p.tenant, []string{name})
		p.must(err)
		cur := found[0]
		next := cur.Timer.FireAt
		if len(when) > 0 && !when[0].After(next) {
			if when[0].After(end) {
				break
			}
			p.move(when[0])
			ends[0]()
			when, ends = when[1:], ends[1:]
			continue
		}
		if next.After(end) {
			break
		}
		p.move(next)
		slots, err := spec.Of(&cur)
		p.must(err)
		m := plan.Move(&cur.Schedule, &cur.Timer, slots, p.Now())
		claimed, err := p.store.Claim(p.Context(), cur.Timer.Shard, []core.Move{m}, time.Hour)
		p.must(err)
		for _, c := range claimed {
			if c.State == core.RunQueued {
				when, ends = append(when, p.Now().Add(p.takes)), append(ends, p.start(c))
			}
		}
	}
	p.move(end)
}

// start begins a run and returns what ends it.
func (p *past) start(c core.Claimed) func() {
	started, err := p.store.Start(p.Context(), []core.Delivery{{Message: core.Message{Key: c.Key, Fence: c.Fence}, Token: uuid.New()}}, 24*time.Hour)
	p.must(err)
	o := core.Outcome{Held: core.Held{Key: c.Key, Fence: started[0].Fence}, State: core.RunSucceeded}
	if p.fails {
		o.State, o.Reason, o.Error = core.RunDead, core.ReasonPermanent, "no such table: orders\nat line 3"
	}
	return func() {
		_, err := p.store.Finish(p.Context(), []core.Outcome{o})
		p.must(err)
	}
}

func (p *past) create(args ...string) {
	p.Helper()
	p.ok(append([]string{"schedules", "create", "--name", "report", "--queue", "mails", "--time-zone", "Europe/Berlin"}, args...)...)
}

// situations are what people ask about.
var situations = []struct {
	title string
	play  func(p *past)
	asks  []string
}{
	{"a three-hour outage over a clock change", func(p *past) {
		p.create("--spec", "0 * * * *")
		p.up("report", "2026-03-28T23:30:00Z")
		p.down("2026-03-29T02:30:00Z")
		p.up("report", "2026-03-29T04:30:00Z")
	}, []string{"2026-03-29T01:00", "2026-03-29T04:00"}},
	{"the hour that did not exist", func(p *past) {
		p.create("--spec", "30 2 * * *")
		p.up("report", "2026-03-29T04:30:00Z")
	}, []string{"2026-03-29T02:30"}},
	{"the same with dst_gap skip", func(p *past) {
		p.create("--spec", "30 2 * * *", "--dst-gap", "skip")
		p.up("report", "2026-03-29T04:30:00Z")
	}, []string{"2026-03-29T02:30"}},
	{"a run that took too long for the next", func(p *past) {
		p.takes = 90 * time.Minute
		p.create("--spec", "0 * * * *")
		p.up("report", "2026-03-28T22:10:00Z")
	}, []string{"2026-03-28T22:00"}},
	{"a pause", func(p *past) {
		p.create("--spec", "0 * * * *")
		p.up("report", "2026-03-28T20:30:00Z")
		p.ok("schedules", "pause", "report", "--note", "the database moves")
		p.down("2026-03-28T22:10:00Z")
	}, []string{""}},
	{"a closed day", func(p *past) {
		_, err := p.store.PutCalendar(p.Context(), core.Calendar{
			TenantID: p.tenant, Name: "holidays", CalendarContent: core.CalendarContent{TimeZone: "Europe/Berlin", Dates: []string{"2026-03-29"}},
		}, 0)
		p.must(err)
		p.create("--spec", "0 9 * * *", "--calendar", "holidays")
		p.up("report", "2026-03-29T12:00:00Z")
	}, []string{"2026-03-29"}},
	{"a job that failed", func(p *past) {
		p.fails = true
		p.create("--spec", "0 * * * *")
		p.up("report", "2026-03-28T21:10:00Z")
	}, []string{"2026-03-28T22:00"}},
	{"too late to be useful", func(p *past) {
		p.create("--spec", "0 * * * *", "--catch-up-within", "10m", "--misfire", "run_all")
		p.up("report", "2026-03-28T20:30:00Z")
		p.down("2026-03-28T22:20:00Z")
		p.up("report", "2026-03-28T22:20:00Z")
	}, []string{"2026-03-28T22:00"}},
	{"nobody claims", func(p *past) {
		p.create("--spec", "0 * * * *")
		p.up("report", "2026-03-28T20:30:00Z")
		p.down("2026-03-28T21:04:05Z")
	}, []string{""}},
	{"spread, and before the schedule was there", func(p *past) {
		p.create("--spec", "@daily")
		p.down("2026-03-28T20:30:00Z")
	}, []string{""}},
	{"no slot at all", func(p *past) {
		p.create("--spec", "0 9 * * *", "--ends-at", "2026-03-30T00:00:00Z")
		p.up("report", "2026-03-29T12:00:00Z")
	}, []string{"2026-03-29T10:31"}},
	{"an hour that came twice", func(p *past) {
		p.down("2026-10-24T12:00:00Z")
		p.create("--spec", "30 2 * * *")
		p.up("report", "2026-10-25T04:00:00Z")
	}, []string{"2026-10-25T02:30"}},
}

var (
	someID   = regexp.MustCompile(`run_[0-9a-z]+`)
	someLate = regexp.MustCompile(`(comes at )\S+ \S+ \S+(, )\S+( after the slot)`)
)

// TestExplain plays what people ask about; its answers are in testdata/explain.txt.
func TestExplain(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, c := range situations {
		p := newPast(t, "2026-03-28T19:30:00Z")
		c.play(p)
		fmt.Fprintf(&b, "# %s\n", c.title)
		for _, at := range c.asks {
			args := []string{"explain", "report"}
			if at != "" {
				args = append(args, "--at", at)
			}
			fmt.Fprintf(&b, "$ fencepost %s\n%s\n", strings.Join(args, " "), p.ok(args...))
		}
	}
	got := someLate.ReplaceAllString(someID.ReplaceAllString(b.String(), "run_..."), "${1}...${2}...${3}")
	golden := filepath.Join("testdata", "explain.txt")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-update writes %s anew (-want +got):\n%s", golden, diff)
	}
}

func TestExplainAsJSON(t *testing.T) {
	t.Parallel()
	p := newPast(t, "2026-03-28T19:30:00Z")
	p.create("--spec", "0 * * * *")
	p.up("report", "2026-03-28T20:30:00Z")
	var e api.Explanation
	if err := json.Unmarshal([]byte(p.ok("explain", "report", "--at", "2026-03-28T20:00:00Z", "--json")), &e); err != nil {
		t.Fatal(err)
	}
	if e.Before == nil || e.Before.Verdict != "succeeded" || e.Before.RunID == "" || !e.IsSlot || e.After == nil || e.After.Verdict != "expected" {
		t.Errorf("%+v", e)
	}
	for _, at := range []string{"yesterday", "1969-01-01", "2026-13-01T00:00"} {
		if r := p.run("explain", "report", "--at", at); r.code != 1 || !strings.Contains(r.err, "at: must be") {
			t.Errorf("%s: %+v", at, r)
		}
	}
}
