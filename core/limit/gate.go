// Package limit keeps queues to their limits. It exists because two stages need it
// in the same way: the claimer, which lets runs of such a queue go one by one, and
// executors, which start them with permits.
//
// The limit itself is kept by the store's Start, which takes a permit or refuses the
// run. What is here decides who tries, and sees to it that the others do not
// try in vain: they wait in the database, queued, until somebody ends.
package limit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

const (
	// refreshEvery is how long a process believes what it knows of limits. One that
	// it does not know costs a refused start, nothing else.
	refreshEvery = 2 * time.Second
	// remember is how long runs that waited under a limit are looked after once it is gone.
	remember = time.Hour
	// most is how many runs of a queue are let go at once.
	most = 100
)

// Gate knows which queues have limits. It is safe for concurrent use.
type Gate struct {
	store   core.LimitStore
	clock   core.Clock
	timeout time.Duration

	mu    sync.Mutex
	now   []string             // that have limits
	past  map[string]time.Time // that had one, and when that was seen last
	asked time.Time
}

// New returns a gate. Each call of the store has the timeout.
func New(store core.LimitStore, clock core.Clock, timeout time.Duration) *Gate {
	return &Gate{store: store, clock: clock, timeout: timeout, past: map[string]time.Time{}}
}

// refresh asks the store which queues have limits, unless it did a moment ago. The
// caller holds the lock. What cannot be learned stays as it was.
func (g *Gate) refresh(ctx context.Context) error {
	now := g.clock.Now()
	if since := now.Sub(g.asked); !g.asked.IsZero() && since >= 0 && since < refreshEvery {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, errors.New("reading limits took too long"))
	defer cancel()
	names, err := g.store.LimitedQueues(ctx)
	if err != nil {
		return fmt.Errorf("read limits: %w", err)
	}
	g.now, g.asked = names, now
	for _, name := range names {
		g.past[name] = now
	}
	for name, seen := range g.past {
		if now.Sub(seen) > remember {
			delete(g.past, name)
		}
	}
	return nil
}

// Limited reports whether a queue has a limit, as far as this process knows.
func (g *Gate) Limited(ctx context.Context, queue string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.refresh(ctx)
	return slices.Contains(g.now, queue), err
}

// Known returns the queues that have a limit or had one in the last hour.
func (g *Gate) Known(ctx context.Context) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.refresh(ctx)
	names := make([]string, 0, len(g.past))
	for name := range g.past {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}

// Permit gives deliveries of a queue the permits that they need, and parts those that
// may try to start from those that have to wait.
func (g *Gate) Permit(ctx context.Context, queue string, ds []core.Delivery) (try, wait []core.Delivery, err error) {
	limited, err := g.Limited(ctx, queue)
	if err != nil || !limited {
		return ds, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, errors.New("reading permits took too long"))
	defer cancel()
	view, err := g.store.Permits(ctx, ds)
	if err != nil {
		return nil, nil, fmt.Errorf("read permits: %w", err)
	}
	try, wait = assign(ds, view)
	return try, wait, nil
}

type limitKey struct {
	queue  string
	tenant uuid.UUID
}

func keyOf(p core.Permit) limitKey { return limitKey{p.Queue, p.TenantID} }

// assign gives each delivery one permit of each limit that it is under, or none. Which
// ones is random, so that two executors seldom want the same.
func assign(ds []core.Delivery, view core.PermitView) (try, wait []core.Delivery) {
	free := map[limitKey][]core.Permit{}
	rand.Shuffle(len(view.Free), func(i, j int) { view.Free[i], view.Free[j] = view.Free[j], view.Free[i] })
	for _, p := range view.Free {
		free[keyOf(p)] = append(free[keyOf(p)], p)
	}
	for _, d := range ds {
		under := view.Under[d.Key]
		if slices.ContainsFunc(under, func(p core.Permit) bool { return len(free[keyOf(p)]) == 0 }) {
			wait = append(wait, d)
			continue
		}
		d.Permits = nil
		for _, p := range under {
			k := keyOf(p)
			d.Permits, free[k] = append(d.Permits, free[k][0]), free[k][1:]
		}
		try = append(try, d)
	}
	return try, wait
}

// Hold has the runs of messages wait.
func (g *Gate) Hold(ctx context.Context, msgs []core.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, errors.New("holding runs took too long"))
	defer cancel()
	if err := g.store.Hold(ctx, msgs); err != nil {
		return fmt.Errorf("hold runs: %w", err)
	}
	return nil
}

// Refused has those deliveries wait that were to start and did not.
func (g *Gate) Refused(ctx context.Context, wait, tried []core.Delivery, started []core.Started) error {
	got := make(map[core.RunKey]bool, len(started))
	for _, s := range started {
		got[s.Key] = true
	}
	var msgs []core.Message
	for _, d := range wait {
		msgs = append(msgs, d.Message)
	}
	for _, d := range tried {
		if len(d.Permits) > 0 && !got[d.Key] {
			msgs = append(msgs, d.Message)
		}
	}
	return g.Hold(ctx, msgs)
}

// Admit lets runs of some queues go and returns them.
func (g *Gate) Admit(ctx context.Context, queues []string, dispatchLease time.Duration) ([]core.Claimed, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, errors.New("admitting runs took too long"))
	defer cancel()
	got, err := g.store.Admit(ctx, core.AdmitOptions{Queues: queues, Most: most, DispatchLease: dispatchLease})
	if err != nil {
		return nil, fmt.Errorf("admit runs: %w", err)
	}
	return got, nil
}
