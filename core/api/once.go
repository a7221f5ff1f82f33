package api

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// maxIdempotencyBytes bounds an idempotency key.
const maxIdempotencyBytes = 255

const (
	keyHeader   = "Idempotency-Key"
	matchHeader = "If-Match"
)

// checkOnce looks at the headers that make a request safe to send again, on every
// route: one that is there and says nothing, or two things, is a fault of the
// client, which believes itself safe. The lines of an If-Match are one list.
func (a *api) checkOnce(hc huma.Context, next func(huma.Context)) {
	r, _ := humago.Unwrap(hc)
	keys, tags := r.Header.Values(keyHeader), r.Header.Values(matchHeader)
	if r.Method == http.MethodPost && len(keys) > 0 && (len(keys) > 1 || !isKey(keys[0])) {
		a.refuse(hc, core.Invalid(keyHeader, "must be 1 to %d visible ASCII characters, and once", maxIdempotencyBytes))
		return
	}
	if name := ignoredCondition(r, hc.Operation()); name != "" {
		a.refuse(hc, core.Invalid(name, "is no condition that this path knows; leave it out"))
		return
	}
	if len(tags) > 0 {
		r.Header.Set(matchHeader, strings.Join(tags, ","))
		if strings.Trim(r.Header.Get(matchHeader), ", \t") == "" {
			a.refuse(hc, badMatch())
			return
		}
	}
	next(hc)
}

func isKey(text string) bool {
	return text != "" && len(text) <= maxIdempotencyBytes && strings.IndexFunc(text, func(r rune) bool { return r < '!' || r > '~' }) < 0
}

func badMatch() error {
	return core.Invalid(matchHeader, `must be an ETag as it was answered, such as "3", or several with commas between them, or *`)
}

// KeyHeader is part of the requests that make something. Sent again within a day
// such a request makes nothing and is answered with what it made. The zero value is
// a request without a key.
type KeyHeader struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[!-~]+$" doc:"Up to 255 visible ASCII characters of your choice. The same request sent again with it within 24 hours makes nothing new; another request with it is refused." example:"order-4711"`
}

// ReplayHeader is part of the answers to requests with a key: it tells whether the
// request had been carried out before.
type ReplayHeader struct {
	Again string `header:"Idempotency-Replayed" doc:"true if the request had been carried out before."`
}

func showReplayed(again bool) ReplayHeader {
	if again {
		return ReplayHeader{"true"}
	}
	return ReplayHeader{}
}

// request returns the request as it is known under its key, nil without one. What
// names the route with its parameters, of which its query has none.
func (k KeyHeader) request(what string, body []byte) *core.Request {
	if k.Key == "" {
		return nil
	}
	whole := sha256.New()
	fmt.Fprintf(whole, "%s\n%d\n", what, len(body))
	whole.Write(body)
	return &core.Request{Key: sha256.Sum256([]byte(k.Key)), Body: [32]byte(whole.Sum(nil))}
}

// MatchHeader is part of the requests that change a schedule. The zero value
// changes any version.
type MatchHeader struct {
	IfMatch string `header:"If-Match" doc:"Only if the schedule still has this ETag, or one of several with commas between; else 412. A * stands for any version of a schedule that exists." example:"\"3\""`
}

// describeHeaders completes what huma knows: that a route which creates or replaces
// has the same headers in both answers, and that one which takes If-Match tells the
// version when it refuses.
func describeHeaders(_ *huma.OpenAPI, o *huma.Operation) {
	if created, replaced := o.Responses["201"], o.Responses["200"]; created != nil && replaced != nil {
		created.Headers = replaced.Headers
	}
	for _, p := range o.Parameters {
		if p.Name == matchHeader {
			o.Responses["default"].Headers["ETag"] = &huma.Param{
				Description: "The version by now, of a version_mismatch.", Schema: &huma.Schema{Type: huma.TypeString},
			}
		}
	}
}

// VersionHeader is part of the answers that show one schedule: its version as a
// tag that If-Match takes.
type VersionHeader struct {
	ETag string `header:"ETag" doc:"The version, for If-Match."`
}

func etag(version int64) VersionHeader {
	return VersionHeader{strconv.Quote(strconv.FormatInt(version, 10))}
}

// match reads what If-Match demands. Weak tags never match, as RFC 9110 has it, nor
// do those that are no version.
func (m MatchHeader) match() (schedules.Match, error) {
	switch rest := strings.TrimSpace(m.IfMatch); rest {
	case "":
		return schedules.Match{}, nil
	case "*":
		return schedules.Match{Exists: true}, nil
	default:
		demand := schedules.Match{Set: true}
		for more := true; more; {
			tag, after, ok := cutTag(rest)
			if !ok {
				return schedules.Match{}, badMatch()
			}
			version, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
			if err == nil && etag(version).ETag == tag {
				demand.Versions = append(demand.Versions, version)
			}
			rest, more = after, after != ""
		}
		return demand, nil
	}
}

// cutTag cuts the first of a list of tags off, with the comma behind it.
func cutTag(list string) (tag, after string, ok bool) {
	opaque, _ := strings.CutPrefix(list, "W/")
	if !strings.HasPrefix(opaque, `"`) {
		return "", "", false
	}
	end := strings.IndexByte(opaque[1:], '"')
	if end < 0 {
		return "", "", false
	}
	end += 2 + len(list) - len(opaque)
	tag, after = list[:end], strings.TrimLeft(list[end:], " \t")
	if after == "" {
		return tag, "", true
	}
	after, ok = strings.CutPrefix(after, ",")
	after = strings.TrimLeft(after, " \t")
	return tag, after, ok && after != ""
}
