package core

import (
	"context"
	"time"
)

// Clock is the process clock: it measures durations and wakes loops. It never
// decides what is due or whose lease has ended; the database's clock does.
// Implementations are safe for concurrent use.
type Clock interface {
	// Now returns the current time with its monotonic reading. Do not call
	// UTC or Round on it before subtracting: that drops the reading.
	Now() time.Time
	// Sleep waits for d or until ctx is done, and returns the cause of ctx
	// in that case. A d of zero or less returns at once.
	Sleep(ctx context.Context, d time.Duration) error
	// After returns a channel that receives once, d from now. Nobody has to
	// drain or stop it.
	After(d time.Duration) <-chan time.Time
}
