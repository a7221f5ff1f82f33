package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core/api"
)

// Error is the API's refusal of a request, as a person reads it.
type Error struct {
	// Problem is the document that the API sent.
	Problem api.Problem
	// RequestID finds the request in the API's log.
	RequestID string
	// RetryAfter is how long the API asks to wait; zero if it does not say.
	RetryAfter time.Duration
}

// Error returns every fault on one line, and what to do where the API cannot
// know it.
func (e *Error) Error() string {
	p := &e.Problem
	if len(p.Errors) > 0 {
		faults := make([]string, len(p.Errors))
		for i, f := range p.Errors {
			faults[i] = f.Field + ": " + f.Message
		}
		return strings.Join(faults, "; ")
	}
	text := p.Detail
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	switch {
	case p.Status == http.StatusUnauthorized:
		return text + "; set " + EnvKey + ", or start the API with fencepost up"
	case p.Status >= http.StatusInternalServerError && e.RequestID != "":
		return text + " (request id " + e.RequestID + ")"
	default:
		return text
	}
}

// Unwrap returns the problem, so that errors.As finds it in the chain.
func (e *Error) Unwrap() error { return &e.Problem }

// IsCode reports whether err is a refusal of the API with this stable code.
func IsCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Problem.Code == code
}

// IsRefusal reports whether the API found fault with this one request, so that
// another one may fare better: a wrong field or a conflict, but neither a wrong
// key nor a failure of the API.
func IsRefusal(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Problem.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// refused makes an error of an answer that is no success.
func (c *Client) refused(w *http.Response, text []byte) error {
	e := &Error{RequestID: w.Header.Get("X-Request-Id"), RetryAfter: retryAfter(w.Header)}
	if err := json.Unmarshal(text, &e.Problem); err != nil || e.Problem.Code == "" || e.Problem.Status != w.StatusCode {
		return c.foreign(": " + w.Status)
	}
	return e
}

// foreign says that an answer came from something else, such as a proxy.
func (c *Client) foreign(status string) error {
	return fmt.Errorf("the answer of %s is not from Fencepost%s", c.base, status)
}
