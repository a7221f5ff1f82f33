package up_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/local/up"
)

// screen is what a person would see.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// instance is one start of the product on a data folder.
type instance struct {
	t      *testing.T
	screen *screen
	stop   func() error
	url    string
	key    string
}

func start(t *testing.T, dir, key string) *instance {
	t.Helper()
	return startWith(t, up.Config{DataDir: dir}, key)
}

// startWith starts what a config says; up gets what every start here has.
func startWith(t *testing.T, c up.Config, key string) *instance {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	i := &instance{t: t, screen: &screen{}}
	ready := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		c.Listen, c.AllowExec, c.Out, c.Version = "127.0.0.1:0", true, i.screen, "test"
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		c.LoadKey = func(string) string { return key }
		c.SaveProfile = func(url, key string) (string, error) {
			i.url, i.key = url, key
			close(ready)
			return "nowhere", nil
		}
		done <- up.Run(ctx, c)
	}()
	stopped := false
	i.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(20 * time.Second):
			return fmt.Errorf("still running 20 s after the end was asked for")
		}
	}
	t.Cleanup(func() { _ = i.stop() })
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("up ended: %v\n%s", err, i.screen)
	case <-time.After(60 * time.Second):
		t.Fatalf("up is not ready\n%s", i.screen)
	}
	return i
}

// call makes one request and decodes the answer.
func (i *instance) call(method, path, body string, want int) map[string]any {
	i.t.Helper()
	req, err := http.NewRequest(method, i.url+path, strings.NewReader(body))
	if err != nil {
		i.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+i.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		i.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != want {
		i.t.Fatalf("%s %s answered %d, want %d: %s", method, path, resp.StatusCode, want, text)
	}
	var out map[string]any
	_ = json.Unmarshal(text, &out) // an empty answer stays empty
	return out
}

// until polls for at most 45 s: a call of a queue that fails costs a dispatch lease,
// which is 30 s and no fault.
func (i *instance) until(what string, ok func() bool) {
	i.t.Helper()
	for range 450 {
		if ok() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	i.t.Fatalf("waited 45 s for %s\n%s", what, i.screen)
}

// dataDir returns a folder that the user whom the database runs as may enter;
// t.TempDir would not let it.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fencepost-up-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestUp is a newcomer's first minute: start, schedule a command, see it run,
// stop, start again on the same data.
func TestUp(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first := start(t, dir, "")
	s := first.call("POST", "/v1/schedules", `{"name":"hello","spec":"every 1s","job":{"queue":"exec","payload":{"command":"echo hello"}}}`, 201)
	id := s["id"].(string)
	first.until("two runs", func() bool { return strings.Count(first.screen.String(), "hello  succeeded") >= 2 })
	first.call("GET", "/readyz", "", 200)
	began := time.Now()
	if err := first.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %s, want at most 10 s", took)
	}
	if lines := strings.Count(strings.SplitN(first.screen.String(), "hello", 2)[0], "\n"); lines >= 10 {
		t.Errorf("the summary has %d lines, want under ten:\n%s", lines, first.screen)
	}

	second := start(t, dir, first.key)
	if second.key != first.key {
		t.Error("the second start made another key")
	}
	second.until("a run after the restart", func() bool { return strings.Contains(second.screen.String(), "hello  succeeded") })
	runs := second.call("GET", "/v1/schedules/"+id+"/runs?limit=100", "", 200)["items"].([]any)
	seen := map[any]bool{}
	for _, r := range runs {
		slot := r.(map[string]any)["scheduled_for"]
		if seen[slot] {
			t.Errorf("slot %v has two runs", slot)
		}
		seen[slot] = true
	}
	if len(runs) < 3 {
		t.Errorf("the history has %d runs", len(runs))
	}
	if err := second.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
}

// TestUpRefuses are the starts that cannot work; each says why in one line.
func TestUpRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config up.Config
		want   string
	}{
		"database down": {up.Config{DatabaseURL: "postgres://u:secret@127.0.0.1:1/db?sslmode=disable", Listen: "127.0.0.1:0"}, "127.0.0.1:1"},
		"unknown role":  {up.Config{Roles: []string{"janitor"}}, "roles"},
		"bad listen":    {up.Config{Listen: "127.0.0.1:99999"}, "--listen"},
		"no address":    {up.Config{Listen: "foo"}, "--listen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Out = io.Discard
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			err := up.Run(ctx, c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want an error with %q and without the password", err, c.want)
			}
		})
	}
}
