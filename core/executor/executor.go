// Package executor runs jobs: it takes messages from the queue, starts their
// runs, keeps their leases alive while their targets work, and records how they
// ended.
//
// An executor trusts a lease only until the moment its last renewal was sent
// plus the lease's length less a margin, by whichever of the monotonic and the
// wall clock is further on. After that it ends the attempt, since another
// executor may have the run.
package executor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/limit"
)

// Store is what the executor needs of the database.
type Store interface {
	core.RunStore
	core.LimitStore
}

// Config tunes an executor. Store, Queue, Clock and Targets are required; the
// zero value of every other field is replaced by its default.
type Config struct {
	Store Store
	Queue core.Consumer
	Clock core.Clock
	// Targets are what executes the jobs of each queue; only these queues are
	// received from.
	Targets map[string]core.Target
	Logger  *slog.Logger // defaults to slog.Default
	// OnFinish, if not nil, is told of each accepted outcome. It must not
	// block.
	OnFinish func(Report)
	// Observe is told what the executor does; nil is told nothing.
	Observe core.Observe
	// Publisher, if not nil, takes the runs that waited for an attempt here to end,
	// because of a limit. Without it they wait for a claimer to look.
	Publisher core.Publisher

	Concurrency  int           // attempts at once for each queue; defaults to 64
	Lease        time.Duration // defaults to 30 s; renewed every third
	Timeout      time.Duration // of each call of the store; defaults to 10 s
	FinishWindow time.Duration // how long recording outcomes goes on after the end; defaults to 5 s
	Drain        time.Duration // how long attempts may go on after the end; defaults to 5 s
	// Grace is how long a target may go on after its context ended. A target
	// that is deaf to it loses its lease, and is not waited for at the end.
	// Defaults to 10 s.
	Grace time.Duration
}

