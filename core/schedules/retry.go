package schedules

import (
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
)

// RetryFields are what a user may set of the delays between attempts, each by
// itself.
type RetryFields struct {
	InitialDelay *time.Duration
	MaxDelay     *time.Duration
	Multiplier   *float64
	Jitter       *core.Jitter
}

// The bounds of retries. A run that takes longer than its history is kept would be
// history before it ends.
const (
	maxAttempts     = 1000
	maxMultiplier   = 100
	maxDelay        = 7 * 24 * time.Hour
	maxTotalTimeout = 30 * 24 * time.Hour
)

var jitters = []core.Jitter{core.JitterEqual, core.JitterFull}

// setRetries copies and checks what is given of retries. A default has one form,
// zero.
func setRetries(f Fields, to *core.Rules) error {
	set(f.TotalTimeout, &to.TotalTimeout)
	r := to.Retry.WithDefaults()
	set(f.Retry.InitialDelay, &r.InitialDelay)
	set(f.Retry.MaxDelay, &r.MaxDelay)
	set(f.Retry.Multiplier, &r.Multiplier)
	set(f.Retry.Jitter, &r.Jitter)
	switch {
	case r.InitialDelay < time.Millisecond || r.InitialDelay > maxDelay:
		return core.Invalid("retry.initial_delay", "must be from 1ms to %s", core.FormatDuration(maxDelay))
	case r.MaxDelay < r.InitialDelay || r.MaxDelay > maxDelay:
		return core.Invalid("retry.max_delay", "must be from the initial_delay, which is %s, to %s", core.FormatDuration(r.InitialDelay), core.FormatDuration(maxDelay))
	case !(r.Multiplier >= 1 && r.Multiplier <= maxMultiplier): // no number, too
		return core.Invalid("retry.multiplier", "must be from 1 to %d", maxMultiplier)
	case !slices.Contains(jitters, r.Jitter):
		return core.Invalid("retry.jitter", "must be equal or full")
	case to.TotalTimeout < 0 || to.TotalTimeout > maxTotalTimeout:
		return core.Invalid("total_timeout", `must be at most %s; "0s" is no limit`, core.FormatDuration(maxTotalTimeout))
	}
	to.Retry = short(r)
	return nil
}

// short returns r with zero in place of each value that is its default.
func short(r core.Retry) core.Retry {
	usual := core.Retry{}.WithDefaults()
	if r.InitialDelay == usual.InitialDelay {
		r.InitialDelay = 0
	}
	if r.MaxDelay == usual.MaxDelay {
		r.MaxDelay = 0
	}
	if r.Multiplier == usual.Multiplier {
		r.Multiplier = 0
	}
	if r.Jitter == usual.Jitter {
		r.Jitter = ""
	}
	return r
}
