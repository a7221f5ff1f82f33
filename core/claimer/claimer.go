// Package claimer turns due timers into runs and hands them to the queue: it
// holds the coming minute of its shards in memory and claims each timer when
// its time comes.
//
// Any number of claimers may run. Shard leases spread the work among them;
// nothing rests on these leases, since each claim is fenced.
package claimer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
)

// Store is what the claimer needs of the database.
type Store interface {
	core.TimerStore
	core.SweepStore
	core.LeaseStore
	core.BackfillQueue
	core.LimitStore
}

// Config tunes a claimer. Store, Clock and Owner are required; the zero value
// of every other field is replaced by its default.
type Config struct {
	Store Store
	Clock core.Clock
	// Owner names this claimer among all that run; it is in the leases only.
	Owner string
	// Publisher takes the runs. Nil leaves them in the database, due for the
	// relay of whichever executor comes by.
	Publisher core.Publisher
	// Queues are the queues that Publisher serves.
	Queues []string
	// DeadLetters is the queue of Publisher that is told of each dead run, at least
	// once: the message names the run as any message does. Empty tells nobody.
	DeadLetters string
	// Shards fixes the shards, all of them held without a lease. Nil shares
	// them with the other claimers.
	Shards []int16
	Logger *slog.Logger // defaults to slog.Default
	// Observe is told what the claimer does; nil is told nothing.
	Observe core.Observe

	Batch            int           // timers in one claim, at most 1,000; defaults to 1,000
	Parallel         int           // claims under way at once; defaults to 4
	Held             int           // timers held in memory at most; defaults to 200,000
	Ahead            time.Duration // how far timers are loaded ahead; defaults to 60 s
	PreloadEvery     time.Duration // defaults to 15 s
	PollEvery        time.Duration // also of the sweep; defaults to 1 s
	StragglerEvery   time.Duration // how often polls look below the mark; defaults to 30 s
	ShardLease       time.Duration // defaults to 15 s, renewed every third
	DispatchLease    time.Duration // until an unstarted run is published again; defaults to 30 s
	MaxDispatchLease time.Duration // bound of the doubling; defaults to 10 min
	Backoff          core.Backoff  // of runs lost twice; defaults to 10 s and 1 h
	Timeout          time.Duration // of each call of the store or the queue; defaults to 10 s
}

// lowDistance is how far below the database's time the low-water marks stay:
// longer than any write may take, so that none becomes visible below a mark.
const lowDistance = 15 * time.Second

func (c Config) withDefaults() Config {
	c.Batch = cmp.Or(c.Batch, 1000)
	c.Parallel = cmp.Or(c.Parallel, 4)
	c.Held = cmp.Or(c.Held, 200_000)
	c.Ahead = cmp.Or(c.Ahead, time.Minute)
	c.PreloadEvery = cmp.Or(c.PreloadEvery, 15*time.Second)
	c.PollEvery = cmp.Or(c.PollEvery, time.Second)
	c.StragglerEvery = cmp.Or(c.StragglerEvery, 30*time.Second)
	c.ShardLease = cmp.Or(c.ShardLease, 15*time.Second)
	c.DispatchLease = cmp.Or(c.DispatchLease, 30*time.Second)
	c.MaxDispatchLease = cmp.Or(c.MaxDispatchLease, 10*time.Minute)
	c.Backoff = cmp.Or(c.Backoff, core.Backoff{Initial: 10 * time.Second, Max: time.Hour})
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Batch = min(c.Batch, 1000)
	if c.Publisher == nil {
		// Somebody else publishes: the run is due for that at once.
		c.DispatchLease, c.Queues = 0, nil
	}
	return c
}

// Claimer is one claimer. Run may be called once.
type Claimer struct {
	c      Config
	timers *timers
	shards *shardSet
	clock  *databaseClock
	out    *dispatcher
	dead   *deadLetters
	sweeps *sweeper
	fills  *backfiller
	// unknown are the claims whose outcome is still to be learned.
	unknown backlog

	// The process times of the last looks below the marks and of the last
	// preload, and the rounds in a row that failed.
	lastWide time.Time
	lastLoad time.Time
	failed   int
}

// New returns a claimer. It fails if a required field is missing.
func New(c Config) (*Claimer, error) {
	if c.Store == nil || c.Clock == nil || c.Owner == "" {
		return nil, errors.New("claimer: store, clock and owner are required")
	}
	if c.DeadLetters != "" && c.Publisher == nil {
		return nil, errors.New("claimer: dead letters need a publisher")
	}
	c = c.withDefaults()
	out, dead := newDispatcher(c), newDeadLetters(c)
	return &Claimer{
		c: c, timers: newTimers(c.Held), shards: newShardSet(c), clock: &databaseClock{clock: c.Clock}, out: out, dead: dead,
		sweeps: newSweeper(c, out, dead), fills: &backfiller{c: c, out: out},
	}, nil
}

