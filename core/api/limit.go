package api

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// RateLimit bounds the requests of each tenant. It holds for one process: with
// several, a tenant has the sum of theirs. The zero value is no limit.
type RateLimit struct {
	// PerSecond is how many requests a second a tenant has in the long run. Zero is
	// no limit.
	PerSecond float64
	// Burst is how many may come at once. Defaults to twice PerSecond, at least 1.
	Burst int
}

func (r RateLimit) check() error {
	if r.PerSecond < 0 || math.IsNaN(r.PerSecond) || math.IsInf(r.PerSecond, 0) || r.Burst < 0 {
		return core.Invalid("rate limit", "must be numbers that are not negative")
	}
	return nil
}

// bucket counts tokens taken, which come back at a rate. The zero bucket is full.
type bucket struct {
	taken float64
	at    time.Time
}

// take takes a token, or says after how long there is one.
func (b *bucket) take(now time.Time, rate, burst float64) (time.Duration, bool) {
	if since := now.Sub(b.at).Seconds(); !b.at.IsZero() && since > 0 {
		b.taken = max(0, b.taken-since*rate)
	}
	b.at = now
	if missing := b.taken + 1 - burst; missing > 0 {
		return time.Duration(min(missing/rate, maxWait.Seconds()) * float64(time.Second)), false
	}
	b.taken++
	return 0, true
}

// giveBack returns a token.
func (b *bucket) giveBack() { b.taken = max(0, b.taken-1) }

const (
	// maxWait bounds what a caller is told to wait.
	maxWait = time.Hour
	// maxBuckets bounds the tenants that are remembered.
	maxBuckets = 10_000
)

// limiter has a bucket for each tenant that was here lately. Safe for concurrent
// use.
type limiter struct {
	clock       core.Clock
	rate, burst float64

	mutex   sync.Mutex
	tenants map[uuid.UUID]*bucket
}

func newLimiter(clock core.Clock, r RateLimit) *limiter {
	burst := float64(r.Burst)
	if burst == 0 {
		burst = max(1, math.Ceil(2*r.PerSecond))
	}
	return &limiter{clock: clock, rate: r.PerSecond, burst: burst, tenants: map[uuid.UUID]*bucket{}}
}

// admit lets a tenant's request pass or says when to come again.
func (l *limiter) admit(tenant uuid.UUID) error {
	if l.rate == 0 {
		return nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := l.clock.Now()
	b, ok := l.tenants[tenant]
	if !ok {
		l.makeRoom(now)
		b = &bucket{}
		l.tenants[tenant] = b
	}
	wait, ok := b.take(now, l.rate, l.burst)
	if ok {
		return nil
	}
	return rateLimited(fmt.Sprintf("more than %s requests a second", strconv.FormatFloat(l.rate, 'f', -1, 64)), wait)
}

// makeRoom forgets buckets that have filled up, which changes nothing, and if
// that is not enough a few others, whose tenants then have a burst to spare.
func (l *limiter) makeRoom(now time.Time) {
	if len(l.tenants) < maxBuckets {
		return
	}
	for tenant, b := range l.tenants {
		if b.taken <= now.Sub(b.at).Seconds()*l.rate {
			delete(l.tenants, tenant)
		}
	}
	for tenant := range l.tenants {
		if len(l.tenants) < maxBuckets*9/10 {
			return
		}
		delete(l.tenants, tenant)
	}
}

// rateLimited refuses a request for a while, in whole seconds as RFC 9110 has it.
func rateLimited(why string, wait time.Duration) *Problem {
	seconds := strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
	return newProblem(http.StatusTooManyRequests, codeRateLimited, why+"; come again in "+seconds+" s").with("Retry-After", seconds)
}
