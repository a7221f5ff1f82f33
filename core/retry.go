package core

import (
	"cmp"
	"errors"
	"math"
	"time"
)

// The defaults of Retry.
const (
	DefaultInitialDelay = 10 * time.Second
	DefaultMaxDelay     = time.Hour
	DefaultMultiplier   = 2
)

// Jitter says how much of a delay is random.
type Jitter string

// The jitters.
const (
	JitterEqual Jitter = "equal" // half of the delay is fixed, half is random; the default
	JitterFull  Jitter = "full"  // all of it is random
)

// Retry says how long after a failed attempt the next one comes. A zero field has
// its default.
type Retry struct {
	// InitialDelay is the delay after the first attempt, MaxDelay bounds those after
	// later ones.
	InitialDelay time.Duration `json:"initial_delay,omitempty"`
	MaxDelay     time.Duration `json:"max_delay,omitempty"`
	// Multiplier is by how much a delay is longer than the one before, at least 1.
	Multiplier float64 `json:"multiplier,omitempty"`
	Jitter     Jitter  `json:"jitter,omitempty"`
}

// WithDefaults returns r with its defaults in place of zeros.
func (r Retry) WithDefaults() Retry {
	r.InitialDelay = cmp.Or(r.InitialDelay, DefaultInitialDelay)
	r.MaxDelay = cmp.Or(r.MaxDelay, DefaultMaxDelay)
	r.Multiplier = cmp.Or(r.Multiplier, DefaultMultiplier)
	r.Jitter = cmp.Or(r.Jitter, JitterEqual)
	return r
}

// Delay returns the delay after an attempt, which counts from 1; random is in
// [0, 1). It grows with each attempt up to MaxDelay, however many there were.
func (r Retry) Delay(attempt int, random float64) time.Duration {
	r = r.WithDefaults()
	whole := float64(r.InitialDelay) * math.Pow(r.Multiplier, float64(max(attempt, 1)-1))
	if !(whole < float64(r.MaxDelay)) { // infinite, too
		whole = float64(r.MaxDelay)
	}
	if r.Jitter == JitterFull {
		return time.Duration(whole * random)
	}
	return time.Duration(whole * (0.5 + random/2))
}

// MaxRetryAfter bounds what RetryAfter may ask for.
const MaxRetryAfter = 24 * time.Hour

type retryAfterError struct {
	err   error
	after time.Duration
}

func (r retryAfterError) Error() string { return r.err.Error() }
func (r retryAfterError) Unwrap() error { return r.err }

// RetryAfter marks err as one after which another attempt makes sense once some
// time has passed, up to MaxRetryAfter: the delay is no shorter than that.
// RetryAfter(nil, d) is nil.
func RetryAfter(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return retryAfterError{err, min(max(after, 0), MaxRetryAfter)}
}

// RetryDelay returns what RetryAfter asked for, zero without it.
func RetryDelay(err error) time.Duration {
	var r retryAfterError
	if errors.As(err, &r) {
		return r.after
	}
	return 0
}
