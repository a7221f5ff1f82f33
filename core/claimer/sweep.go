package claimer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/core"
)

// sweepLimit is how many runs of a shard one sweep takes; sweep.sql has it.
const sweepLimit = 64

// sweeper takes runs whose wake_at has passed: those nobody started, those
// whose heartbeats stopped, those whose retry is due. It is not safe for
// concurrent use.
type sweeper struct {
	c    Config
	out  *dispatcher
	dead *deadLetters
	lows map[int16]time.Time
	// relays says that this one takes queued runs over for the first time.
	relays bool
	more   bool // the last sweep found as much as it may take
}

func newSweeper(c Config, out *dispatcher, dead *deadLetters) *sweeper {
	return &sweeper{c: c, out: out, dead: dead, lows: map[int16]time.Time{}}
}

// sweep takes the queued runs of the given queues, whichever shard they are
// of, since another claimer's process may not serve these queues; and what is
// lost or due in the held shards.
func (s *sweeper) sweep(ctx context.Context, held []int16, queues []string, wide bool) error {
	s.more = false
	shards := held
	if len(queues) > 0 {
		shards = core.AllShards()
	}
	if len(shards) == 0 {
		return nil
	}
	marks := make([]core.ShardMark, len(shards))
	for i, shard := range shards {
		marks[i] = core.ShardMark{Shard: shard}
		if !wide {
			marks[i].Low = s.lows[shard]
		}
	}
	// The sweep goes on when ctx ends, as a claim does: what it took is to be
	// published.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.c.Timeout, errors.New("sweep took too long"))
	defer cancel()
	swept, now, err := s.c.Store.Sweep(ctx, core.SweepOptions{
		Marks: marks, DispatchLease: s.c.DispatchLease, MaxDispatchLease: s.c.MaxDispatchLease, Backoff: s.c.Backoff,
		Queues: queues, LostIn: held, TellDead: s.dead.lease(),
	})
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	taken := map[int16]int{}
	for _, r := range swept {
		taken[r.Shard]++
		s.follow(r)
	}
	for _, shard := range shards {
		if taken[shard] >= sweepLimit {
			s.more = true // and the mark stays below what is left
			continue
		}
		if len(queues) == len(s.c.Queues) { // else the others' runs are left below
			s.lows[shard] = now.Add(-lowDistance)
		}
	}
	return nil
}

func (s *sweeper) follow(r core.Swept) {
	if r.From == core.RunRunning {
		s.c.Logger.Warn("run lost its heartbeats", "run_id", r.Key.ID(), "schedule_id", r.Key.ScheduleID, "slot", r.Key.Slot, "state", r.State)
	}
	s.tell(r)
	switch {
	case r.Waiting: // for a permit; it is let go when there is one
	case r.State == core.RunQueued:
		s.out.put(outgoing{lane{r.Queue, r.Admitted}, r.Message()})
	case r.From == core.RunDead:
		s.dead.add(r.Message())
	}
}

// tell says what the sweep found. A relay takes over what claimers left to it, which is
// nothing to tell of.
func (s *sweeper) tell(r core.Swept) {
	tell := func(kind core.EventKind) { s.c.Observe.Tell(core.Event{Kind: kind, Queue: r.Queue, N: 1}) }
	switch {
	case r.From == core.RunRunning:
		tell(core.EventLost)
	case r.State == core.RunQueued && r.From == core.RunRetrying:
		tell(core.EventRetried)
	case r.State == core.RunQueued && !r.Waiting && !s.relays:
		tell(core.EventRepublished)
	}
	if r.State == core.RunDead && r.From != core.RunDead {
		tell(core.EventDead)
	}
}
