package httptarget

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/core"
)

// The limits of a payload's parts; core.MaxPayloadBytes bounds the whole.
const (
	maxURLBytes   = 8 << 10
	maxHeaders    = 64
	maxFieldBytes = 64 // of an unknown field's name in an error
)

const (
	typeJSON = "application/json"
	typeText = "text/plain; charset=utf-8"
)

// call is a payload that was found to be right.
type call struct {
	method      string
	url         string
	headers     map[string]string
	body        []byte // nil: the payload has none
	contentType string // of body
}

func (t *Target) parse(payload json.RawMessage) (call, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil || fields == nil {
		return call{}, core.Invalid("", `must be an object such as {"url": "https://example.com/hook"}`)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch name {
		case "method", "url", "headers", "body":
		default:
			return call{}, core.Invalid(strings.ToValidUTF8(name[:min(len(name), maxFieldBytes)], ""), "is not a field here; there are url, method, headers and body")
		}
	}
	var c call
	var err error
	if c.method, err = parseMethod(fields["method"]); err != nil {
		return call{}, err
	}
	if c.url, err = t.parseURL(fields["url"]); err != nil {
		return call{}, err
	}
	if c.headers, err = parseHeaders(fields["headers"]); err != nil {
		return call{}, err
	}
	c.body, c.contentType = parseBody(fields["body"])
	return c, nil
}

func parseMethod(raw json.RawMessage) (string, error) {
	if absent(raw) {
		return http.MethodPost, nil
	}
	var method string
	if err := json.Unmarshal(raw, &method); err != nil {
		return "", core.Invalid("method", "must be a string")
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return method, nil
	}
	return "", core.Invalid("method", "must be GET, HEAD, POST, PUT, PATCH or DELETE, in capitals")
}

func (t *Target) parseURL(raw json.RawMessage) (string, error) {
	if absent(raw) {
		return "", core.Invalid("url", "is required")
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", core.Invalid("url", "must be a string")
	}
	if len(text) > maxURLBytes {
		return "", core.Invalid("url", "is longer than %d bytes", maxURLBytes)
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", core.Invalid("url", "cannot be read as a URL")
	}
	if why := refuseURL(u); why != "" {
		return "", core.Invalid("url", "%s", why)
	}
	// A name is judged when it is dialed: what it stands for may change.
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !t.guard.allows(ip) {
		return "", core.Invalid("url", "%s", errRefused)
	}
	return text, nil
}

// refuseURL says why u cannot be called, or nothing if it can.
func refuseURL(u *url.URL) string {
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "must begin with http:// or https:// and name a host"
	case u.User != nil:
		return "must not hold a user name or password; use the Authorization header"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "must have a port between 1 and 65535"
		}
	}
	return ""
}

func parseHeaders(raw json.RawMessage) (map[string]string, error) {
	if absent(raw) {
		return nil, nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, core.Invalid("headers", "must be an object of strings")
	}
	if len(values) > maxHeaders {
		return nil, core.Invalid("headers", "are more than %d", maxHeaders)
	}
	headers := make(map[string]string, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name == "" || len(name) > maxFieldBytes || strings.IndexFunc(name, notToken) >= 0 {
			return nil, core.Invalid("headers", "have a name that is empty, longer than %d bytes or has a character that HTTP does not allow", maxFieldBytes)
		}
		field, key := "headers."+name, http.CanonicalHeaderKey(name)
		if reserved(key) {
			return nil, core.Invalid(field, "is set by Fencepost or by the connection; leave it out")
		}
		if _, twice := headers[key]; twice {
			return nil, core.Invalid(field, "is named twice in different capitals")
		}
		var value string
		if err := json.Unmarshal(values[name], &value); err != nil || absent(values[name]) {
			return nil, core.Invalid(field, "must be a string")
		}
		if strings.IndexFunc(value, isControl) >= 0 {
			return nil, core.Invalid(field, "holds a control character")
		}
		headers[key] = value
	}
	return headers, nil
}

// reserved reports whether a header is not the user's to set: the message's
// frame, hop-by-hop headers, and the names that tell which run this is.
func reserved(key string) bool {
	switch key {
	case "Host", "Content-Length", "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return strings.HasPrefix(key, "Fencepost-")
}

func notToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// parseBody returns a string as it is and any other value as compact JSON.
func parseBody(raw json.RawMessage) ([]byte, string) {
	if absent(raw) {
		return nil, ""
	}
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		return []byte(text), typeText
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw, typeJSON // unreachable: raw was read as JSON before
	}
	return b.Bytes(), typeJSON
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
