package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/worker"
)

// requestTimeout bounds what one request may take once its headers are read.
const requestTimeout = 10 * time.Second

// leaseSuffix ends the path whose requests may wait besides.
const leaseSuffix = "/lease"

var errRequestTimeout = errors.New("the request took longer than 10 seconds")

// requestIDHeader names the answer's header that the log can be searched for.
const requestIDHeader = "X-Request-Id"

// guard stands before every route: it names, limits and logs the request, turns
// a panic into an answer, and makes problems of what the mux refuses.
type guard struct {
	mux     *router
	clock   core.Clock
	logger  *slog.Logger
	observe core.Observe
}

// ServeHTTP answers one request.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := g.clock.Now()
	limit := requestTimeout
	if strings.HasSuffix(r.URL.Path, leaseSuffix) {
		limit += worker.MaxWait
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, errRequestTimeout)
	defer cancel()
	id := rand.Text()
	logger := g.logger.With("request_id", id)
	r = r.WithContext(context.WithValue(ctx, loggerKey{}, logger))
	answer := &answer{ResponseWriter: w}
	answer.Header().Set(requestIDHeader, id)
	answer.Header().Set("X-Content-Type-Options", "nosniff")
	answer.Header().Set("Cache-Control", "no-store")
	defer func() {
		g.observe.Tell(core.Event{Kind: core.EventRequest, What: r.Pattern, N: answer.status, Took: g.clock.Now().Sub(begin)})
		logger.DebugContext(ctx, "request served", "method", r.Method, "route", r.Pattern, "status", answer.status,
			"duration_seconds", g.clock.Now().Sub(begin).Seconds())
	}()
	defer g.rescue(ctx, answer, logger)
	g.route(answer, r)
}

// rescue answers a request whose handler panicked. The server's own way to
// abort a connection is let through.
func (g *guard) rescue(ctx context.Context, w *answer, logger *slog.Logger) {
	reason := recover()
	if reason == nil {
		return
	}
	if reason == http.ErrAbortHandler {
		panic(reason)
	}
	logger.ErrorContext(ctx, "request panicked", "reason", reason, "stack", string(debug.Stack()))
	if w.status != 0 {
		// Part of the answer is out: only a broken connection tells the client.
		panic(http.ErrAbortHandler)
	}
	internal().write(w)
}

func (g *guard) route(w *answer, r *http.Request) {
	if limit := bodyLimit(r); r.ContentLength > limit {
		tooLarge("body", limit).write(w)
		return
	}
	// The mux would redirect to the clean path, and clients turn a redirected
	// POST into a GET.
	if p := r.URL.EscapedPath(); p != path.Clean(p) {
		noRoute().write(w)
		return
	}
	handler, pattern := g.mux.Handler(r)
	if pattern != "" {
		g.mux.ServeHTTP(w, r)
		return
	}
	// The mux knows which methods a path has, and tells only by answering.
	refused := &discard{header: http.Header{}}
	handler.ServeHTTP(refused, r)
	if refused.status != http.StatusMethodNotAllowed {
		noRoute().write(w)
		return
	}
	newProblem(http.StatusMethodNotAllowed, codeMethodNotAllowed, "this path has no such method; the Allow header lists those it has").
		with("Allow", refused.header.Get("Allow")).write(w)
}

func noRoute() *Problem {
	return newProblem(http.StatusNotFound, core.ErrNotFound.Kind, "no such path; /openapi.json lists them")
}

// bodyLimit returns how many bytes the body of a request may have, before it is
// known whether the path has the method.
func bodyLimit(r *http.Request) int64 {
	if r.URL.Path == batchPath {
		return maxBatchBytes
	}
	return maxBodyBytes
}

func tooLarge(what string, limit int64) *Problem {
	return newProblem(http.StatusRequestEntityTooLarge, codeTooLarge, fmt.Sprintf("the %s is larger than %d KiB", what, limit>>10))
}

// answer remembers what was sent. A client that went away is no error to the
// handler, which can do nothing about it; huma would panic.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader remembers the first final status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write never fails.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	_, _ = a.ResponseWriter.Write(b)
	return len(b), nil
}

// Unwrap lets http.ResponseController find the writer below.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// discard is a writer that keeps only what the mux says in its headers.
type discard struct {
	header http.Header
	status int
}

// Header returns the headers set so far.
func (d *discard) Header() http.Header { return d.header }

// WriteHeader keeps the status.
func (d *discard) WriteHeader(status int) { d.status = status }

// Write drops b.
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

type loggerKey struct{}

// loggerOf returns the request's logger, which carries its id.
func loggerOf(ctx context.Context) *slog.Logger {
	if logger, ok := ctx.Value(loggerKey{}).(*slog.Logger); ok {
		return logger
	}
	return slog.New(slog.DiscardHandler)
}
