package api

import (
	"net/http"
	"strings"
)

// byName is the path below which schedules have their names. A name may have
// slashes, encoded or not.
const byName = "/v1/schedules/by-name/"

// router is two muxes. One mux would refuse by-name/{name...} beside {id}/runs,
// since by-name/runs is both: here what begins with by-name is a name.
type router struct {
	ids, names *http.ServeMux
}

func newRouter() *router { return &router{http.NewServeMux(), http.NewServeMux()} }

// HandleFunc registers a route. The parameter of a route by name takes the whole
// rest of the path.
func (m *router) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	if _, path, _ := strings.Cut(pattern, " "); strings.HasPrefix(path, byName) {
		m.names.HandleFunc(strings.Replace(pattern, "{name}", "{name...}", 1), handler)
		return
	}
	m.ids.HandleFunc(pattern, handler)
}

// Handler returns the handler of a request and the pattern that it matches, if
// any, as http.ServeMux does.
func (m *router) Handler(r *http.Request) (http.Handler, string) { return m.of(r).Handler(r) }

// ServeHTTP serves a request that has a route.
func (m *router) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.of(r).ServeHTTP(w, r) }

func (m *router) of(r *http.Request) *http.ServeMux {
	if strings.HasPrefix(r.URL.EscapedPath(), byName) {
		return m.names
	}
	return m.ids
}
