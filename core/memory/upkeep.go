package memory

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

const (
	oneDay    = 24 * time.Hour // of UTC, which has no other days
	daysAhead = 7
)

// EnsurePartitions implements core.UpkeepStore. Partitions are no more than
// names here, by which DropExpired drops whole days.
func (s *Store) EnsurePartitions(ctx context.Context) error {
	now, err := s.begin(ctx, "ensure partitions")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	for n := -1; n <= daysAhead; n++ {
		s.days[now.Truncate(oneDay).Add(time.Duration(n)*oneDay)] = true
	}
	return nil
}

// DropExpired implements core.UpkeepStore. Rows of no partition go one by one
// once they ended that long ago.
func (s *Store) DropExpired(ctx context.Context, keep time.Duration) (int, error) {
	now, err := s.begin(ctx, "drop expired")
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	cutoff := now.Add(-keep)
	maps.DeleteFunc(s.backfills, func(_ uuid.UUID, b *backfill) bool {
		return !b.FinishedAt.IsZero() && b.FinishedAt.Before(cutoff)
	})
	maps.DeleteFunc(s.schedules, func(_ uuid.UUID, c *schedule) bool { return c.deleted && c.UpdatedAt.Before(cutoff) })
	s.handOver(cutoff)
	alive := map[time.Time]bool{}
	for k, r := range s.runs {
		if !r.WakeAt.IsZero() {
			alive[k.Slot.Truncate(oneDay)] = true
		}
	}
	gone := map[time.Time]bool{}
	for day := range s.days {
		gone[day] = !alive[day] && !day.Add(oneDay).After(cutoff)
	}
	maps.DeleteFunc(s.runs, func(k core.RunKey, r *run) bool {
		day := k.Slot.Truncate(oneDay)
		if s.days[day] {
			return gone[day]
		}
		return r.State.Final() && k.Slot.Before(cutoff) && r.FinishedAt.Before(cutoff)
	})
	before := len(s.days)
	maps.DeleteFunc(s.days, func(day time.Time, _ bool) bool { return gone[day] })
	return before - len(s.days), nil
}

// handOver writes into timers where their covered interval is still open, if
// the row that says so may go: it did not succeed, or was manual.
func (s *Store) handOver(cutoff time.Time) {
	for _, t := range s.timers {
		p := s.last(t)
		if p == nil || !p.State.Final() || !t.openFrom.IsZero() || !p.Key.Slot.Before(cutoff) || p.CoversTo.IsZero() ||
			p.State == core.RunSucceeded && p.Cause != core.CauseManual {
			continue
		}
		t.openFrom = s.coversFrom(t)
		t.Fence++
	}
}

// Ping implements core.UpkeepStore.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.begin(ctx, "ping")
	if err != nil {
		return err
	}
	s.mu.Unlock()
	return nil
}
