package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fencepost/fencepost/core"
)

// checkQuery refuses a query of which a part would be dropped: the router takes the
// first of a parameter that is there twice, and nothing for a broken escape. A
// filter that is dropped lists what nobody asked for.
func (a *api) checkQuery(hc huma.Context, next func(huma.Context)) {
	u := hc.URL()
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err == nil {
			_, err = url.QueryUnescape(rawValue)
		}
		if err != nil {
			a.refuse(hc, core.Invalid("", "the query has a %% that is no escape; write it as %%25"))
			return
		}
		if seen[name] && isParam(hc.Operation(), "query", name) { // any other is unknown
			a.refuse(hc, core.Invalid(name, "is there twice"))
			return
		}
		seen[name] = true
	}
	next(hc)
}

// isParam reports whether an operation has a parameter.
func isParam(o *huma.Operation, in, name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p *huma.Param) bool { return p.In == in && p.Name == name })
}

// The conditional headers of RFC 9110 that no path takes.
var foreignConditions = [...]string{"If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}

// ignoredCondition returns the header, if any, with which a request that changes
// something demands a condition that its path does not look at: carried out
// without it, it could do what its sender made sure it would not.
func ignoredCondition(r *http.Request, o *huma.Operation) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return ""
	}
	if r.Header.Get(matchHeader) != "" && !isParam(o, "header", matchHeader) {
		return matchHeader
	}
	for _, name := range foreignConditions {
		if r.Header.Get(name) != "" {
			return name
		}
	}
	return ""
}
