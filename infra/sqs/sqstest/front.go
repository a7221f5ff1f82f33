package sqstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Front stands before the emulator, counts its calls and lets a test answer in
// its place. Make it with NewFront. It is safe for concurrent use.
type Front struct {
	// URL is the front's own address, for Config.
	URL string

	behind  http.Handler
	mu      sync.Mutex
	address *url.URL // of the emulator; nil while there is none
	counts  map[string]int
	rules   map[string]Rule
}

// Rule answers a call in the emulator's place, or has it answer by forward.
type Rule func(w http.ResponseWriter, r *http.Request, forward http.Handler)

// NewFront returns a front that lets everything pass. It closes when the test
// ends, which ends the calls under way.
func NewFront(tb testing.TB) *Front {
	tb.Helper()
	f := &Front{counts: map[string]int{}, rules: map[string]Rule{}}
	f.set(tb, Endpoint(tb))
	f.behind = &httputil.ReverseProxy{
		Rewrite:      f.rewrite,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // one of both has gone
	}
	server := httptest.NewServer(http.HandlerFunc(f.serve))
	f.URL = server.URL
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return f
}

// NewStoppable is NewFront with an emulator of the front's own, which can be stopped.
// It has no queues yet.
func NewStoppable(tb testing.TB) *Stoppable {
	tb.Helper()
	s := &Stoppable{Front: NewFront(tb)}
	tb.Cleanup(s.Stop)
	s.Start(tb)
	return s
}

// Stoppable is a front whose emulator comes and goes, with all that it keeps.
type Stoppable struct {
	*Front
	own  *server
	port string // the first one's, which is part of a queue's URL
}

// Stop ends the emulator and waits for that: calls find nobody, and its queues and
// messages are gone.
func (s *Stoppable) Stop() {
	s.mu.Lock()
	own := s.own
	s.own, s.address = nil, nil
	s.mu.Unlock()
	if own != nil {
		_ = own.pipe.Close() // it may have gone already
		_ = own.ended()      // however it did
	}
}

// Start starts another emulator at the same address, which has no queues.
func (s *Stoppable) Start(tb testing.TB) {
	tb.Helper()
	own, err := start(cmp.Or(s.port, "0"))
	if err != nil {
		tb.Fatalf("sqstest: %v", err)
	}
	s.set(tb, own.address)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own, s.port = own, s.address.Port()
}

func (f *Front) set(tb testing.TB, address string) {
	tb.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		tb.Fatalf("sqstest: %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.address = parsed
}

func (f *Front) rewrite(r *httputil.ProxyRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.address == nil {
		panic(http.ErrAbortHandler)
	}
	r.SetURL(f.address)
}

func (f *Front) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // or the server would not see the caller go
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	f.mu.Lock()
	f.counts[action]++
	rule := f.rules[action]
	if rule == nil {
		rule = f.rules[""]
	}
	f.mu.Unlock()
	if rule == nil {
		f.behind.ServeHTTP(w, r)
		return
	}
	rule(w, r, f.behind)
}

// Set puts a rule before an action such as SendMessageBatch, or before all that
// have none if action is empty. Nil removes it.
func (f *Front) Set(action string, rule Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules[action] = rule
}

// Counts returns how many calls of each action came so far.
func (f *Front) Counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// Refuse answers every call with an error of SQS's.
func Refuse(status int, code string) Rule {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.sqs#" + code, "message": "as the test wants it"}) // or the caller has gone
	}
}

// Drop breaks the connection before the emulator sees the call.
func Drop(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// LoseAnswer has the emulator do what is asked and breaks the connection then.
func LoseAnswer(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
	forward.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Again has the emulator do what is asked and drops its answer. The request can be
// forwarded once more.
func Again(r *http.Request, forward http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	again := r.Clone(r.Context())
	again.Body, r.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	forward.ServeHTTP(httptest.NewRecorder(), again)
}

// Entry is what tests need to know of an entry of a batch.
type Entry struct {
	ID    string `json:"Id"`
	Body  string `json:"MessageBody"`
	Group string `json:"MessageGroupId"`
}

// Failure is SQS's answer for one entry.
type Failure struct {
	ID          string `json:"Id"`
	Code        string
	SenderFault bool
	Message     string
}

// FailEntries refuses the entries of a batch for which fail returns a code, and
// forwards the others. A code that begins with "!" is the sender's fault.
func FailEntries(fail func(Entry) string) Rule {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		var in struct {
			QueueUrl string //nolint:revive // SQS's name
			Entries  []json.RawMessage
		}
		if json.NewDecoder(r.Body).Decode(&in) != nil {
			panic(http.ErrAbortHandler)
		}
		var failed []Failure
		var rest []json.RawMessage
		for _, raw := range in.Entries {
			var e Entry
			_ = json.Unmarshal(raw, &e) // it was JSON a moment ago
			code := fail(e)
			if code == "" {
				rest = append(rest, raw)
				continue
			}
			bare, sender := strings.CutPrefix(code, "!")
			failed = append(failed, Failure{e.ID, bare, sender, "as the test wants it"})
		}
		var out struct {
			Successful []json.RawMessage
			Failed     []Failure
		}
		if in.Entries = rest; len(rest) > 0 {
			body, _ := json.Marshal(in) // as it came
			again := r.Clone(r.Context())
			again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			answer := httptest.NewRecorder()
			forward.ServeHTTP(answer, again)
			_ = json.Unmarshal(answer.Body.Bytes(), &out) // an empty answer stays empty
		}
		out.Failed = append(out.Failed, failed...)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_ = json.NewEncoder(w).Encode(out) // or the caller has gone
	}
}