// Run claims until ctx is done, then publishes what it claimed, gives its
// shards back and returns nil. It survives an unreachable database: it tries
// again with growing gaps and loses nothing, since all state is there.
func (c *Claimer) Run(ctx context.Context) error {
	// The dispatcher outlives the loop, whose last claim has runs to publish.
	dispatch, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var out errgroup.Group
	out.Go(func() error { return c.out.run(dispatch) })
	out.Go(func() error { return c.dead.run(dispatch) })
	var work errgroup.Group
	work.Go(func() error { return c.loop(ctx) })
	work.Go(func() error { return c.fills.run(ctx) })
	err := work.Wait()
	stop()
	err = errors.Join(err, out.Wait())
	c.shards.release(context.WithoutCancel(ctx))
	return err
}

// maxGap bounds the time between rounds while they fail.
const maxGap = 10 * time.Second

// passed reports whether a time has passed since then. A clock that was set back
// cannot tell: then it has, so that nobody waits for the clock.
func passed(since, now time.Time, d time.Duration) bool {
	took := now.Sub(since)
	return took >= d || took < 0
}

// left returns how long it is until the next round; none if a clock that was set
// back makes it longer than it can be.
func (c *Claimer) left(next time.Time) time.Duration {
	wait := next.Sub(c.c.Clock.Now())
	if wait > max(maxGap, c.c.PollEvery) {
		return 0
	}
	return wait
}

// loop does a round each second and claims timers at their times in between.
func (c *Claimer) loop(ctx context.Context) error {
	next := c.c.Clock.Now()
	for ctx.Err() == nil {
		if c.left(next) > 0 && !c.starved() {
			c.claimUntil(ctx, next)
			continue
		}
		next = c.pace(c.round(ctx))
	}
	return nil
}

// starved reports whether a look is due early: there are more due timers than
// the last one took, and room for them.
func (c *Claimer) starved() bool { return c.failed == 0 && c.timers.hungry() }

// pace returns when the next round is due: after PollEvery, after a growing gap
// while rounds fail, or at once while a sweep found more than it could take.
func (c *Claimer) pace(err error) time.Time {
	now := c.c.Clock.Now()
	if err == nil {
		if c.failed > 0 {
			c.c.Logger.Info("claimer works again", "owner", c.c.Owner, "failed_rounds", c.failed)
		}
		c.failed = 0
		if c.sweeps.more {
			return now
		}
		return now.Add(c.c.PollEvery)
	}
	c.failed++
	c.c.Observe.Tell(core.Event{Kind: core.EventFailed, What: "claimer"})
	if c.failed == 1 {
		c.c.Logger.Error("claimer round", "owner", c.c.Owner, "error", err)
	}
	return now.Add(min(c.c.PollEvery<<min(c.failed, 4), maxGap))
}

// round does what is due each second: leases, claims of unknown outcome,
// preload or poll, sweep.
func (c *Claimer) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.c.Timeout, errors.New("claimer round took too long"))
	defer cancel()
	now := c.c.Clock.Now()
	changed, err := c.shards.keep(ctx, now)
	if err != nil {
		return fmt.Errorf("keep shards: %w", err)
	}
	c.c.Observe.Tell(core.Event{Kind: core.EventShards, N: len(c.shards.held)})
	if changed {
		c.timers.keepOnly(c.shards.has)
		held := c.shards.list()
		c.fills.shards.Store(&held)
	}
	if err := c.resolveAll(ctx); err != nil {
		return err
	}
	wide := changed || passed(c.lastWide, now, c.c.StragglerEvery)
	if changed || c.timers.hungry() || passed(c.lastLoad, now, c.c.PreloadEvery) {
		err = c.preload(ctx, wide)
		c.lastLoad = now
	} else {
		err = c.poll(ctx, wide)
	}
	if err != nil {
		c.lastLoad = time.Time{}
		return err
	}
	if err := c.sweeps.sweep(ctx, c.shards.list(), c.c.Queues, wide); err != nil {
		return err
	}
	if wide {
		c.lastWide = now
	}
	c.c.Observe.Tell(core.Event{Kind: core.EventOffset, Took: c.clock.ahead()})
	return nil
}
