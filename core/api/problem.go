package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/fencepost/fencepost/core"
)

// The codes of problems that arise before the core is asked. The others are the
// Kind or Code of a core.Error.
const (
	codeUnknownField     = "unknown_field"
	codeForbidden        = "forbidden"
	codeTooLarge         = "too_large"
	codeMethodNotAllowed = "method_not_allowed"
	codeMediaType        = "unsupported_media_type"
	codeTimeout          = "timeout"
	codeRateLimited      = "rate_limited"
	codeOwnKey           = "own_key"
)

// problemType is the media type of RFC 9457.
const problemType = "application/problem+json"

// Problem is the body of every error. Code is for programs and never changes
// its meaning; Title and Detail are for people. No part repeats a value of the
// request.
type Problem struct {
	Type   string `json:"type" doc:"Always about:blank: the code tells problems apart." example:"about:blank"`
	Title  string `json:"title" doc:"The meaning of the status." example:"Unprocessable Entity"`
	Status int    `json:"status" doc:"The HTTP status." example:"422"`
	Code   string `json:"code" doc:"The stable name of the problem." example:"invalid"`
	Detail string `json:"detail" doc:"What is wrong and what helps." example:"must be a string"`
	Field  string `json:"field,omitempty" doc:"The field at fault, the first one if several are." example:"job.queue"`
	// Token, Position and Hint say where in a text the fault is.
	Token    string `json:"token,omitempty" doc:"The part of the field at fault, cut after 40 bytes." example:"60"`
	Position int    `json:"position,omitempty" doc:"The position of its first byte in the field, from 1." example:"1"`
	Hint     string `json:"hint,omitempty" doc:"What to write instead." example:"use 0 to 59"`
	// Current is why a thing was left alone.
	Current string `json:"current,omitempty" doc:"What the thing is by now: its version for version_mismatch, the state of the run for run_final." example:"4"`
	// Errors lists every field at fault when they are several.
	Errors []FieldError `json:"errors,omitempty" nullable:"false" doc:"Every field at fault, if they are several."`

	header http.Header
}

// FieldError is one of several faults of a request, so that all can be
// mended at once.
type FieldError struct {
	Field   string `json:"field" doc:"The path of the field." example:"job.queue"`
	Code    string `json:"code" doc:"The stable name of the fault." example:"unknown_field"`
	Message string `json:"message" doc:"What is wrong with it." example:"is required"`
}

// Error returns the field and the detail on one line.
func (p *Problem) Error() string {
	if p.Field != "" {
		return p.Field + ": " + p.Detail
	}
	return p.Detail
}

// GetStatus tells huma with which HTTP status to send the problem.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders tells huma which headers to send with it, such as Retry-After.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType tells huma to send the problem as application/problem+json, whatever was asked for.
func (p *Problem) ContentType(string) string { return problemType }

func newProblem(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// with adds a header to the answer and returns p.
func (p *Problem) with(key, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(key, value)
	return p
}

// refusal makes one problem of the faults of a request's fields.
func refusal(faults []FieldError) *Problem {
	first := faults[0]
	p := newProblem(http.StatusUnprocessableEntity, first.Code, first.Message)
	p.Field = first.Field
	if len(faults) > 1 {
		p.Errors = faults
	}
	return p
}

// statusOf is the one place where a code becomes an HTTP status.
func statusOf(code core.Code) int {
	switch code {
	case core.CodeInvalid:
		return http.StatusUnprocessableEntity
	case core.CodeNotFound:
		return http.StatusNotFound
	case core.CodeConflict, core.CodeStale:
		return http.StatusConflict
	case core.CodePrecondition:
		return http.StatusPreconditionFailed
	case core.CodeUnauthorized:
		return http.StatusUnauthorized
	case core.CodeThrottled:
		return http.StatusTooManyRequests
	case core.CodeUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// problemOf translates any error. Its cause stays out of the answer.
func problemOf(err error) *Problem {
	var known *Problem
	if errors.As(err, &known) {
		return known
	}
	var e *core.Error
	if !errors.As(err, &e) {
		if timedOut(err) {
			return unavailable("the request took too long; try again")
		}
		return internal()
	}
	if e.Code == core.CodeInternal || statusOf(e.Code) == http.StatusInternalServerError {
		return internal()
	}
	p := newProblem(statusOf(e.Code), stableCode(e), e.Message)
	p.Field, p.Current = e.Field, e.Current
	if e.Place != nil {
		p.Token, p.Position, p.Hint = e.Place.Token, e.Place.Position, e.Place.Hint
	}
	switch e.Code {
	case core.CodeUnavailable, core.CodeThrottled:
		p.with("Retry-After", "1")
	case core.CodeUnauthorized:
		p.with("WWW-Authenticate", challenge)
	case core.CodePrecondition:
		if e.Current != "" {
			p.with("ETag", strconv.Quote(e.Current))
		}
	}
	return p
}

// stableCode prefers the kind, but not where it tells how the inside is built.
func stableCode(e *core.Error) string {
	switch {
	case e.Kind == core.ErrUnknownOutcome.Kind: // its own, not that of its cause
		return e.Kind
	case e.Kind == core.ErrKeyReused.Kind:
		return e.Kind
	case e.Kind == "", e.Code == core.CodeUnavailable, e.Code == core.CodeInvalid, e.Code == core.CodeThrottled:
		return string(e.Code)
	default:
		return e.Kind
	}
}

func internal() *Problem {
	return newProblem(http.StatusInternalServerError, string(core.CodeInternal), "something went wrong on our side; the log has it under the request id")
}

func unavailable(detail string) *Problem {
	return newProblem(http.StatusServiceUnavailable, string(core.CodeUnavailable), detail).with("Retry-After", "1")
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, errRequestTimeout)
}

// write answers with p where huma is not in charge.
func (p *Problem) write(w http.ResponseWriter) {
	for key, values := range p.header {
		w.Header()[key] = values
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	// The client may be gone, and there is nobody else to tell.
	_ = json.NewEncoder(w).Encode(p)
}
