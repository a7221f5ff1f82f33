package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
)

// attempt is one attempt under way.
type attempt struct {
	core.Started
	delivery core.Delivery
	ctx      context.Context // the attempt's own; it ends with the cause
	cancel   context.CancelCauseFunc
	trust    instant // guarded by Executor.mu
	// told is when the target's context ended, while the target goes on;
	// guarded by Executor.mu.
	told time.Time
}

func (a *attempt) held() core.Held { return core.Held{Key: a.Key, Fence: a.Fence} }

// execute runs the target and hands the outcome to the recorder, unless the
// lease is lost: then the run is somebody else's and nothing may be written.
func (e *Executor) execute(a *attempt, target core.Target) {
	began := e.c.Clock.Now()
	result, err := e.call(a, target)
	e.tell(a, time.Time{})
	took := e.c.Clock.Now().Sub(began)
	if errors.Is(context.Cause(a.ctx), ErrLeaseLost) {
		e.forget(a)
		e.c.Observe.Tell(core.Event{Kind: core.EventLeaseLost, Queue: a.Queue, N: 1})
		e.c.Logger.Warn("attempt lost its lease", e.attrs(a)...)
		e.done(a.ctx, []core.Delivery{a.delivery})
		return
	}
	e.finishes <- finish{attempt: a, outcome: e.outcome(a, result, err), took: took}
}

// call runs the target under the attempt's timeout. A panic is a failure.
func (e *Executor) call(a *attempt, target core.Target) (result json.RawMessage, err error) {
	ctx := a.ctx
	if a.Timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, a.Timeout, ErrTimeout)
		defer cancel()
		ctx = limited
	}
	if a.Left != nil {
		limited, cancel := context.WithTimeoutCause(ctx, *a.Left, ErrTotalTimeout)
		defer cancel()
		ctx = limited
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the job panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if !e.trusted(a) {
		a.cancel(ErrLeaseLost)
		return nil, ErrLeaseLost
	}
	stop := context.AfterFunc(ctx, func() { e.tell(a, e.c.Clock.Now()) })
	defer stop()
	result, err = target.Execute(core.WithExecution(ctx, a.Execution), a.Execution)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return result, err
}

// tell notes when an attempt's target was told to end; zero: it has.
func (e *Executor) tell(a *attempt, when time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a.told = when
}

// outcome classifies how an attempt ended. The database decides whether a
// retriable failure is retried.
func (e *Executor) outcome(a *attempt, result json.RawMessage, err error) core.Outcome {
	o := core.Outcome{Held: a.held()}
	switch {
	case err == nil:
		o.State, o.Result = core.RunSucceeded, bounded(result)
		return o
	case errors.Is(err, ErrCanceled):
		o.State = core.RunCanceled
	case core.IsPermanent(err):
		o.State, o.Reason = core.RunDead, core.ReasonPermanent
	case errors.Is(err, ErrShutdown): // the target has returned, so that nothing is under way
		o.State, o.Reason, o.HandedBack = core.RunRetrying, core.ReasonExhausted, true
		o.Error = text(err.Error())
		return o
	case errors.Is(err, ErrTotalTimeout):
		o.State, o.Reason = core.RunDead, core.ReasonTotal
	case errors.Is(err, ErrTimeout):
		o.State, o.Reason = core.RunRetrying, core.ReasonTimeout
	default:
		o.State, o.Reason = core.RunRetrying, core.ReasonExhausted
	}
	o.Delay = max(a.Retry.Delay(a.Attempt, rand.Float64()), core.RetryDelay(err))
	o.Error = text(err.Error())
	return o
}

// text makes an error storable: valid UTF-8 without NUL, at most
// core.MaxErrorBytes, of which the tail matters least.
func text(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > core.MaxErrorBytes {
		s = strings.ToValidUTF8(s[:core.MaxErrorBytes], "")
	}
	return s
}

// bounded drops a result that cannot be kept: it must not cost the run its
// success.
func bounded(r json.RawMessage) json.RawMessage {
	if len(r) > core.MaxResultBytes || len(r) > 0 && !json.Valid(r) {
		return nil
	}
	return r
}

func (e *Executor) attrs(a *attempt) []any {
	return []any{"run_id", a.Key.ID(), "schedule_id", a.Key.ScheduleID, "slot", a.Key.Slot, "attempt", a.Attempt, "fence", a.Fence}
}

func (e *Executor) forget(a *attempt) {
	e.mu.Lock()
	delete(e.live, a.held())
	e.c.Observe.Tell(core.Event{Kind: core.EventLive, N: len(e.live)})
	e.mu.Unlock()
	a.cancel(nil)
}
