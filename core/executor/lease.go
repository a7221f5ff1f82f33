package executor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencepost/fencepost/core"
)

// instant is a moment on two clocks. Linux's monotonic clock stands still while
// a virtual machine is frozen, and a wall clock can be set back: what has
// elapsed is the larger of the two.
type instant struct{ mono, wall time.Time }

func at(t time.Time) instant { return instant{mono: t, wall: t.Round(0)} }

func (i instant) add(d time.Duration) instant { return instant{i.mono.Add(d), i.wall.Add(d)} }

// left returns how long it is from now until i by the clock that is further on.
func (i instant) left(now time.Time) time.Duration {
	return min(i.mono.Sub(now), i.wall.Sub(now.Round(0)))
}

// trustUntil returns until when a lease asked for at sent may be trusted.
func (e *Executor) trustUntil(sent time.Time) instant {
	margin := min(time.Second, e.c.Lease/4)
	return at(sent).add(e.c.Lease - margin)
}

// trusted reports whether the attempt's lease may be trusted now.
func (e *Executor) trusted(a *attempt) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return a.trust.left(e.c.Clock.Now()) > 0
}

// keepLeases renews the leases of all live attempts, and ends attempts whose
// lease can no longer be trusted, until ctx is done, which is after the last
// attempt. The two go side by side: a heartbeat that hangs holds up no end.
func (e *Executor) keepLeases(ctx context.Context) {
	var beats sync.WaitGroup
	beats.Go(func() { e.beatOn(ctx) })
	for ctx.Err() == nil {
		select {
		case <-e.c.Clock.After(min(e.endUntrusted(), time.Second)):
		case <-e.wake:
		case <-ctx.Done():
		}
	}
	beats.Wait()
}

// beatOn renews the leases by one statement each third of a lease.
func (e *Executor) beatOn(ctx context.Context) {
	next := e.c.Clock.Now().Add(e.c.Lease / 3)
	for ctx.Err() == nil {
		if wait := next.Sub(e.c.Clock.Now()); wait > 0 {
			_ = e.c.Clock.Sleep(ctx, min(wait, time.Second)) // an error is ctx's end
			continue
		}
		next = e.c.Clock.Now().Add(e.c.Lease / 3)
		e.beat(ctx)
	}
}

// endUntrusted ends the attempts whose lease can no longer be trusted and
// returns how long it is until the next one can no longer be.
func (e *Executor) endUntrusted() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.c.Clock.Now()
	next := e.c.Lease
	for _, a := range e.live {
		left := a.trust.left(now)
		if left <= 0 {
			a.cancel(ErrLeaseLost)
			continue
		}
		next = min(next, left)
	}
	return next
}

// beat renews the leases. A run that does not come back is lost; an error says
// nothing about any run.
func (e *Executor) beat(ctx context.Context) {
	held := e.heldRuns()
	if len(held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(e.c.Timeout, e.c.Lease/3), errors.New("heartbeat took too long"))
	defer cancel()
	sent := e.c.Clock.Now()
	beats, err := e.c.Store.Heartbeat(ctx, held, e.c.Lease)
	if err != nil {
		e.c.Logger.Warn("heartbeat", "runs", len(held), "error", err)
		return
	}
	answered := make(map[core.Held]bool, len(beats))
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range beats {
		answered[b.Held] = true
		a, ok := e.live[b.Held]
		if !ok {
			continue
		}
		a.trust = e.trustUntil(sent)
		if b.CancelRequested {
			a.cancel(ErrCanceled)
		}
	}
	for _, h := range held {
		if a, ok := e.live[h]; ok && !answered[h] {
			a.cancel(ErrLeaseLost)
			e.c.Observe.Tell(core.Event{Kind: core.EventStale, What: "heartbeat", N: 1})
		}
	}
}

// heldRuns returns the live attempts whose lease is still trusted: a lease that
// ended is never renewed, nor that of a target which is deaf to its end.
func (e *Executor) heldRuns() []core.Held {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.c.Clock.Now()
	out := make([]core.Held, 0, len(e.live))
	for h, a := range e.live {
		deaf := !a.told.IsZero() && now.Sub(a.told) > e.c.Grace
		if a.trust.left(now) > 0 && !deaf {
			out = append(out, h)
		}
	}
	return out
}
