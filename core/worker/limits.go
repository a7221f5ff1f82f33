package worker

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/core"
)

const (
	limitTimeout  = 10 * time.Second
	dispatchLease = 30 * time.Second // of runs that were let go
)

// permitted starts the runs for which there are permits, if their queue has a limit,
// and has the others wait.
func (d *Desk) permitted(ctx context.Context, a Ask, ds []core.Delivery) ([]core.Started, error) {
	try, wait, err := d.gate.Permit(ctx, a.Queue, ds)
	if err != nil {
		return nil, err
	}
	var started []core.Started
	if len(try) > 0 {
		if started, err = d.store.Start(ctx, try, a.Lease); err != nil {
			return nil, err
		}
	}
	// Best effort: the sweep brings them again when their dispatch lease ends.
	_ = d.gate.Refused(ctx, wait, try, started)
	return started, nil
}

// letGo lets the next runs of a queue go in which one ended. Best effort: claimers
// look by themselves.
func (d *Desk) letGo(ctx context.Context, queue string) {
	if limited, err := d.gate.Limited(ctx, queue); err != nil || !limited {
		return
	}
	got, err := d.gate.Admit(context.WithoutCancel(ctx), []string{queue}, dispatchLease)
	if err != nil {
		return
	}
	msgs := make([]core.Message, len(got))
	for i, c := range got {
		msgs[i] = c.Message()
	}
	_, _ = d.Publish(ctx, queue, msgs)
}
