package limit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/core"
)

const (
	// idle, busy and closely are how long an admitter waits between looks: while
	// nothing waits, while something does, and at the least.
	idle    = 5 * time.Second
	busy    = time.Second
	closely = 5 * time.Millisecond
)

// Admitter lets waiting runs go: at once when it is told that a run ended or began to
// wait, and otherwise by looking. Any number of them may be at work.
type Admitter struct {
	gate  *Gate
	clock core.Clock
	log   *slog.Logger
	// send publishes what was let go.
	send func(ctx context.Context, queue string, msgs []core.Message)
	// lease is for runs of queues that send serves; those of others are due at once.
	serves func(queue string) bool
	lease  time.Duration
	// looks says whether to look without being told.
	looks bool

	mu   sync.Mutex
	told map[string]bool // queues in which something changed
	wake chan struct{}
}

// AdmitterConfig is what an admitter stands on; Gate, Clock, Logger and Send are required.
type AdmitterConfig struct {
	Gate   *Gate
	Clock  core.Clock
	Logger *slog.Logger
	// Send publishes what was let go of a queue that Serves names.
	Send   func(ctx context.Context, queue string, msgs []core.Message)
	Serves func(queue string) bool
	// DispatchLease is until when what was let go is left alone.
	DispatchLease time.Duration
	// Looks has it look without being told, as one of all has to: every second while
	// something waits, every 5 s while nothing does.
	Looks bool
}

// NewAdmitter returns an admitter.
func NewAdmitter(c AdmitterConfig) *Admitter {
	return &Admitter{
		gate: c.Gate, clock: c.Clock, log: c.Logger, send: c.Send, serves: c.Serves, lease: c.DispatchLease, looks: c.Looks,
		told: map[string]bool{}, wake: make(chan struct{}, 1),
	}
}

// Tell has the admitter look at a queue soon. It does not block.
func (a *Admitter) Tell(queue string) {
	a.mu.Lock()
	a.told[queue] = true
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default: // it is about to
	}
}

func (a *Admitter) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for q := range a.told {
		out = append(out, q)
	}
	a.told = map[string]bool{}
	slices.Sort(out)
	return out
}

// Run admits until ctx is done. It survives an unreachable database.
func (a *Admitter) Run(ctx context.Context) error {
	gap, failed := busy, 0
	for ctx.Err() == nil {
		look := a.clock.After(gap)
		if !a.looks {
			look = nil
		}
		queues := []string(nil)
		select {
		case <-a.wake:
			queues = a.take()
		case <-look:
		case <-ctx.Done():
			return nil
		}
		n, err := a.admit(ctx, queues)
		switch {
		case err != nil && ctx.Err() == nil:
			if failed++; failed == 1 {
				a.log.Error("limits", "error", err)
			}
			gap = idle
		case n > 0 || len(queues) > 0:
			gap, failed = busy, 0
		default:
			gap, failed = idle, 0
		}
		_ = a.clock.Sleep(ctx, closely) // an error is ctx's end
	}
	return nil
}

// admit looks at some queues, or at all that are known, and returns how many runs went.
func (a *Admitter) admit(ctx context.Context, queues []string) (int, error) {
	if queues == nil {
		known, err := a.gate.Known(ctx)
		if err != nil {
			return 0, err
		}
		queues = known
	}
	var ours, others []string
	for _, q := range queues {
		if a.serves(q) {
			ours = append(ours, q)
		} else if a.looks {
			others = append(others, q)
		}
	}
	n, err := a.release(ctx, ours, a.lease)
	if err != nil {
		return n, err
	}
	more, err := a.release(ctx, others, 0)
	return n + more, err
}

func (a *Admitter) release(ctx context.Context, queues []string, lease time.Duration) (int, error) {
	// It goes on when ctx ends, as a claim does: what was let go is to be published.
	got, err := a.gate.Admit(context.WithoutCancel(ctx), queues, lease)
	if err != nil || lease == 0 {
		return len(got), err
	}
	byQueue := map[string][]core.Message{}
	for _, c := range got {
		byQueue[c.Queue] = append(byQueue[c.Queue], c.Message())
	}
	for queue, msgs := range byQueue {
		a.send(context.WithoutCancel(ctx), queue, msgs)
	}
	return len(got), nil
}
