package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/local/cli"
)

// TestTail: runs that come and change while it looks are printed, one line each,
// and Ctrl-C is no error.
func TestTail(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedules", "create", "--name", "a", "--spec", "@yearly", "--queue", "mails", "--overlap", "allow")
	before := s.ok("schedules", "trigger", "a")
	for _, args := range [][]string{{"a"}, nil} {
		ctx, stop := context.WithCancel(t.Context())
		read, out := io.Pipe()
		done := make(chan int, 1)
		looked := make(chan struct{})
		go func() {
			done <- cli.Run(ctx, cli.System{
				Args: append([]string{"runs", "tail", "--interval", "200ms"}, args...), Out: out, Err: io.Discard,
				Getenv: func(name string) string { return s.env[name] }, Clock: &counting{System: clock.System{}, looked: looked},
			})
			_ = out.Close()
		}()
		<-looked // the runs so far are known
		run := strings.TrimSpace(strings.TrimPrefix(s.ok("schedules", "trigger", "a"), "triggered a: "))
		lines := bufio.NewReader(read)
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, "  a  queued  slot ") || !strings.HasSuffix(line, "  "+run+"\n") || strings.Contains(before, run) {
			t.Errorf("tail %q prints %q, %v", args, line, err)
		}
		s.ok("runs", "cancel", run)
		if line, err = lines.ReadString('\n'); err != nil || !strings.Contains(line, "  a  canceled") || !strings.Contains(line, run) {
			t.Errorf("tail %q prints %q, %v", args, line, err)
		}
		stop()
		if code := <-done; code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// counting says when the first wait begins.
type counting struct {
	clock.System
	looked chan struct{}
	closed bool
}

// Sleep implements core.Clock.
func (c *counting) Sleep(ctx context.Context, d time.Duration) error {
	if !c.closed {
		c.closed = true
		close(c.looked)
	}
	return c.System.Sleep(ctx, d)
}

// scene is an API whose runs a test changes between the looks of a tail.
type scene struct {
	testing.TB
	clock.System
	next   chan func() // what happens before the next look
	mu     sync.Mutex
	down   bool
	status int                 // of every answer; zero is 200
	runs   map[string]api.Run  // by id
	view   map[string][]string // ids by schedule, newest first
	asked  map[string]int      // requests by path
	err    strings.Builder     // what was said
	out    strings.Builder
}

// Sleep lets the test act between two looks, and ends with its last act. The
// client's shorter waits take no time.
func (s *scene) Sleep(_ context.Context, d time.Duration) error {
	if d < time.Second {
		return nil
	}
	act, ok := <-s.next
	if !ok {
		return context.Canceled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	act()
	return nil
}

// set makes a run the newest of a schedule, or changes its state.
func (s *scene) set(schedule, id, state string) {
	if _, ok := s.runs[id]; !ok {
		s.view[schedule] = append([]string{id}, s.view[schedule]...)
	}
	s.runs[id] = api.Run{ID: id, ScheduleID: schedule, State: state, ScheduledFor: time.Unix(0, 0).UTC(), Attempt: 1}
}

// ServeHTTP serves lists of schedules and runs, and single runs.
func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		panic(http.ErrAbortHandler)
	}
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	s.asked[path[0]]++
	var answer any
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
		answer = api.Problem{Status: s.status, Code: "unauthorized", Detail: "the API key is not valid"}
	case path[0] == "runs":
		answer = api.RunDetail{Run: s.runs[path[1]]}
	case len(path) == 1 && r.URL.Query().Get("name") != "":
		name := r.URL.Query().Get("name")
		answer = api.List[api.Schedule]{Items: []api.Schedule{{ID: name, Name: name}}}
	case len(path) == 1:
		var list api.List[api.Schedule]
		for _, name := range slices.Sorted(maps.Keys(s.view)) {
			last := s.runs[s.view[name][0]]
			list.Items = append(list.Items, api.Schedule{ID: name, Name: name, LastRun: &api.LastRun{ID: last.ID, ScheduledFor: last.ScheduledFor}, LastState: &last.State})
		}
		answer = list
	default:
		list := api.List[api.Run]{Items: []api.Run{}}
		for _, id := range s.view[path[1]][:min(20, len(s.view[path[1]]))] {
			list.Items = append(list.Items, s.runs[id])
		}
		answer = list
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.Error(err)
	}
}

// play runs tail and lets the acts happen, one before each look but the first. It
// returns what was printed without the time of day.
func (s *scene) play(args []string, acts ...func(*scene)) (code int) {
	s.Helper()
	s.next = make(chan func(), len(acts))
	for _, act := range acts {
		s.next <- func() { act(s) }
	}
	close(s.next)
	server := httptest.NewServer(s)
	defer server.Close()
	env := map[string]string{"FENCEPOST_URL": server.URL, "FENCEPOST_API_KEY": "fp_x"}
	return cli.Run(s.Context(), cli.System{
		Args: append([]string{"runs", "tail"}, args...), Out: &s.out, Err: &s.err, Getenv: func(name string) string { return env[name] }, Clock: s,
	})
}

