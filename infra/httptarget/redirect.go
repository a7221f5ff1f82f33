package httptarget

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

const maxRedirects = 5

// redirectError says why a redirect was not followed; no other attempt will.
type redirectError string

func (e redirectError) Error() string { return "redirect refused: " + string(e) }

// checkRedirect is the client's CheckRedirect. The guard sees the new address
// when it is dialed.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return redirectError(fmt.Sprintf("more than %d in a row", maxRedirects))
	}
	if why := refuseURL(req.URL); why != "" {
		return redirectError("its location " + why)
	}
	crossed := false
	for _, before := range via {
		if before.URL.Scheme == "https" && req.URL.Scheme == "http" {
			return redirectError("it leads from https to http")
		}
		crossed = crossed || !sameHost(via[0].URL, before.URL)
	}
	req.Header.Del("Referer") // the query may hold a secret
	if crossed || !sameHost(via[0].URL, req.URL) {
		dropUserHeaders(req.Header)
	}
	return nil
}

// dropUserHeaders keeps what we set ourselves and what describes the body: any
// other header may be a credential meant for the first host.
func dropUserHeaders(h http.Header) {
	for name := range h {
		if name != "Content-Type" && !strings.HasPrefix(name, "Fencepost-") {
			delete(h, name)
		}
	}
	h.Set("User-Agent", userAgent)
}

// sameHost reports whether two URLs name one server. The step from http to
// https on the default ports stays on the server.
func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// port returns the port of u, or nothing if it is its scheme's default.
func port(u *url.URL) string {
	p := u.Port()
	if u.Scheme == "http" && p == "80" || u.Scheme == "https" && p == "443" {
		return ""
	}
	return p
}
