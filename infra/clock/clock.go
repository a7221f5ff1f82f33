// Package clock is the only place in the product that reads the wall clock or
// sleeps, so that every other package can be driven by a clock of a test's own.
package clock

import (
	"context"
	"time"
)

// System is the machine's clock. The zero value is ready to use, by any number
// of goroutines.
type System struct{}

// Now returns time.Now, monotonic reading included.
func (System) Now() time.Time { return time.Now() }

// Sleep waits for d or until ctx is done, and then returns the cause of ctx.
func (System) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// After returns a channel that receives once, d from now.
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }
