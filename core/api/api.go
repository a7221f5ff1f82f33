package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/core/worker"
)

// Config is what the API stands on. All but Workers, Inspect, Rate and Version is
// required.
type Config struct {
	Service *schedules.Service
	// Workers hands runs to workers outside. Nil leases none.
	Workers *worker.Desk
	Keys    core.KeyStore
	// Ready answers nil while the database does. It is asked by /readyz, with
	// 2 seconds to answer.
	Ready func(context.Context) error
	// Inspect looks at the database for /v1/info, with 2 seconds to answer. Nil
	// leaves the database out of it.
	Inspect func(context.Context) (core.DatabaseInfo, error)
	Clock   core.Clock
	// Observe is told of each request, with its route; nil is told nothing.
	Observe core.Observe
	Logger  *slog.Logger
	// Rate bounds the requests of each tenant. The zero value is no limit.
	Rate RateLimit
	// Version is shown by /healthz and /openapi.json. Defaults to dev.
	Version string
}

func (c *Config) check() error {
	switch {
	case c.Service == nil:
		return errors.New("api: Service is missing")
	case c.Keys == nil:
		return errors.New("api: Keys is missing")
	case c.Ready == nil:
		return errors.New("api: Ready is missing")
	case c.Clock == nil:
		return errors.New("api: Clock is missing")
	case c.Logger == nil:
		return errors.New("api: Logger is missing")
	}
	if err := c.Rate.check(); err != nil {
		return err
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	return nil
}

// api holds what the operations share.
type api struct {
	service *schedules.Service
	workers *worker.Desk
	keys    *keyring
	limits  *limiter
	ready   func(context.Context) error
	inspect func(context.Context) (core.DatabaseInfo, error)
	version string
	huma    huma.API
}

// New returns the API as a handler that is safe for concurrent use. It fails
// only when something that Config requires is missing.
func New(c Config) (http.Handler, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	mux := newRouter()
	a := &api{
		service: c.Service,
		workers: c.Workers,
		keys:    newKeyring(c.Keys, c.Clock),
		limits:  newLimiter(c.Clock, c.Rate),
		ready:   c.Ready,
		inspect: c.Inspect,
		version: c.Version,
		huma:    humago.New(mux, humaConfig(c.Version)),
	}
	a.addSchedules()
	a.addNamed()
	a.addBatch()
	a.addRuns()
	a.addWorkers()
	a.addRedrives()
	a.addLists()
	a.addExceptions()
	a.addCalendars()
	a.addLimits()
	a.addBackfills()
	a.addPreviews()
	a.addExplain()
	a.addHealth()
	a.addInfo()
	a.addKeys()
	spec, err := a.describe()
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(spec) // a client that went away misses nothing
	})
	return &guard{mux: mux, clock: c.Clock, logger: c.Logger, observe: c.Observe}, nil
}

// humaConfig leaves out what huma adds by itself: documentation pages, schema
// links, and the description, which it would marshal in a race of requests.
func humaConfig(version string) huma.Config {
	c := huma.DefaultConfig("Fencepost", version)
	c.CreateHooks = nil
	c.DocsPath, c.SchemasPath, c.OpenAPIPath = "", "", ""
	// Answers may gain fields; ScheduleInput says of itself that it takes none.
	c.AllowAdditionalPropertiesByDefault = true
	c.Transformers = []huma.Transformer{ownProblem}
	c.OnAddOperation = []huma.AddOpFunc{describeHeaders}
	c.Info.Description = "Cron as a service. Durations are strings such as 90s, 15m or 3d, times RFC 3339 in UTC."
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		keyScheme: {Type: "http", Scheme: "bearer", Description: "An API key: fp_..."},
	}
	return c
}

const keyScheme = "key"

// describe returns the OpenAPI document, without the models of huma's own
// errors, which never leave the house.
func (a *api) describe() ([]byte, error) {
	schemas := a.huma.OpenAPI().Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	return json.Marshal(a.huma.OpenAPI())
}

