package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

const readyTimeout = 2 * time.Second

var errReadyTimeout = errors.New("the database did not answer within 2 seconds")

// Health is the answer of both probes while all is well.
type Health struct {
	Status  string `json:"status" doc:"Always ok: anything else is a problem." example:"ok"`
	Version string `json:"version" doc:"The release that answers." example:"1.4.0"`
}

type healthOutput struct{ Body Health }

func (a *api) addHealth() {
	handle(a, operation{Operation: huma.Operation{
		OperationID: "getHealth", Method: http.MethodGet, Path: "/healthz", Tags: []string{"probes"},
		Summary: "Tell whether the process is up", Description: "Asks nobody else, so that a failing database restarts no process.",
	}}, a.health)
	handle(a, operation{Operation: huma.Operation{
		OperationID: "getReadiness", Method: http.MethodGet, Path: "/readyz", Tags: []string{"probes"},
		Summary: "Tell whether the database answers", Description: "A 503 problem while it does not answer within 2 seconds.",
	}}, a.readiness)
}

func (a *api) health(context.Context, uuid.UUID, *struct{}) (*healthOutput, error) {
	return &healthOutput{Health{Status: "ok", Version: a.version}}, nil
}

func (a *api) readiness(ctx context.Context, _ uuid.UUID, _ *struct{}) (*healthOutput, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errReadyTimeout)
	defer cancel()
	if err := a.ready(ctx); err != nil {
		return nil, &core.Error{Code: core.CodeUnavailable, Message: "the database does not answer", Err: err}
	}
	return &healthOutput{Health{Status: "ok", Version: a.version}}, nil
}
