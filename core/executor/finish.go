package executor

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

const finishBatch = 500

// finish is an outcome on its way to the database.
type finish struct {
	attempt *attempt
	outcome core.Outcome
	took    time.Duration
}

// recordAll writes outcomes in batches until no more are waited for. While it
// works the leases are kept, so that an outage does not cost an attempt.
func (e *Executor) recordAll(ctx context.Context) {
	for {
		var batch []finish
		select {
		case f := <-e.finishes:
			batch = e.gather(f)
		case <-e.ended:
			if batch = e.gather(); len(batch) == 0 {
				return
			}
		}
		e.record(ctx, batch)
		for _, f := range batch {
			e.forget(f.attempt)
		}
	}
}

// gather adds to batch what waits beside it.
func (e *Executor) gather(batch ...finish) []finish {
	for len(batch) < finishBatch {
		select {
		case f := <-e.finishes:
			batch = append(batch, f)
		default:
			return batch
		}
	}
	return batch
}

// record writes a batch and tries again for as long as its leases can be
// trusted, or for FinishWindow once ctx is done. A batch with a value that the
// database refuses is halved until that value is found and left out.
func (e *Executor) record(ctx context.Context, batch []finish) {
	gap := 50 * time.Millisecond
	var ended time.Time // when ctx was first seen done
	for {
		done, err := e.write(ctx, batch)
		switch {
		case err == nil:
			e.report(ctx, batch, done)
			return
		case errors.Is(err, core.ErrBadRow) && len(batch) > 1:
			e.record(ctx, batch[:len(batch)/2])
			e.record(ctx, batch[len(batch)/2:])
			return
		case errors.Is(err, core.ErrBadRow) && (batch[0].outcome.Result != nil || batch[0].outcome.Error != ""):
			batch[0].outcome.Result = nil
			batch[0].outcome.Error = ""
			e.c.Logger.Error("the database refused a result", append(e.attrs(batch[0].attempt), "error", err)...)
			continue
		}
		if ctx.Err() != nil && ended.IsZero() {
			ended = e.c.Clock.Now()
		}
		batch = e.stillHeld(batch)
		if len(batch) == 0 || !ended.IsZero() && e.c.Clock.Now().Sub(ended) > e.c.FinishWindow {
			e.c.Logger.Error("outcomes were not recorded in time; the sweep will take the runs", "error", err)
			return
		}
		_ = e.c.Clock.Sleep(context.WithoutCancel(ctx), gap) // cannot end early
		gap = min(2*gap, time.Second)
	}
}

// write sends one batch, under a limit of its own that survives ctx.
func (e *Executor) write(ctx context.Context, batch []finish) ([]core.Finished, error) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), e.c.FinishWindow, errors.New("finish took too long"))
	defer cancel()
	os := make([]core.Outcome, len(batch))
	for i, f := range batch {
		os[i] = f.outcome
	}
	return e.c.Store.Finish(ctx, os)
}

func (e *Executor) stillHeld(batch []finish) []finish {
	out := batch[:0]
	for _, f := range batch {
		if e.trusted(f.attempt) {
			out = append(out, f)
		}
	}
	return out
}

func (e *Executor) report(ctx context.Context, batch []finish, done []core.Finished) {
	state := make(map[core.Held]core.RunState, len(done))
	for _, d := range done {
		state[d.Held] = d.State
	}
	ds := make([]core.Delivery, 0, len(batch))
	var awaited []uuid.UUID // schedules
	for _, f := range batch {
		ds = append(ds, f.attempt.delivery)
		if len(f.attempt.delivery.Permits) > 0 {
			e.admits.Tell(f.attempt.Queue)
		}
		s, ok := state[f.outcome.Held]
		if !ok {
			e.c.Observe.Tell(core.Event{Kind: core.EventStale, What: "finish", N: 1})
			e.c.Logger.Warn("outcome refused: the fence is stale", e.attrs(f.attempt)...)
			continue
		}
		e.c.Observe.Finished(f.attempt.Queue, s)
		if f.attempt.Awaited && s.Final() {
			awaited = append(awaited, f.attempt.Key.ScheduleID)
		}
		if e.c.OnFinish != nil {
			e.c.OnFinish(Report{Execution: f.attempt.Execution, Queue: f.attempt.Queue, State: s, Error: f.outcome.Error, Took: f.took})
		}
	}
	e.nudges.add(awaited)
	e.done(ctx, ds)
}