// ownProblem replaces the few errors that huma makes itself, since they repeat
// what was sent.
func ownProblem(hc huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	switch e.Status {
	case http.StatusRequestEntityTooLarge:
		return tooLarge("body", hc.Operation().MaxBodyBytes-1), nil
	case http.StatusRequestTimeout:
		return newProblem(e.Status, codeTimeout, "the body did not arrive in time"), nil
	case http.StatusBadRequest:
		return newProblem(e.Status, string(core.CodeInvalid), "the body is empty; send a JSON object"), nil
	case http.StatusUnprocessableEntity:
		return newProblem(e.Status, codeUnknownField, "the query has a parameter that this path does not know"), nil
	default:
		return newProblem(e.Status, string(core.CodeInternal), "the body could not be read"), nil
	}
}

// operation is a route with the scope that its callers need.
type operation struct {
	huma.Operation
	scope        string // empty: open to everybody
	anew         bool   // trust no key that is only remembered
	optionalBody bool   // whether the body may be left out
	maxBody      int64  // zero: as much as one schedule may have
}

// handle registers a route. The handler gets the tenant from the key and
// returns any error; what the caller sees of it is decided here.
func handle[I, O any](a *api, o operation, do func(context.Context, uuid.UUID, *I) (*O, error)) {
	problem := a.huma.OpenAPI().Components.Schemas.Schema(typeOf[Problem](), true, "")
	if o.Responses == nil {
		o.Responses = map[string]*huma.Response{}
	}
	o.Responses["default"] = &huma.Response{
		Description: "A problem",
		Content:     map[string]*huma.MediaType{problemType: {Schema: problem}},
		Headers: map[string]*huma.Header{"Retry-After": {
			Description: "After how many seconds to come again, of unavailable and rate_limited.", Schema: &huma.Schema{Type: huma.TypeInteger},
		}},
	}
	if o.RequestBody != nil {
		o.Middlewares = append(o.Middlewares, a.requireJSON)
		o.MaxBodyBytes = cmp.Or(o.maxBody, maxBodyBytes) + 1 // huma refuses a body that reaches its limit
		o.SkipValidateBody = true
	}
	if o.scope != "" {
		o.Middlewares = append(huma.Middlewares{a.require(o.scope, o.anew), a.checkQuery, a.checkOnce}, o.Middlewares...)
		o.RejectUnknownQueryParameters = true // a probe may carry anything
		o.Security = []map[string][]string{{keyScheme: {o.scope}}}
	}
	huma.Register(a.huma, o.Operation, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, tenantOf(ctx), in)
		if err != nil {
			return nil, report(ctx, o.Method, err)
		}
		return out, nil
	})
	if o.RequestBody != nil {
		o.RequestBody.Required = !o.optionalBody
		delete(o.RequestBody.Content, "application/octet-stream") // huma's guess for a raw body
	}
}

// refuse answers in a middleware, where huma does not.
func (a *api) refuse(hc huma.Context, err error) {
	_, w := humago.Unwrap(hc)
	report(hc.Context(), hc.Operation().Method, err).write(w)
}

// report makes the answer to an error and logs what the answer conceals.
func report(ctx context.Context, method string, err error) *Problem {
	p := problemOf(err)
	if p.Code == core.ErrUnknownOutcome.Kind && method == http.MethodGet {
		p = unavailable("the database does not answer; try again")
	}
	switch {
	case context.Cause(ctx) == context.Canceled:
		// The client left; whatever failed, it did so for that.
	case p.Status == http.StatusInternalServerError:
		loggerOf(ctx).ErrorContext(ctx, "request failed", "error", err)
	case p.Status == http.StatusServiceUnavailable:
		loggerOf(ctx).WarnContext(ctx, "request not served", "error", err)
	}
	return p
}