func newScene(t *testing.T) *scene {
	s := &scene{TB: t, runs: map[string]api.Run{}, view: map[string][]string{}, asked: map[string]int{}}
	s.set("a", "r0", "succeeded")
	return s
}

// lines are what was printed, without the time of day.
func (s *scene) lines() []string {
	var out []string
	for line := range strings.Lines(s.out.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), "  ")
		out = append(out, strings.ReplaceAll(rest, "  slot 1970-01-01T00:00:00Z", ""))
	}
	return out
}

// TestTailOfRunsOutOfView: a run that goes on beside newer ones is followed to its
// end, with names and without.
func TestTailOfRunsOutOfView(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"a"}} {
		s := newScene(t)
		code := s.play(args,
			func(s *scene) { s.set("a", "slow", "running") },
			func(s *scene) {
				for i := range 19 {
					s.set("a", fmt.Sprint("quick", i), "succeeded")
				}
			},
			func(s *scene) { s.set("a", "other", "skipped") },
			func(s *scene) { s.set("a", "slow", "dead") },
			func(*scene) {},
		)
		var of []string
		for _, line := range s.lines() {
			if strings.Contains(line, "slow") {
				of = append(of, line)
			}
		}
		want := []string{"a  running  attempt 1  slow", "a  dead  attempt 1  slow"}
		if args == nil {
			want[0] = "a  running  slow"
		}
		if diff := cmp.Diff(want, of); diff != "" || code != 0 || s.err.Len() > 0 {
			t.Errorf("tail %q: exit code %d: %s%s", args, code, s.err.String(), diff)
		}
	}
}

// TestTailSurvivesAnOutage: one line when the API goes, one when it is back, and
// nothing that happened last is lost.
func TestTailSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gone := func(s *scene) { s.down = true }
	code := s.play([]string{"a"}, gone, gone, gone, func(s *scene) { s.down = false; s.set("a", "r1", "succeeded") })
	matches(t, "waiting for the API: .*\nthe API answers again\n", s.err.String())
	if diff := cmp.Diff([]string{"a  succeeded  attempt 1  r1"}, s.lines()); diff != "" || code != 0 {
		t.Errorf("exit code %d: %s", code, diff)
	}
}

// TestTailEndsWithARefusal: what waiting does not mend ends it.
func TestTailEndsWithARefusal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	code := s.play(nil, func(s *scene) { s.status = 401 }, func(*scene) {})
	if code != 1 || !strings.HasPrefix(s.err.String(), "fencepost: the API key is not valid") {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
	s = newScene(t)
	s.down = true
	if code := s.play(nil); code != 1 {
		t.Errorf("exit code %d without an API from the start: %s", code, s.err.String())
	}
}

// TestTailIsBounded: many runs at once cost no more requests, and what is left out
// is said.
func TestTailIsBounded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	burst := func(s *scene) {
		for i := range 100 {
			s.set("a", fmt.Sprintf("x%d-%d", len(s.runs), i), "running")
		}
	}
	code := s.play([]string{"a"}, burst, burst, func(*scene) {}, func(*scene) {})
	matches(t, "(?:more runs of a came than a look shows; see fencepost runs list\n){2}", s.err.String())
	if n := len(s.lines()); code != 0 || n != 40 || s.asked["runs"] > 3*20 {
		t.Errorf("exit code %d: %d lines after %v", code, n, s.asked)
	}
	many := newScene(t)
	for i := range 1001 {
		many.set(fmt.Sprint("s", i), fmt.Sprint("r", i), "succeeded")
	}
	code = many.play(nil, func(*scene) {})
	matches(t, "there are more than 1000 schedules; the others are followed by name\n", many.err.String())
	if r := many.play(slices.Repeat([]string{"a"}, 51)); code != 0 || r != 2 {
		t.Errorf("exit codes %d, %d: %s", code, r, many.err.String())
	}
}

func TestTailAsJSON(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.play([]string{"a", "--json"}, func(s *scene) { s.set("a", "r1", "dead") })
	var got map[string]any
	if err := json.Unmarshal([]byte(s.out.String()), &got); err != nil {
		t.Fatalf("%v: %s", err, s.out.String())
	}
	delete(got, "seen")
	want := map[string]any{"schedule": "a", "id": "r1", "state": "dead", "scheduled_for": "1970-01-01T00:00:00Z", "attempt": 1.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
