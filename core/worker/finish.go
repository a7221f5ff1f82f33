package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Outcome is how an attempt ended, as its worker says.
type Outcome string

// The outcomes.
const (
	Succeeded  Outcome = "succeeded"
	Failed     Outcome = "failed"      // tried again, unless Permanent or attempts are used up
	Canceled   Outcome = "canceled"    // as it was asked to
	HandedBack Outcome = "handed_back" // for the worker's sake: not counted, up to three times
)

// Report is what a worker says at the end.
type Report struct {
	core.Held
	Outcome Outcome
	Result  json.RawMessage // of a success, at most core.MaxResultBytes
	Error   string
	// Permanent says of a failure that trying again cannot help.
	Permanent bool
	// RetryAfter is the least delay before the next attempt.
	RetryAfter time.Duration
}

func (r *Report) check() error {
	switch {
	case len(r.Result) > core.MaxResultBytes:
		return &core.Error{Code: core.CodeInvalid, Kind: "too_large", Field: "result", Message: fmt.Sprintf("is larger than %d bytes; keep it elsewhere and send where", core.MaxResultBytes)}
	case len(r.Result) > 0 && r.Outcome != Succeeded:
		return core.Invalid("result", "goes with the outcome succeeded")
	case (r.Permanent || r.RetryAfter != 0) && r.Outcome != Failed:
		return core.Invalid("outcome", "must be failed, with permanent or retry_after")
	case r.RetryAfter < 0 || r.RetryAfter > core.MaxRetryAfter:
		return core.Invalid("retry_after", "must be from 0s to %s", core.FormatDuration(core.MaxRetryAfter))
	}
	return nil
}

// Finish records an outcome and returns the run as it is then. Sent again it is
// accepted again. core.ErrStaleFence if the run is another's or ended otherwise;
// core.ErrNotFound.
func (d *Desk) Finish(ctx context.Context, tenant uuid.UUID, r Report) (core.Run, error) {
	if err := r.check(); err != nil {
		return core.Run{}, err
	}
	run, _, err := d.store.Run(ctx, tenant, r.Key)
	if err != nil {
		return core.Run{}, err
	}
	cur, err := d.store.Get(ctx, tenant, r.Key.ScheduleID)
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return core.Run{}, err
	}
	o, err := r.outcome(run, &cur.Schedule)
	if err != nil {
		return core.Run{}, err
	}
	ended, err := d.store.Finish(ctx, []core.Outcome{o})
	for n := 0; n < 2 && errors.Is(err, core.ErrUnknownOutcome); n++ {
		ended, err = d.store.Finish(ctx, []core.Outcome{o})
	}
	switch {
	case err != nil:
		return core.Run{}, fmt.Errorf("finish: %w", err)
	case len(ended) == 0 || !r.told(ended[0].State):
		d.observe.Tell(core.Event{Kind: core.EventStale, What: "finish", N: 1})
		return core.Run{}, core.ErrStaleFence
	}
	d.observe.Finished(run.Queue, ended[0].State)
	d.letGo(ctx, run.Queue)
	if s := &cur.Schedule; ended[0].State.Final() && (s.Overlap == core.OverlapQueueOne || s.Overlap == core.OverlapCancelPrevious ||
		s.Misfire == core.MisfireRunAll && s.Overlap != core.OverlapAllow) {
		// Best effort: the timer looks again by itself.
		_ = d.store.Nudge(ctx, []uuid.UUID{r.Key.ScheduleID})
	}
	run, _, err = d.store.Run(ctx, tenant, r.Key)
	return run, err
}

// told reports whether a run in a state may be what became of the report. The store
// answers one that was sent again with how the attempt ended, which another report
// may have said.
func (r *Report) told(state core.RunState) bool {
	return (r.Outcome == Succeeded) == (state == core.RunSucceeded)
}

// outcome puts a report into the form of the store.
func (r *Report) outcome(run core.Run, s *core.Schedule) (core.Outcome, error) {
	o := core.Outcome{Held: r.Held, Error: text(r.Error)}
	switch r.Outcome {
	case Succeeded:
		o.State, o.Result, o.Error = core.RunSucceeded, r.Result, ""
	case Canceled:
		o.State = core.RunCanceled
	case HandedBack:
		o.State, o.Reason, o.HandedBack = core.RunRetrying, core.ReasonExhausted, true
	case Failed:
		o.State, o.Reason = core.RunRetrying, core.ReasonExhausted
		if r.Permanent {
			o.State, o.Reason = core.RunDead, core.ReasonPermanent
		}
		o.Delay = max(s.Rules.Retry.Delay(run.Attempt, rand.Float64()), r.RetryAfter)
	default:
		return o, core.Invalid("outcome", "must be succeeded, failed, canceled or handed_back")
	}
	return o, nil
}

// text makes an error storable.
func text(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > core.MaxErrorBytes {
		s = strings.ToValidUTF8(s[:core.MaxErrorBytes], "")
	}
	return s
}
