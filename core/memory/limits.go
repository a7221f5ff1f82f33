package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// The gates of a queued run.
const (
	gateOpen     = iota
	gateWaiting  // for a permit
	gateAdmitted // let go to get one
)

type limitKey struct {
	queue  string
	tenant uuid.UUID
}

// permit is a stored permit, with the run that has it or had it last.
type permit struct {
	version int64
	run     core.RunKey
	fence   int64
}

// limits of a run, by whose they are.
func (s *Store) limitsOf(r *run) []limitKey {
	var out []limitKey
	for _, tenant := range []uuid.UUID{core.AllTenants, r.TenantID} {
		if _, ok := s.limits[limitKey{r.Queue, tenant}]; ok {
			out = append(out, limitKey{r.Queue, tenant})
		}
	}
	return out
}

// holder returns the running run that has a permit, or nil.
func (s *Store) holder(p *permit) *run {
	if r := s.runs[p.run]; r != nil && r.State == core.RunRunning && r.Fence == p.fence {
		return r
	}
	return nil
}

// LimitedQueues implements core.LimitStore.
func (s *Store) LimitedQueues(ctx context.Context) ([]string, error) {
	if _, err := s.begin(ctx, "limited queues"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	names := []string{}
	for k := range s.limits {
		names = append(names, k.queue)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Permits implements core.LimitStore.
func (s *Store) Permits(ctx context.Context, ds []core.Delivery) (core.PermitView, error) {
	if _, err := s.begin(ctx, "read permits"); err != nil {
		return core.PermitView{}, err
	}
	defer s.mu.Unlock()
	out := core.PermitView{Under: map[core.RunKey][]core.Permit{}}
	seen := map[limitKey]bool{}
	for _, d := range ds {
		r := s.runs[own(d.Key)]
		if r == nil || r.State != core.RunQueued || r.Fence != d.Fence {
			continue
		}
		for _, k := range s.limitsOf(r) {
			out.Under[r.Key] = append(out.Under[r.Key], core.Permit{Queue: k.queue, TenantID: k.tenant})
			for n, p := range s.permits[k] {
				if !seen[k] && n < s.limits[k] && s.holder(p) == nil {
					out.Free = append(out.Free, core.Permit{Queue: k.queue, TenantID: k.tenant, N: n + 1, Version: p.version})
				}
			}
			seen[k] = true
		}
	}
	return out, nil
}

// permitted takes the permits of a delivery that are as they were seen, and reports
// whether they are all that its run needs.
func (s *Store) permitted(r *run, d core.Delivery) bool {
	taken := map[limitKey]bool{}
	for _, want := range d.Permits {
		k := limitKey{want.Queue, want.TenantID}
		if want.N < 1 || want.N > len(s.permits[k]) {
			continue
		}
		if p := s.permits[k][want.N-1]; p.version == want.Version {
			p.version, p.run, p.fence = p.version+1, r.Key, d.Fence+1
			taken[k] = want.N <= s.limits[k]
		}
	}
	for _, k := range s.limitsOf(r) {
		if !taken[k] {
			return false
		}
	}
	return true
}

// Hold implements core.LimitStore.
func (s *Store) Hold(ctx context.Context, msgs []core.Message) error {
	if _, err := s.begin(ctx, "hold"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, m := range msgs {
		if r := s.runs[own(m.Key)]; r != nil && r.State == core.RunQueued && r.Fence == m.Fence {
			r.gate = gateWaiting
		}
	}
	return nil
}

// Admit implements core.LimitStore.
func (s *Store) Admit(ctx context.Context, o core.AdmitOptions) ([]core.Claimed, error) {
	now, err := s.begin(ctx, "admit")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []core.Claimed{}
	for _, queue := range o.Queues {
		for range o.Most {
			r := s.nextWaiting(queue)
			if r == nil {
				break
			}
			r.gate, r.WakeAt = gateAdmitted, after(now, o.DispatchLease)
			out = append(out, core.Claimed{Key: r.Key, TenantID: r.TenantID, Fence: r.Fence, State: r.State, Queue: r.Queue})
		}
	}
	return out, nil
}

// used returns how many runs have a permit of a limit, or were let go to get one; of
// one tenant, or of all.
func (s *Store) used(k limitKey, tenant uuid.UUID) int {
	n := 0
	for _, p := range s.permits[k] {
		if r := s.holder(p); r != nil && (tenant == core.AllTenants || r.TenantID == tenant) {
			n++
		}
	}
	for _, r := range s.runs {
		if r.State == core.RunQueued && r.gate == gateAdmitted && r.Queue == k.queue && (tenant == core.AllTenants || r.TenantID == tenant) {
			n++
		}
	}
	return n
}

// nextWaiting returns the run of a queue to be let go next, or nil.
func (s *Store) nextWaiting(queue string) *run {
	all := limitKey{queue, core.AllTenants}
	if limit, ok := s.limits[all]; ok && s.used(all, core.AllTenants) >= limit {
		return nil
	}
	busy := map[uuid.UUID]int{}
	var best *run
	for _, r := range s.runs {
		if r.State != core.RunQueued || r.gate != gateWaiting || r.Queue != queue {
			continue
		}
		if _, ok := busy[r.TenantID]; !ok {
			busy[r.TenantID] = s.used(all, r.TenantID)
		}
		own := limitKey{queue, r.TenantID}
		if limit, ok := s.limits[own]; ok && s.used(own, r.TenantID) >= limit {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(busy[r.TenantID], busy[best.TenantID]), r.queuedAt.Compare(best.queuedAt),
			bytes.Compare(r.Key.ScheduleID[:], best.Key.ScheduleID[:]), r.Key.Slot.Compare(best.Key.Slot)) < 0 {
			best = r
		}
	}
	return best
}

// SetLimit implements core.LimitAdmin.
func (s *Store) SetLimit(ctx context.Context, l core.Limit) error {
	if _, err := s.begin(ctx, "set limit"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if l.Concurrency < 0 || l.Concurrency > core.MaxConcurrency {
		return bad("a concurrency is out of bounds")
	}
	k := limitKey{l.Queue, l.TenantID}
	s.limits[k] = l.Concurrency
	for len(s.permits[k]) < l.Concurrency {
		s.permits[k] = append(s.permits[k], &permit{version: 1})
	}
	return nil
}

// DropLimit implements core.LimitAdmin.
func (s *Store) DropLimit(ctx context.Context, queue string, tenant uuid.UUID) error {
	if _, err := s.begin(ctx, "drop limit"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, ok := s.limits[limitKey{queue, tenant}]; !ok {
		return core.ErrNotFound
	}
	delete(s.limits, limitKey{queue, tenant})
	return nil
}

// Limits implements core.LimitAdmin.
func (s *Store) Limits(ctx context.Context, tenant uuid.UUID) ([]core.Limit, error) {
	if _, err := s.begin(ctx, "list limits"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := []core.Limit{}
	for k, n := range s.limits {
		if k.tenant != tenant && k.tenant != core.AllTenants {
			continue
		}
		l := core.Limit{Queue: k.queue, TenantID: k.tenant, Concurrency: n}
		for _, p := range s.permits[k] {
			if r := s.holder(p); r != nil && r.TenantID == tenant {
				l.Running++
			}
		}
		for _, r := range s.runs {
			if r.State == core.RunQueued && r.gate == gateWaiting && r.Queue == k.queue && r.TenantID == tenant {
				l.Waiting++
			}
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b core.Limit) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), bytes.Compare(a.TenantID[:], b.TenantID[:]))
	})
	return out, nil
}
