package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/fencepost/fencepost/core"
)

// permitted starts those deliveries for which there are permits, if their queue has a
// limit, and has the others wait. It returns what was tried, with its permits.
func (e *Executor) permitted(ctx context.Context, queue string, ds []core.Delivery) ([]core.Delivery, []core.Started, error) {
	try, wait, err := e.gate.Permit(ctx, queue, ds)
	if err != nil {
		return nil, nil, err
	}
	var started []core.Started
	if len(try) > 0 {
		if started, err = e.c.Store.Start(ctx, try, e.c.Lease); err != nil {
			return nil, nil, err
		}
	}
	if err := e.gate.Refused(ctx, wait, try, started); err != nil {
		// The sweep brings them again when their dispatch lease ends.
		e.c.Logger.Warn("runs could not be held", "queue", queue, "error", err)
	}
	return slices.DeleteFunc(slices.Clone(try), func(d core.Delivery) bool { return len(d.Permits) == 0 }), started, nil
}

// publish hands runs on that waited for an attempt here to end. What is lost comes
// again by the sweep.
func (e *Executor) publish(ctx context.Context, queue string, msgs []core.Message) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.c.Timeout, errors.New("publish took too long"))
	defer cancel()
	if n, err := e.c.Publisher.Publish(ctx, queue, msgs); err != nil {
		e.c.Logger.Warn("publish", "queue", queue, "runs", len(msgs)-n, "error", err)
	}
}
