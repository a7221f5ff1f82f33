package core

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Execution is what a target gets to execute: one attempt of a run.
type Execution struct {
	Key        RunKey
	TenantID   uuid.UUID
	Name       string // of the schedule, as it was when the attempt began
	Cause      Cause
	Attempt    int
	Fence      int64 // hand it on: a store that compares it can refuse a late write
	Payload    json.RawMessage
	CoversFrom time.Time
	CoversTo   time.Time
}

// ScheduledFor returns the slot that the run is of, which is not always its key's.
func (e *Execution) ScheduledFor() time.Time { return nominal(e.Key, e.Cause) }

// Target executes jobs of one queue. Implementations are safe for concurrent
// use.
type Target interface {
	// Execute runs one attempt and returns the result to keep with the run,
	// valid JSON or nil. It returns soon after ctx is done: the attempt timed
	// out, lost its lease or was canceled, as context.Cause tells. An error is
	// retried unless Permanent made it.
	Execute(ctx context.Context, e Execution) (json.RawMessage, error)
	// Check refuses a payload that Execute could never use. The error names
	// the field below the payload, without its value.
	Check(payload json.RawMessage) error
}

// Handler is a target that is a function and takes every payload. Its errors are
// retried unless Permanent made them, not before the delay that RetryAfter names;
// a panic is a failure with its stack.
type Handler func(ctx context.Context, e Execution) (json.RawMessage, error)

// Execute calls h.
func (h Handler) Execute(ctx context.Context, e Execution) (json.RawMessage, error) { return h(ctx, e) }

// Check accepts every payload.
func (Handler) Check(json.RawMessage) error { return nil }

type executionKey struct{}

// WithExecution returns a context that carries e, as executors give it to targets.
func WithExecution(ctx context.Context, e Execution) context.Context {
	return context.WithValue(ctx, executionKey{}, e)
}

// ExecutionOf returns the attempt that a context of a target belongs to, for code
// below the target that wants its run or fence; false for any other context. The
// context's deadline is the attempt's.
func ExecutionOf(ctx context.Context) (Execution, bool) {
	e, ok := ctx.Value(executionKey{}).(Execution)
	return e, ok
}

type permanentError struct{ err error }

func (p permanentError) Error() string { return p.err.Error() }
func (p permanentError) Unwrap() error { return p.err }

// Permanent marks err as one that another attempt cannot cure: the run is dead
// at once. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// IsPermanent reports whether Permanent made err or one in its chain.
func IsPermanent(err error) bool {
	var p permanentError
	return errors.As(err, &p)
}

// MaxErrorBytes and MaxResultBytes bound what a run keeps of an attempt's error
// and result.
const (
	MaxErrorBytes  = 4 << 10
	MaxResultBytes = 16 << 10
)
