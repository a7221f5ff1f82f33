package httptarget_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/httptarget"
)

// seen is what a server got.
type seen struct {
	Method string
	Header http.Header
	Body   string
}

// record returns a server that answers with status and body, and a channel of
// what it got.
func record(t *testing.T, status int, body string) (string, <-chan seen) {
	t.Helper()
	got := make(chan seen, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read body: %v", err)
		}
		got <- seen{r.Method, r.Header, string(b)}
		w.WriteHeader(status)
		if _, err := io.WriteString(w, body); err != nil && r.Method != http.MethodHead {
			t.Errorf("write body: %v", err)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

func execution(payload string) core.Execution {
	return core.Execution{
		Key: core.RunKey{
			Region:     "local",
			ScheduleID: uuid.MustParse("01980000-0000-7000-8000-000000000001"),
			Slot:       time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC),
		},
		Attempt: 2,
		Fence:   65537,
		Payload: json.RawMessage(payload),
	}
}

// open returns a target that may call the loopback servers of the tests.
func open(t *testing.T, cfg httptarget.Config) *httptarget.Target {
	t.Helper()
	cfg.AllowPrivate = true
	target := httptarget.New(cfg)
	t.Cleanup(target.Close)
	return target
}

func TestExecuteSendsTheEnvelope(t *testing.T) {
	t.Parallel()
	url, got := record(t, 200, "done")
	e := execution(fmt.Sprintf(`{"url":%q}`, url))

	result, err := open(t, httptarget.Config{}).Execute(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"status":200,"body":"done"}`, string(result)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	r := <-got
	want := seen{
		Method: "POST",
		Header: http.Header{
			"Accept-Encoding":         nil,
			"Content-Type":            {"application/json"},
			"Fencepost-Attempt":       {"2"},
			"Fencepost-Fence":         {"65537"},
			"Fencepost-Run-Id":        {e.Key.ID()},
			"Fencepost-Schedule-Id":   {"01980000-0000-7000-8000-000000000001"},
			"Fencepost-Scheduled-For": {"2027-01-05T09:00:00Z"},
			"User-Agent":              {"Fencepost"},
		},
		Body: fmt.Sprintf(`{"run_id":%q,"schedule_id":"01980000-0000-7000-8000-000000000001",`+
			`"scheduled_for":"2027-01-05T09:00:00Z","attempt":2,"fence":65537,"payload":null}`, e.Key.ID()),
	}
	delete(want.Header, "Accept-Encoding")
	delete(r.Header, "Content-Length")
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestExecuteSendsTheBodyOfThePayload(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, payload, method, contentType, body string
	}{
		{"a string as it is", `"body":"a\nb"`, "POST", "text/plain; charset=utf-8", "a\nb"},
		{"an empty string", `"body":""`, "POST", "text/plain; charset=utf-8", ""},
		{"an object as JSON", `"method":"PUT","body":{"a": [1, 2.50]}`, "PUT", "application/json", `{"a":[1,2.50]}`},
		{"a number as JSON", `"body":12345678901234567890`, "POST", "application/json", "12345678901234567890"},
		{"with a type of its own", `"body":"<a/>","headers":{"content-type":"text/xml"}`, "POST", "text/xml", "<a/>"},
		{"none with GET", `"method":"GET"`, "GET", "", ""},
		{"none with HEAD", `"method":"HEAD"`, "HEAD", "", ""},
		{"one with GET if asked for", `"method":"GET","body":{}`, "GET", "application/json", "{}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url, got := record(t, 204, "")
			payload := fmt.Sprintf(`{"url":%q,%s}`, url, tt.payload)
			if _, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(payload)); err != nil {
				t.Fatal(err)
			}
			r := <-got
			want := []string{tt.method, tt.contentType, tt.body, "65537"}
			have := []string{r.Method, r.Header.Get("Content-Type"), r.Body, r.Header.Get("Fencepost-Fence")}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("method, type, body, fence (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecuteSendsTheHeadersOfThePayload(t *testing.T) {
	t.Parallel()
	url, got := record(t, 200, "")
	payload := fmt.Sprintf(`{"url":%q,"headers":{"authorization":"Bearer x","User-Agent":"mine"}}`, url)
	if _, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(payload)); err != nil {
		t.Fatal(err)
	}
	h := (<-got).Header
	if diff := cmp.Diff([]string{"Bearer x", "mine"}, []string{h.Get("Authorization"), h.Get("User-Agent")}); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestExecuteJudgesTheStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status            int
		failed, permanent bool
	}{
		{200, false, false}, {201, false, false}, {299, false, false},
		{304, true, true}, {301, true, true}, // without a Location there is nothing to follow
		{400, true, true}, {401, true, true}, {404, true, true}, {410, true, true},
		{408, true, false}, {425, true, false}, {429, true, false},
		{500, true, false}, {503, true, false}, {599, true, false},
		{600, true, true},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			t.Parallel()
			body := "why"
			if tt.status == 304 {
				body = ""
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(srv.Close)
			result, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(fmt.Sprintf(`{"url":%q}`, srv.URL)))
			if diff := cmp.Diff([]bool{tt.failed, tt.permanent}, []bool{err != nil, core.IsPermanent(err)}); diff != "" {
				t.Errorf("failed, permanent: %v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(fmt.Sprintf(`{"status":%d,"body":%q}`, tt.status, body), string(result)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if err != nil && body != "" && !strings.HasSuffix(err.Error(), fmt.Sprintf("status %d: why", tt.status)) {
				t.Errorf("the error %q does not tell status and body", err)
			}
		})
	}
}

func TestExecuteBoundsTheResult(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body, prefix string
	}{
		{"short", "ok", "ok"},
		{"longer than what is kept", "x" + strings.Repeat("é", 20<<10), "xéé"},
		{"far longer than what is read", strings.Repeat("x", 3<<20), "xx"},
		{"bytes that JSON escapes", strings.Repeat("\x01", 20<<10), "\x01\x01"},
		{"no text at all", "a\xff\xfe\x00b", "a\uFFFD\uFFFDb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{200, 500} {
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(status)
					_, _ = io.WriteString(w, tt.body) // the client may hang up
				}))
				t.Cleanup(srv.Close)
				raw, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(fmt.Sprintf(`{"url":%q}`, srv.URL)))
				if (err != nil) != (status == 500) || err != nil && (len(err.Error()) > core.MaxErrorBytes || !utf8.ValidString(err.Error())) {
					t.Errorf("status %d: bad error %q", status, err)
				}
				var result struct{ Body string }
				if err := json.Unmarshal(raw, &result); err != nil {
					t.Fatal(err)
				}
				if len(raw) > core.MaxResultBytes || strings.Contains(string(raw), `\u0000`) {
					t.Errorf("result of %d bytes does not fit the database", len(raw))
				}
				if len(tt.body) > core.MaxResultBytes && len(raw) < core.MaxResultBytes-64 {
					t.Errorf("only %d bytes of the result are used", len(raw))
				}
				if !strings.HasPrefix(result.Body, tt.prefix) || strings.Contains(tt.name, "longer") && strings.Contains(result.Body, "\uFFFD") {
					t.Errorf("body begins with %.20q, want %q", result.Body, tt.prefix)
				}
			}
		})
	}
}

func TestExecuteObeysItsDeadlines(t *testing.T) {
	t.Parallel()
	errSlow := errors.New("the attempt timed out")
	silent := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see the client go
		<-r.Context().Done()
	}
	halfway := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		cfg     httptarget.Config
		limit   time.Duration // of the context
		want    string
	}{
		{"the context's before the header", silent, httptarget.Config{}, 50 * time.Millisecond, "call url: the attempt timed out"},
		{"the context's within the body", halfway, httptarget.Config{}, 50 * time.Millisecond, "call url: the attempt timed out"},
		{"its own within the body", halfway, httptarget.Config{Timeout: 50 * time.Millisecond}, time.Minute, "call url: the call took longer than the target's limit"},
		{"the header's", silent, httptarget.Config{HeaderTimeout: 50 * time.Millisecond}, time.Minute,
			"call url: timed out while connecting or waiting for the response's header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(tt.handler)
			t.Cleanup(srv.Close)
			ctx, cancel := context.WithTimeoutCause(t.Context(), tt.limit, errSlow)
			defer cancel()
			_, err := open(t, tt.cfg).Execute(ctx, execution(fmt.Sprintf(`{"url":%q}`, srv.URL)))
			if err == nil || core.IsPermanent(err) {
				t.Fatalf("error %v, want one that may be retried", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if strings.Contains(tt.want, errSlow.Error()) && !errors.Is(err, errSlow) {
				t.Errorf("error %v lost the context's cause", err)
			}
		})
	}
}

func TestExecuteHidesAddressesInNetworkErrors(t *testing.T) {
	t.Parallel()
	hangUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(hangUp.Close)
	cutOff := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	}))
	t.Cleanup(cutOff.Close)
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	picky := httptest.NewUnstartedServer(http.NotFoundHandler())
	picky.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}
	picky.Config.ErrorLog = log.New(io.Discard, "", 0)
	picky.StartTLS()
	t.Cleanup(picky.Close)
	roots := x509.NewCertPool()
	roots.AddCert(picky.Certificate())
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	port := func(addr net.Addr) string { return fmt.Sprint(addr.(*net.TCPAddr).Port) }
	tests := []struct{ name, url, want string }{
		{"nobody listens", "http://localhost:" + port(closed.Addr()), "call url: connection refused"},
		{"the server hangs up", "http://localhost:" + port(hangUp.Listener.Addr()), "call url: the connection closed before a response came"},
		{"the body is cut off", "http://localhost:" + port(cutOff.Listener.Addr()), "call url: the connection broke before the response's end"},
		{"the certificate is unknown", "https://localhost:" + port(untrusted.Listener.Addr()), "call url: the certificate was not accepted: "},
		{"a client certificate is asked for", picky.URL, "call url: remote error: tls: "},
		{"the name does not exist", "http://no-such-host.invalid/", "call url: the host's name "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := open(t, httptarget.Config{RootCAs: roots}).Execute(t.Context(), execution(fmt.Sprintf(`{"url":%q}`, tt.url)))
			if err == nil || core.IsPermanent(err) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("error %q, want one that may be retried and begins with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "127.0.0.1:") || strings.Contains(err.Error(), "[::1]") {
				t.Errorf("error %q tells an address", err)
			}
		})
	}
}
