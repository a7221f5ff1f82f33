package memory

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Clone returns a store with the same rows and a clock of its own: for tests that look
// at every way in which a state can go on.
func (s *Store) Clone(clock core.Clock) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := New(s.region, clock)
	out.Jitter = s.Jitter
	out.schedules = cloned(s.schedules)
	out.timers = cloned(s.timers)
	out.runs = cloned(s.runs)
	for _, r := range out.runs {
		r.failed = slices.Clone(r.failed)
	}
	out.backfills = cloned(s.backfills)
	for id, b := range out.backfills {
		b.Live = slices.Clone(b.Live)
		out.backfills[id] = b
	}
	out.reserved = cloned(s.reserved)
	out.leases, out.claimers, out.keys = maps.Clone(s.leases), maps.Clone(s.claimers), maps.Clone(s.keys)
	out.alerts, out.days, out.calendars = maps.Clone(s.alerts), maps.Clone(s.days), maps.Clone(s.calendars)
	out.limits = maps.Clone(s.limits)
	for k, all := range s.permits {
		for _, p := range all {
			copied := *p
			out.permits[k] = append(out.permits[k], &copied)
		}
	}
	return out
}

// cloned copies a map and what it points to.
func cloned[K uuid.UUID | core.RunKey | reservedKey, V any](in map[K]*V) map[K]*V {
	out := make(map[K]*V, len(in))
	for k, v := range in {
		copied := *v
		out[k] = &copied
	}
	return out
}
