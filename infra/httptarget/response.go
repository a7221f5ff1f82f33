package httptarget

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencepost/fencepost/core"
)

const (
	keepBytes    = 16 << 10 // of a response's body
	discardBytes = 1 << 20  // read after that so that the connection can be used again
	errorBytes   = 1 << 10  // of the body inside an error
)

var errBodyBroke = errors.New("call url: the connection broke before the response's end")

type result struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// readResponse turns a response into the run's result and the attempt's error.
func readResponse(ctx context.Context, resp *http.Response) (json.RawMessage, error) {
	body, readErr := readBody(resp.Body)
	raw, err := encode(result{Status: resp.StatusCode, Body: body})
	if err != nil {
		return nil, err
	}
	success := resp.StatusCode >= 200 && resp.StatusCode < 300
	switch {
	case !success:
		return raw, statusError(resp, body)
	case readErr != nil && ctx.Err() != nil:
		return raw, fmt.Errorf("call url: %w", context.Cause(ctx))
	case readErr != nil:
		return raw, errBodyBroke
	}
	return raw, nil
}

// statusError makes the error of an answer that is not a success.
func statusError(resp *http.Response, body string) error {
	status := resp.StatusCode
	text := fmt.Sprintf("the url answered with status %d", status)
	if head := strings.TrimSpace(body[:runeStart(body, errorBytes)]); head != "" {
		text += ": " + head
	}
	err := errors.New(text)
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		status >= 500 && status < 600:
		if after := retryAfter(resp.Header); after > 0 {
			return core.RetryAfter(err, after)
		}
		return err
	}
	return core.Permanent(err)
}

// retryAfter reads the header of that name, seconds or a date (RFC 9110, 10.2.3):
// a date is measured by the clock of the server that sent it. Zero is none, or
// none that can be read.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	now, dateErr := http.ParseTime(h.Get("Date"))
	if err != nil || dateErr != nil {
		return 0
	}
	return at.Sub(now)
}

// readBody returns the body's beginning as text that JSON and the database can
// hold. It reads on for a bounded while: a service that is still writing when
// the connection closes may take that for a cancel.
func readBody(r io.Reader) (string, error) {
	head, err := io.ReadAll(io.LimitReader(r, keepBytes))
	if err == nil {
		if _, err = io.CopyN(io.Discard, r, discardBytes); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	// A character that the limit cut in two does not reach the result: encode
	// cuts a body of this length further.
	text := strings.ToValidUTF8(string(head), "\uFFFD")
	return strings.ReplaceAll(text, "\x00", "\uFFFD"), err
}

// runeStart returns the largest start of a rune in s that is at most n.
func runeStart(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// encode writes r with as much of its body as fits into core.MaxResultBytes:
// escapes can make JSON six times as long as the text.
func encode(r result) (json.RawMessage, error) {
	raw, err := marshal(r)
	if err != nil || len(raw) <= core.MaxResultBytes {
		return raw, err
	}
	body := r.Body
	tooLong := sort.Search(len(body), func(n int) bool {
		raw, err := marshal(result{r.Status, body[:runeStart(body, n)]})
		return err != nil || len(raw) > core.MaxResultBytes
	})
	return marshal(result{r.Status, body[:runeStart(body, max(tooLong-1, 0))]})
}

func marshal(r result) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("write result: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
