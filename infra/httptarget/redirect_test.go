package httptarget_test

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/httptarget"
)

// redirect returns a server whose every path leads to location.
func redirect(t *testing.T, status int, location string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

const secretPayload = `{"url":%q,"headers":{"Authorization":"Bearer x","X-Api-Key":"y","Content-Type":"text/csv","User-Agent":"z"},"body":"a,b"}`

func TestRedirectToAnotherHostLosesTheHeaders(t *testing.T) {
	t.Parallel()
	url, got := record(t, 200, "")
	payload := fmt.Sprintf(secretPayload, redirect(t, 307, url)+"/?token=x")
	if _, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(payload)); err != nil {
		t.Fatal(err)
	}
	r := <-got
	for _, name := range []string{"Authorization", "X-Api-Key", "Referer"} {
		if v := r.Header.Get(name); v != "" {
			t.Errorf("%s was sent on", name)
		}
	}
	want := []string{"POST", "text/csv", "a,b", "Fencepost", "65537"}
	have := []string{r.Method, r.Header.Get("Content-Type"), r.Body, r.Header.Get("User-Agent"), r.Header.Get("Fencepost-Fence")}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("method, type, body, agent, fence (-want +got):\n%s", diff)
	}
}

func TestRedirectWayBackStaysWithoutTheHeaders(t *testing.T) {
	t.Parallel()
	var away string
	last := make(chan http.Header, 1)
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			last <- r.Header
			return
		}
		http.Redirect(w, r, away, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(home.Close)
	away = redirect(t, 307, home.URL+"/end")
	if _, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(fmt.Sprintf(secretPayload, home.URL))); err != nil {
		t.Fatal(err)
	}
	if h := <-last; h.Get("Authorization") != "" || h.Get("X-Api-Key") != "" {
		t.Errorf("another host decided where the headers go: %v", h)
	}
}

func TestRedirectOnOneHostKeepsTheHeaders(t *testing.T) {
	t.Parallel()
	last := make(chan http.Header, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			last <- r.Header
			return
		}
		http.Redirect(w, r, "/end", http.StatusPermanentRedirect)
	}))
	t.Cleanup(srv.Close)
	if _, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(fmt.Sprintf(secretPayload, srv.URL))); err != nil {
		t.Fatal(err)
	}
	h := <-last
	if diff := cmp.Diff([]string{"Bearer x", "y", ""}, []string{h.Get("Authorization"), h.Get("X-Api-Key"), h.Get("Referer")}); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestRedirectsAreFollowedFiveTimes(t *testing.T) {
	t.Parallel()
	for hops, ok := range map[int]bool{5: true, 6: false} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n := len(r.URL.Path) - 1; n < hops {
				http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
			}
		}))
		t.Cleanup(srv.Close)
		_, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(fmt.Sprintf(`{"url":"%s/"}`, srv.URL)))
		if (err == nil) != ok || core.IsPermanent(err) == ok {
			t.Errorf("%d redirects: error %v, want success: %v", hops, err, ok)
		}
	}
}

// The first hop is allowed by name of its network, the second is not.
func TestRedirectToAPrivateAddressIsRefused(t *testing.T) {
	t.Parallel()
	cfg := httptarget.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	for _, location := range []string{"http://127.0.0.2:1/", "http://169.254.169.254/latest/meta-data", "http://[::ffff:10.0.0.1]/", "//0.0.0.0/"} {
		payload := fmt.Sprintf(`{"url":%q}`, redirect(t, 302, location))
		_, err := httptarget.New(cfg).Execute(t.Context(), execution(payload))
		if !core.IsPermanent(err) || !strings.HasPrefix(err.Error(), "address refused: ") {
			t.Errorf("to %s: error %v, want a permanent refusal", location, err)
		}
	}
}

func TestRedirectIsRefused(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"ftp://example.com/", "http://user:hunter2@example.com/", "http:///x", "http://example.com:0/"} {
		payload := fmt.Sprintf(`{"url":%q}`, redirect(t, 302, location))
		_, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(payload))
		if !core.IsPermanent(err) || !strings.HasPrefix(err.Error(), "redirect refused: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("to %s: error %v, want a permanent refusal", location, err)
		}
	}
}

func TestRedirectFromHTTPSToHTTPIsRefused(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the plain server was reached") }))
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(secure.Close)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	_, err := open(t, httptarget.Config{RootCAs: roots}).Execute(t.Context(), execution(fmt.Sprintf(`{"url":%q}`, secure.URL)))
	if !core.IsPermanent(err) {
		t.Fatalf("error %v, want a permanent one", err)
	}
	if diff := cmp.Diff("redirect refused: it leads from https to http", err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
