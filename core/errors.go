package core

import (
	"errors"
	"fmt"
)

// Code classifies an error for its caller: it alone decides an HTTP status and
// whether trying again can help.
type Code string

// The codes. A caller that meets an error without one treats it as CodeInternal.
const (
	CodeInvalid      Code = "invalid"      // the request is wrong; sending it again cannot help
	CodeNotFound     Code = "not_found"    // no such thing, or it is another tenant's
	CodeConflict     Code = "conflict"     // the state of the thing forbids it
	CodeStale        Code = "stale"        // the caller's fence or version is not the current one
	CodePrecondition Code = "precondition" // the version that the caller demands is not the current one
	CodeUnauthorized Code = "unauthorized" // no key, a wrong key or a scope that does not reach
	CodeThrottled    Code = "throttled"    // too much at once; later it works
	CodeUnavailable  Code = "unavailable"  // the database or the queue does not answer
	CodeInternal     Code = "internal"     // a fault of ours; details stay in the log
)

// Error is an error with a code. Message is written for the user of the API:
// it names the remedy and never repeats a value that was sent.
type Error struct {
	Code Code
	// Kind is the stable name of this very error, such as run_live. Empty
	// means that the code says enough.
	Kind string
	// Field is the path of the offending field, such as job.http.url.
	Field   string
	Message string
	// Place is the part of a text field that Message is about; nil for any other
	// error.
	Place *Place
	// Current is what the thing is by now where that is the reason: its version,
	// or the state of a run. Empty for any other error.
	Current string
	Err     error
}

// Place is the part of a text that was refused, for programs that show it where
// it stands. Message says the same in a sentence.
type Place struct {
	Token    string // the part itself, cut after 40 bytes
	Position int    // of its first byte, from 1
	Hint     string // what to write instead
}

// Error returns field, message and cause on one line.
func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause, which may be nil.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target has the same code and the same kind, so that the
// sentinels below match their wrapped forms.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind != "" && t.Kind == e.Kind && t.Code == e.Code
}

// The expected outcomes, to be compared with errors.Is.
var (
	ErrNotFound = &Error{Code: CodeNotFound, Kind: "not_found", Message: "no such schedule or run"}
	// ErrStaleFence answers a write that names a fence which is no longer the
	// run's: another holder took over, or the run has ended otherwise.
	ErrStaleFence = &Error{Code: CodeStale, Kind: "stale_fence", Message: "the fence is not the run's current one"}
	// ErrRunLive answers a trigger while a run is alive and the schedule's
	// overlap policy does not allow two.
	ErrRunLive = &Error{Code: CodeConflict, Kind: "run_live", Message: "a run of this schedule is alive; wait for it or set overlap to allow"}
	// ErrRunFinal answers a cancel of a run that has ended otherwise.
	ErrRunFinal = &Error{Code: CodeConflict, Kind: "run_final", Message: "the run has ended; its state tells how"}
	// ErrRunNotDead answers a redrive of a run that is alive or ended otherwise.
	ErrRunNotDead = &Error{Code: CodeConflict, Kind: "run_not_dead", Message: "only dead runs can be redriven"}
	// ErrSuperseded answers a redrive of a run after which others were admitted,
	// whose intervals of data begin where its own does.
	ErrSuperseded = &Error{Code: CodeConflict, Kind: "run_superseded", Message: "a later run of this schedule was admitted, and covers this one's interval of data; trigger the schedule instead"}
	// ErrSlotClaimed answers an exception for a slot that has been dealt with.
	ErrSlotClaimed = &Error{Code: CodeConflict, Kind: "slot_claimed", Field: "slot", Message: "has been dealt with, or is due; exceptions are for slots to come"}
	// ErrKeyReused answers another request under the same idempotency key.
	ErrKeyReused = &Error{Code: CodeInvalid, Kind: "idempotency_mismatch", Field: "Idempotency-Key", Message: "was sent with another request within 24 hours; use a new key for a new request"}
	// ErrMadeAndDeleted answers a request sent again whose schedule is gone.
	ErrMadeAndDeleted = &Error{Code: CodeConflict, Kind: "already_deleted", Message: "the schedule that this Idempotency-Key made has been deleted; use a new key to make another"}
	// ErrNameTaken answers a schedule whose name another one of the tenant has.
	ErrNameTaken = &Error{Code: CodeConflict, Kind: "name_taken", Field: "name", Message: "another schedule has this name; choose another or edit that one"}
	// ErrQuotaExceeded answers what would take a tenant beyond its limits.
	ErrQuotaExceeded = &Error{Code: CodeConflict, Kind: "quota_exceeded", Message: "the tenant has as much as it may"}
	// ErrChanged says that a guarded write found its row changed meanwhile:
	// read again, plan again, write again.
	ErrChanged = &Error{Code: CodeStale, Kind: "changed", Message: "the schedule changed meanwhile; read it again"}
	// ErrUnknownOutcome marks a write that may or may not have happened: the
	// connection broke after it was sent.
	ErrUnknownOutcome = &Error{Code: CodeUnavailable, Kind: "unknown_outcome", Message: "the connection broke before the outcome was known"}
	// ErrBadRow marks a statement that the database refused for a value in it
	// (SQLSTATE class 22 or 23): a smaller batch finds which.
	ErrBadRow = &Error{Code: CodeInvalid, Kind: "bad_row", Message: "the database refused a value of the batch"}
	// ErrQueueFull answers a publish that found no room. The run stays queued
	// in the database and is published again by the sweep.
	ErrQueueFull = &Error{Code: CodeThrottled, Kind: "queue_full", Message: "the queue has no room"}
)

// Invalid returns an error of CodeInvalid for the named field.
func Invalid(field, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Kind: "invalid", Field: field, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of the first Error in err's chain, CodeInternal for
// any other error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
