package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/core/worker"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/database/dbtest"
)

const region = "local"

func TestMain(m *testing.M) {
	code := dbtest.Main(m, func(ctx context.Context, url string) error {
		if _, err := database.Migrate(ctx, url, region, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		db, err := database.Open(ctx, database.Config{URL: url, Region: region})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.EnsurePartitions(ctx)
	})
	if testing.Verbose() {
		printAnswers()
	}
	os.Exit(code)
}

// fakeStore answers every read with one schedule, or every call with err.
type fakeStore struct {
	core.ScheduleStore
	err   error
	block bool // wait for the context to end
	panic bool

	overdue []core.Overdue
	alerts  []core.Alert

	mutex     sync.Mutex
	scheduled core.Scheduled
}

func (s *fakeStore) fail(ctx context.Context) error {
	if s.panic {
		panic("the store is broken")
	}
	if s.block {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.err
}

func (s *fakeStore) Now(ctx context.Context) (time.Time, error) {
	return time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC), s.fail(ctx)
}

func (s *fakeStore) Create(ctx context.Context, c core.Schedule, nextAt, _ time.Time) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.scheduled = core.Scheduled{Schedule: c, Timer: core.Timer{FireAt: nextAt}}
	return s.fail(ctx)
}

func (s *fakeStore) Get(ctx context.Context, _, _ uuid.UUID) (core.Scheduled, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.scheduled, s.fail(ctx)
}

func (s *fakeStore) Overdue(ctx context.Context, _ uuid.UUID) ([]core.Overdue, error) {
	return s.overdue, s.fail(ctx)
}

func (s *fakeStore) Alerts(ctx context.Context, _ uuid.UUID) ([]core.Alert, error) {
	return s.alerts, s.fail(ctx)
}

func (s *fakeStore) Apply(ctx context.Context, _ uuid.UUID, _ core.Edit) error { return s.fail(ctx) }

// fakeKeys only finds keys and counts how often it is asked.
type fakeKeys struct {
	core.KeyStore
	err error

	mutex sync.Mutex
	asked int
	keys  map[[32]byte]core.APIKey
}

func (k *fakeKeys) FindKey(_ context.Context, hash [32]byte) (core.APIKey, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.asked++
	key, ok := k.keys[hash]
	if !ok {
		return core.APIKey{}, core.ErrNotFound
	}
	return key, k.err
}

func (k *fakeKeys) MarkKeyUsed(context.Context, [32]byte) error { return k.err }

func (k *fakeKeys) AddKey(_ context.Context, key core.APIKey) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.keys == nil {
		k.keys = map[[32]byte]core.APIKey{}
	}
	k.keys[key.Hash] = key
	return nil
}

// testTarget takes every payload but an object with a bad url.
type testTarget struct{ core.Target }

func (testTarget) Check(payload json.RawMessage) error {
	var p struct{ URL string }
	if json.Unmarshal(payload, &p) == nil && p.URL == "bad" {
		return core.Invalid("url", "must begin with http:// or https://")
	}
	return nil
}

// manualClock is a clock whose time stands still until a test moves it.
type manualClock struct {
	clock.System
	mutex sync.Mutex
	now   time.Time
}

func (c *manualClock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

func (c *manualClock) advance(d time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(d)
}

// lockedBuffer lets handlers log while the test reads.
type lockedBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}

// server is an API with what stands behind it.
type server struct {
	testing.TB
	http.Handler
	keys  core.KeyStore
	desk  *worker.Desk // nil without a store that runs anything
	log   *lockedBuffer
	clock *manualClock
	key   string // with the scope admin
}

func newServer(t testing.TB, store core.ScheduleStore, keys core.KeyStore, change func(*api.Config)) *server {
	t.Helper()
	s := &server{TB: t, keys: keys, log: &lockedBuffer{}, clock: &manualClock{now: time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC)}}
	c := api.Config{
		Service: schedules.New(store, region, map[string]core.Target{"test": testTarget{}, "http": testTarget{}, "narrow": testTarget{}, "wide": testTarget{}}),
		Keys:    keys, Clock: s.clock, Version: "1.2.3",
		Ready:  func(context.Context) error { return nil },
		Logger: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if workers, ok := store.(worker.Store); ok {
		desk, err := worker.New(worker.Config{Store: workers, Clock: clock.System{}, Queues: []string{"test"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(desk.Close)
		c.Workers, s.desk = desk, desk
	}
	if change != nil {
		change(&c)
	}
	handler, err := api.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Handler = described{TB: t, Handler: handler}
	s.key = s.addKey(uuid.New(), "admin")
	return s
}

func newFake(t testing.TB, store *fakeStore) *server {
	t.Helper()
	return newServer(t, store, &fakeKeys{}, nil)
}

func (s *server) addKey(tenant uuid.UUID, scopes ...string) string {
	s.Helper()
	key, hash := api.NewKey()
	if err := s.keys.AddKey(s.Context(), core.APIKey{Hash: hash, TenantID: tenant, Name: "test", Scopes: scopes}); err != nil {
		s.Fatal(err)
	}
	return key
}

// as returns the server as the holder of another key sees it.
func (s *server) as(key string) *server {
	other := *s
	other.key = key
	return &other
}

// send sends a request; a body that is no reader is sent as it is.
func (s *server) send(method, path string, body any, headers ...string) *httptest.ResponseRecorder {
	s.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	case io.Reader:
		reader = b
	default:
		text, err := json.Marshal(b)
		if err != nil {
			s.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	r := httptest.NewRequestWithContext(s.Context(), method, path, reader)
	if s.key != "" {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// want checks the status of an answer and decodes it.
func want[T any](s *server, w *httptest.ResponseRecorder, status int) T {
	s.Helper()
	var v T
	if w.Code != status {
		s.Fatalf("status is %d, want %d: %s", w.Code, status, w.Body)
	}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
			s.Fatalf("decode %s: %v", w.Body, err)
		}
	}
	return v
}

// problem checks that an answer is a problem with the status and returns it.
func problem(s *server, w *httptest.ResponseRecorder, status int) api.Problem {
	s.Helper()
	p := want[api.Problem](s, w, status)
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		s.Errorf("Content-Type is %q", got)
	}
	if p.Status != status || p.Type != "about:blank" || p.Title != http.StatusText(status) || p.Code == "" || p.Detail == "" {
		s.Errorf("problem is not whole: %s", w.Body)
	}
	return p
}