// Report is an attempt that ended.
type Report struct {
	Execution core.Execution
	Queue     string
	State     core.RunState
	Error     string
	Took      time.Duration
}

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 64)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.FinishWindow = cmp.Or(c.FinishWindow, 5*time.Second)
	c.Drain = cmp.Or(c.Drain, 5*time.Second)
	c.Grace = cmp.Or(c.Grace, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// The causes with which an attempt's context ends.
var (
	// ErrLeaseLost means that the run is no longer this executor's.
	ErrLeaseLost = errors.New("the lease of the run was lost")
	// ErrCanceled means that somebody asked for the run's end.
	ErrCanceled = errors.New("the run was canceled")
	// ErrTimeout means that the attempt ran out of its time.
	ErrTimeout = errors.New("the attempt took longer than its timeout")
	// ErrTotalTimeout means that the run took longer, with all its attempts, than it
	// may.
	ErrTotalTimeout = errors.New("the run took longer than its total timeout")
	// ErrShutdown means that this executor ends and did not wait any longer.
	ErrShutdown = errors.New("the executor is shutting down")
)

// Executor is one executor. Run may be called once.
type Executor struct {
	c        Config
	mu       sync.Mutex
	live     map[core.Held]*attempt
	wake     chan struct{} // tells the keeper that an attempt began
	finishes chan finish
	ended    chan struct{} // closed when no more finishes are waited for
	nudges   *nudger
	gate     *limit.Gate
	admits   *limit.Admitter
}

// New returns an executor. It fails if a required field is missing.
func New(c Config) (*Executor, error) {
	if c.Store == nil || c.Queue == nil || c.Clock == nil || len(c.Targets) == 0 {
		return nil, errors.New("executor: store, queue, clock and targets are required")
	}
	c = c.withDefaults()
	e := &Executor{
		c: c, live: map[core.Held]*attempt{}, wake: make(chan struct{}, 1), finishes: make(chan finish, 1000), ended: make(chan struct{}),
		nudges: newNudger(c), gate: limit.New(c.Store, c.Clock, c.Timeout),
	}
	e.admits = limit.NewAdmitter(limit.AdmitterConfig{
		Gate: e.gate, Clock: c.Clock, Logger: c.Logger, DispatchLease: c.Lease, Send: e.publish,
		Serves: func(string) bool { return c.Publisher != nil },
	})
	return e, nil
}

// Run executes until ctx is done. Then it receives no more, lets the attempts
// under way go on for Drain, ends them, and records every outcome before it
// returns nil. Leases are renewed until the last attempt has ended.
func (e *Executor) Run(ctx context.Context) error {
	attempts, endAttempts := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endAttempts(ErrShutdown)
	keeper, stopKeeper := context.WithCancel(context.WithoutCancel(ctx))
	defer stopKeeper()
	nudging, stopNudger := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNudger()

	var background sync.WaitGroup
	background.Go(func() { e.keepLeases(keeper) })
	background.Go(func() {
		defer stopNudger()
		e.recordAll(ctx)
	})
	background.Go(func() { e.nudges.run(nudging) })
	background.Go(func() { _ = e.admits.Run(ctx) }) // it returns nil

	var receivers errgroup.Group
	for queue, target := range e.c.Targets {
		receivers.Go(func() error { return e.serve(ctx, attempts, endAttempts, queue, target) })
	}
	err := receivers.Wait()
	close(e.ended)
	stopKeeper()
	background.Wait()
	return err
}

// serve receives from one queue and runs what it gets, until ctx is done and
// all attempts have ended.
func (e *Executor) serve(ctx, attempts context.Context, end context.CancelCauseFunc, queue string, target core.Target) error {
	room := make(chan struct{}, e.c.Concurrency)
	var running sync.WaitGroup
	backlog := false // the queue had all that was asked for
	for ctx.Err() == nil {
		n := e.reserve(ctx, room, backlog)
		if n == 0 {
			break
		}
		ds, err := e.c.Queue.Receive(ctx, queue, n)
		backlog = len(ds) == n
		for range n - len(ds) {
			<-room
		}
		if err != nil {
			if ctx.Err() == nil {
				e.c.Logger.Error("receive", "queue", queue, "error", err)
				_ = e.c.Clock.Sleep(ctx, time.Second) // an error is ctx's end
			}
			continue
		}
		started, dropped := e.start(ctx, attempts, queue, ds)
		for range dropped {
			<-room
		}
		for _, a := range started {
			running.Go(func() {
				defer func() { <-room }()
				e.execute(a, target)
			})
		}
	}
	e.drain(end, &running)
	return nil
}

const (
	// fewRooms is what a call of a queue takes at most where calls cost money.
	fewRooms = 10
	gather   = 20 * time.Millisecond
)

// reserve waits for room for one attempt and takes what else is free; 0 means
// that ctx is done. When a backlog waits and little is free it takes, for a
// moment, what becomes free: an executor that is nearly full would else receive
// and start runs one by one.
func (e *Executor) reserve(ctx context.Context, room chan struct{}, backlog bool) int {
	select {
	case room <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	n := 1 + takeRoom(room)
	if few := min(fewRooms, e.c.Concurrency); backlog && n < few {
		over := e.c.Clock.After(gather)
		for n < few {
			select {
			case room <- struct{}{}:
				n++
			case <-over:
				return n
			case <-ctx.Done():
				return n
			}
		}
	}
	return n
}

// takeRoom takes what is free and returns how much that was.
func takeRoom(room chan struct{}) (n int) {
	for {
		select {
		case room <- struct{}{}:
			n++
		default:
			return n
		}
	}
}

func (e *Executor) drain(end context.CancelCauseFunc, running *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-e.c.Clock.After(e.c.Drain):
		end(ErrShutdown)
	}
	select {
	case <-done:
	case <-e.c.Clock.After(e.c.Grace):
		e.c.Logger.Error("attempts go on although they were ended; the sweep will take their runs")
	}
}

// start makes the deliveries' runs this executor's and returns their attempts,
// and how many deliveries were dropped. A start that failed is sent again for as
// long as its lease could be trusted had it happened: the token tells the
// database that it is the same delivery, and no attempt is lost to an outage.
func (e *Executor) start(ctx, attempts context.Context, queue string, ds []core.Delivery) ([]*attempt, int) {
	unique := newestOfEach(ds)
	limit := e.trustUntil(e.c.Clock.Now())
	gap := 100 * time.Millisecond
	for {
		sctx, cancel := context.WithTimeoutCause(attempts, e.c.Timeout, errors.New("start took too long"))
		sent := e.c.Clock.Now()
		tried, started, err := e.permitted(sctx, queue, unique)
		cancel()
		if err == nil {
			return e.admit(attempts, append(ds, tried...), started, sent, len(ds))
		}
		if ctx.Err() != nil || limit.left(e.c.Clock.Now()) <= 0 {
			// The dispatch lease, or the lease of a start that happened, ends
			// and the sweep brings the runs back.
			e.c.Logger.Error("start", "runs", len(unique), "error", err)
			return nil, len(ds)
		}
		_ = e.c.Clock.Sleep(ctx, gap) // an error is ctx's end
		gap = min(2*gap, time.Second)
	}
}

// newestOfEach drops doubled messages: a batch may name a run only once. Of
// several messages of a run only the one with the highest fence can start it.
func newestOfEach(ds []core.Delivery) []core.Delivery {
	place := make(map[core.RunKey]int, len(ds))
	out := make([]core.Delivery, 0, len(ds))
	for _, d := range ds {
		i, ok := place[d.Key]
		switch {
		case !ok:
			place[d.Key] = len(out)
			out = append(out, d)
		case d.Fence > out[i].Fence:
			out[i] = d
		}
	}
	return out
}

// admit registers started runs. Deliveries without a run are done with; of those with
// the same token the last counts.
func (e *Executor) admit(ctx context.Context, ds []core.Delivery, started []core.Started, sent time.Time, received int) ([]*attempt, int) {
	byToken := make(map[uuid.UUID]core.Delivery, len(ds))
	for _, d := range ds {
		byToken[d.Token] = d
	}
	var out []*attempt
	e.mu.Lock()
	for _, s := range started {
		if s.State != core.RunRunning {
			continue
		}
		actx, cancel := context.WithCancelCause(ctx)
		a := &attempt{Started: s, delivery: byToken[s.Token], ctx: actx, cancel: cancel, trust: e.trustUntil(sent)}
		delete(byToken, s.Token)
		e.live[a.held()] = a
		out = append(out, a)
		e.c.Observe.Tell(core.Event{Kind: core.EventStarted, Queue: s.Queue, N: 1, Took: s.Lag()})
	}
	e.c.Observe.Tell(core.Event{Kind: core.EventLive, N: len(e.live)})
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
	rest := make([]core.Delivery, 0, len(byToken))
	for _, d := range byToken {
		rest = append(rest, d)
	}
	e.done(ctx, rest)
	return out, received - len(out)
}

func (e *Executor) done(ctx context.Context, ds []core.Delivery) {
	if len(ds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), e.c.Timeout, errors.New("acknowledging took too long"))
	defer cancel()
	if err := e.c.Queue.Done(ctx, ds); err != nil {
		// They come again and are dropped then.
		e.c.Logger.Warn("acknowledge messages", "messages", len(ds), "error", err)
	}
}
