package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

const (
	sweepLimit = 64 // runs of a shard
	lostError  = "heartbeats stopped"
)

// Sweep implements core.SweepStore.
func (s *Store) Sweep(ctx context.Context, o core.SweepOptions) ([]core.Swept, time.Time, error) {
	now, err := s.begin(ctx, "sweep")
	if err != nil {
		return nil, time.Time{}, err
	}
	defer s.mu.Unlock()
	out := []core.Swept{}
	for _, r := range s.awake(o, now) {
		from := r.State
		s.wake(r, o, now)
		out = append(out, core.Swept{Key: r.Key, TenantID: r.TenantID, Shard: r.shard, Fence: r.Fence, State: r.State, From: from, Queue: r.Queue,
			Admitted: r.gate == gateAdmitted, Waiting: r.gate == gateWaiting})
	}
	return out, now, nil
}

// Settle implements core.SweepStore.
func (s *Store) Settle(ctx context.Context, hs []core.Held) error {
	if _, err := s.begin(ctx, "settle"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, h := range hs {
		if r := s.runs[own(h.Key)]; r != nil && r.State == core.RunDead && r.Fence == h.Fence {
			r.WakeAt = time.Time{}
		}
	}
	return nil
}

// awake returns the runs that the sweep takes, soonest first within a shard.
func (s *Store) awake(o core.SweepOptions, now time.Time) []*run {
	shards := map[int16][]*run{}
	for _, r := range s.runs {
		if r.WakeAt.IsZero() || r.WakeAt.After(now) {
			continue
		}
		if r.State == core.RunQueued && slices.Contains(o.Queues, r.Queue) || r.State != core.RunQueued && slices.Contains(o.LostIn, r.shard) {
			shards[r.shard] = append(shards[r.shard], r)
		}
	}
	var out []*run
	for _, m := range o.Marks {
		due := slices.DeleteFunc(slices.Clone(shards[m.Shard]), func(r *run) bool { return r.WakeAt.Before(micro(m.Low)) })
		slices.SortFunc(due, func(a, b *run) int {
			return cmp.Or(a.WakeAt.Compare(b.WakeAt), slices.Compare(a.Key.ScheduleID[:], b.Key.ScheduleID[:]), a.Key.Slot.Compare(b.Key.Slot))
		})
		out = append(out, due[:min(len(due), sweepLimit)]...)
	}
	return out
}

// wake does to one run what its state asks for. The fence rises exactly when
// the holder changes.
func (s *Store) wake(r *run, o core.SweepOptions, now time.Time) {
	switch {
	case r.State == core.RunDead:
		r.WakeAt = time.Time{}
		if o.TellDead > 0 {
			r.WakeAt = after(now, o.TellDead)
		}
		return
	case r.State != core.RunRunning && r.late(now):
		r.State, r.Reason, r.WakeAt, r.FinishedAt = core.RunCanceled, core.ReasonLate, time.Time{}, now
		r.Fence++
		return
	case r.expired(now) && !r.CancelRequested:
		if r.State == core.RunRunning {
			r.fail(r.Fence, now, lostError)
			r.Error = lostError
			r.losses++
		}
		r.State, r.Reason, r.WakeAt, r.FinishedAt = core.RunDead, core.ReasonTotal, now, now
		r.Fence++
		return
	case r.State == core.RunQueued:
		r.WakeAt = after(now, min(max(o.DispatchLease, now.Sub(r.queuedAt)), o.MaxDispatchLease))
		return
	}
	lost := r.State == core.RunRunning
	if lost {
		r.fail(r.Fence, now, lostError)
		r.Error = lostError
	}
	r.Fence++
	r.holder, r.queuedAt = uuid.UUID{}, now
	switch {
	case r.CancelRequested:
		r.State, r.WakeAt, r.FinishedAt = core.RunCanceled, time.Time{}, now
	case lost && r.Attempt-r.credits >= r.MaxAttempts:
		r.State, r.Reason, r.WakeAt, r.FinishedAt = core.RunDead, core.ReasonLost, now, now
	case lost && r.losses > 0:
		r.State, r.WakeAt = core.RunRetrying, now.Add(s.delay(o.Backoff, r.losses-1))
	default:
		r.State, r.WakeAt = core.RunQueued, now
		if slices.Contains(o.Queues, r.Queue) {
			r.WakeAt = after(now, o.DispatchLease)
		}
	}
	if lost {
		r.losses++
	}
}

// delay returns a backoff that has doubled n times, half of it random.
func (s *Store) delay(b core.Backoff, n int) time.Duration {
	whole := min(float64(b.Initial)*float64(int64(1)<<min(n, 30)), float64(b.Max))
	return time.Duration(whole * (0.5 + s.Jitter()*0.5)).Truncate(time.Microsecond)
}
