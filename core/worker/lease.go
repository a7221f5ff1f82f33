package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// The bounds of a lease.
const (
	MaxBatch     = 100
	DefaultLease = 30 * time.Second
	MinLease     = 5 * time.Second
	MaxLease     = time.Hour
	MaxWait      = 20 * time.Second
)

var (
	// ErrUnknownQueue answers a queue that workers cannot lease from here.
	ErrUnknownQueue = &core.Error{Code: core.CodeNotFound, Kind: "unknown_queue", Field: "queue", Message: "is not leased to workers here; start with --worker-queue to let them"}
	// ErrDeadline answers a heartbeat of an attempt whose time is over.
	ErrDeadline = &core.Error{Code: core.CodeStale, Kind: "attempt_timed_out", Message: "the attempt took longer than its timeout: stop, and finish it as failed"}
)

// Ask is a wish for runs. Zero bounds are the defaults: one run, no waiting.
type Ask struct {
	Queue string
	Max   int
	Wait  time.Duration
	Lease time.Duration
	// Request is the request under its idempotency key: sent again it gets the same
	// runs, as long as they are held under the same fence. Nil for one without.
	Request *core.Request
}

// Leased is a run that a worker holds.
type Leased struct {
	core.Started
	Until time.Time // the lease's end, by this process's clock
	// Deadline is when the attempt has to end; zero if it may take as long as it
	// is renewed.
	Deadline time.Time
}

func (a *Ask) check(d *Desk) error {
	if a.Max == 0 {
		a.Max = 1
	}
	if a.Lease == 0 {
		a.Lease = DefaultLease
	}
	known := false
	for _, q := range d.queues {
		known = known || q == a.Queue
	}
	switch {
	case !known:
		return ErrUnknownQueue
	case a.Max < 1 || a.Max > MaxBatch:
		return core.Invalid("max", "must be from 1 to %d", MaxBatch)
	case a.Wait < 0 || a.Wait > MaxWait:
		return core.Invalid("wait", "must be from 0s to %s", core.FormatDuration(MaxWait))
	}
	return checkLease(a.Lease)
}

func checkLease(lease time.Duration) error {
	if lease < MinLease || lease > MaxLease {
		return core.Invalid("lease", "must be from %s to %s", core.FormatDuration(MinLease), core.FormatDuration(MaxLease))
	}
	return nil
}

// Lease gives a worker runs of its tenant, and waits for the first. It answers none
// when the time is up or the desk closes.
func (d *Desk) Lease(ctx context.Context, tenant uuid.UUID, a Ask) ([]Leased, error) {
	if err := a.check(d); err != nil {
		return nil, err
	}
	if a.Request != nil {
		before, err := d.store.Reserve(ctx, tenant, *a.Request)
		switch {
		case err != nil:
			return nil, fmt.Errorf("lease: %w", err)
		case before.Body != a.Request.Body:
			return nil, core.ErrKeyReused
		case len(before.Leased) > 0:
			return d.start(ctx, tenant, a, before.Leased)
		}
	}
	until := d.clock.After(a.Wait)
	for {
		msgs := d.take(ctx, laneKey{a.Queue, tenant}, a.Max, until)
		if len(msgs) == 0 {
			return nil, nil
		}
		if a.Request != nil {
			noted, err := d.store.NoteLease(ctx, tenant, a.Request.Key, msgs)
			if err != nil {
				return nil, fmt.Errorf("lease: %w", err)
			}
			msgs = noted // another request under the key was first
		}
		got, err := d.start(ctx, tenant, a, msgs)
		if err != nil || len(got) > 0 || a.Request != nil {
			return got, err
		}
	}
}

// start makes runs the worker's. A delivery is known by the request's key and the
// run, so that a start sent again recognizes its rows.
func (d *Desk) start(ctx context.Context, tenant uuid.UUID, a Ask, msgs []core.Message) ([]Leased, error) {
	ds := make([]core.Delivery, len(msgs))
	for i, m := range msgs {
		token := uuid.New()
		if a.Request != nil {
			token = uuid.NewSHA1(tenant, append(a.Request.Key[:], m.Key.ID()...))
		}
		ds[i] = core.Delivery{Message: m, Token: token}
	}
	sent := d.clock.Now()
	started, err := d.permitted(ctx, a, ds)
	for n := 0; n < 2 && errors.Is(err, core.ErrUnknownOutcome); n++ {
		sent = d.clock.Now()
		started, err = d.permitted(ctx, a, ds)
	}
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	var out []Leased
	for _, s := range started {
		if s.State != core.RunRunning {
			continue // canceled, too late, or another queue's by now
		}
		d.observe.Tell(core.Event{Kind: core.EventStarted, Queue: s.Queue, N: 1, Took: s.Lag()})
		l := Leased{Started: s, Until: sent.Add(a.Lease)}
		for _, limit := range []time.Duration{s.Timeout, value(s.Left)} {
			if end := sent.Add(limit); limit > 0 && (l.Deadline.IsZero() || end.Before(l.Deadline)) {
				l.Deadline = end
			}
		}
		out = append(out, l)
	}
	return out, nil
}

func value(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

// Beat is the answer to a heartbeat.
type Beat struct {
	Until           time.Time
	CancelRequested bool
}

// Heartbeat keeps a run a worker's, but not beyond the timeout of its attempt.
// core.ErrStaleFence if it is another's or has ended; ErrDeadline; core.ErrNotFound.
func (d *Desk) Heartbeat(ctx context.Context, tenant uuid.UUID, h core.Held, lease time.Duration) (Beat, error) {
	if lease == 0 {
		lease = DefaultLease
	}
	if err := checkLease(lease); err != nil {
		return Beat{}, err
	}
	run, _, err := d.store.Run(ctx, tenant, h.Key)
	if err != nil {
		return Beat{}, err
	}
	cur, err := d.store.Get(ctx, tenant, h.Key.ScheduleID)
	switch {
	case errors.Is(err, core.ErrNotFound): // deleted: its timeout is not known any more
	case err != nil:
		return Beat{}, err
	case cur.Schedule.Timeout > 0 && run.State == core.RunRunning && run.Fence == h.Fence:
		left := run.StartedAt.Add(cur.Schedule.Timeout).Sub(cur.Now)
		if left <= 0 {
			return Beat{}, ErrDeadline
		}
		lease = min(lease, left)
	}
	sent := d.clock.Now()
	beats, err := d.store.Heartbeat(ctx, []core.Held{h}, lease)
	switch {
	case err != nil:
		return Beat{}, fmt.Errorf("heartbeat: %w", err)
	case len(beats) == 0:
		d.observe.Tell(core.Event{Kind: core.EventStale, What: "heartbeat", N: 1})
		return Beat{}, core.ErrStaleFence
	}
	return Beat{sent.Add(lease), beats[0].CancelRequested}, nil
}
