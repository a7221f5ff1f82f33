package api

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// maxIdempotencyBytes bounds an idempotency key.
const maxIdempotencyBytes = 255

// KeyHeader is part of the requests that make something. Sent again within a day
// such a request makes nothing and is answered with what it made. The zero value is
// a request without a key.
type KeyHeader struct {
	Key string `header:"Idempotency-Key" doc:"Up to 255 visible ASCII characters of your choice. The same request sent again with it within 24 hours makes nothing new; another request with it is refused." example:"order-4711"`
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
// names the route and its parameters.
func (k KeyHeader) request(what string, body []byte) (*core.Request, error) {
	if k.Key == "" {
		return nil, nil
	}
	visible := strings.IndexFunc(k.Key, func(r rune) bool { return r < '!' || r > '~' }) < 0
	if !visible || len(k.Key) > maxIdempotencyBytes {
		return nil, core.Invalid("Idempotency-Key", "must be 1 to %d visible ASCII characters", maxIdempotencyBytes)
	}
	whole := sha256.New()
	fmt.Fprintf(whole, "%s\n%d\n", what, len(body))
	whole.Write(body)
	return &core.Request{Key: sha256.Sum256([]byte(k.Key)), Body: [32]byte(whole.Sum(nil))}, nil
}

// MatchHeader is part of the requests that change a schedule. The zero value
// changes any version.
type MatchHeader struct {
	IfMatch string `header:"If-Match" doc:"Only if the schedule still has this ETag, or one of several; else 412." example:"\"3\""`
}

// VersionHeader is part of the answers that show one schedule: its version as a
// tag that If-Match takes.
type VersionHeader struct {
	ETag string `header:"ETag" doc:"The version, for If-Match."`
}

func etag(version int64) VersionHeader {
	return VersionHeader{strconv.Quote(strconv.FormatInt(version, 10))}
}

// match reads what If-Match demands. Weak tags never match, as RFC 9110 has it.
func (m MatchHeader) match() (schedules.Match, error) {
	text := strings.TrimSpace(m.IfMatch)
	if text == "" || text == "*" {
		return schedules.Match{}, nil
	}
	demand := schedules.Match{Set: true}
	for _, tag := range strings.Split(text, ",") {
		tag = strings.TrimSpace(tag)
		strong, weak := strings.CutPrefix(tag, "W/")
		if len(strong) < 2 || strong[0] != '"' || strong[len(strong)-1] != '"' || strings.Contains(strong[1:len(strong)-1], `"`) {
			return schedules.Match{}, core.Invalid("If-Match", `must be an ETag as it was answered, such as "3", or several with commas between them`)
		}
		version, err := strconv.ParseInt(strong[1:len(strong)-1], 10, 64)
		if err == nil && !weak && etag(version).ETag == strong {
			demand.Versions = append(demand.Versions, version)
		}
	}
	return demand, nil
}
