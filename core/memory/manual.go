package memory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// reservedKey is an idempotency key of a tenant.
type reservedKey struct {
	tenant uuid.UUID
	key    [32]byte
}

// Trigger implements core.ScheduleStore.
func (s *Store) Trigger(ctx context.Context, tenant uuid.UUID, m core.Manual) (core.Run, error) {
	now, err := s.begin(ctx, "trigger")
	if err != nil {
		return core.Run{}, err
	}
	defer s.mu.Unlock()
	if m.Payload != nil {
		if err := checkJSON(m.Payload); err != nil {
			return core.Run{}, err
		}
	}
	sch, t, ok := s.living(tenant, m.ScheduleID)
	if !ok || t.Fence != m.Fence {
		return core.Run{}, core.ErrChanged
	}
	var reserved *core.Reservation
	if len(m.Key) == len(reservedKey{}.key) {
		if reserved = s.reserved[reservedKey{tenant, [32]byte(m.Key)}]; reserved != nil && !reserved.Slot.IsZero() {
			return core.Run{}, core.ErrChanged
		}
	}
	a := s.admit(t, sch.Overlap == core.OverlapAllow, "")
	if a.busy {
		return core.Run{}, core.ErrRunLive
	}
	r := s.add(&a, core.PlannedRow{Slot: m.Slot, Cause: core.CauseManual, Queue: sch.Job.Queue, MaxAttempts: sch.MaxAttempts, Within: m.Within}, now)
	if r == nil {
		return core.Run{}, core.ErrChanged
	}
	if !a.allow {
		r.CoversTo = r.CoversFrom // empty: the chain of intervals passes it by
	}
	r.Payload = bytes.Clone(m.Payload)
	t.LastRun, t.openFrom, t.Fence = r.Key.Slot, time.Time{}, a.fence
	if reserved != nil {
		reserved.Slot = r.Key.Slot
	}
	return r.Run, nil
}

// CancelRun implements core.ScheduleStore.
func (s *Store) CancelRun(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, error) {
	now, err := s.begin(ctx, "cancel run")
	if err != nil {
		return core.Run{}, err
	}
	defer s.mu.Unlock()
	r := s.runs[own(key)]
	switch {
	case r == nil || r.TenantID != tenant:
		return core.Run{}, core.ErrNotFound
	case r.State == core.RunCanceled:
		return r.Run, nil
	case r.State.Final():
		return r.Run, core.ErrRunFinal
	}
	why := core.ReasonRequested
	if r.CancelRequested {
		why = r.Reason
	}
	r.cancel(why, now)
	return r.Run, nil
}

// Reserve implements core.ScheduleStore.
func (s *Store) Reserve(ctx context.Context, tenant uuid.UUID, r core.Request) (core.Reservation, error) {
	now, err := s.begin(ctx, "reserve")
	if err != nil {
		return core.Reservation{}, err
	}
	defer s.mu.Unlock()
	k := reservedKey{tenant, r.Key}
	if old := s.reserved[k]; old == nil || !old.At.After(now.Add(-core.ReservationTTL)) {
		s.reserved[k] = &core.Reservation{Request: r, At: now}
	}
	return *s.reserved[k], nil
}

// NoteLease implements core.ScheduleStore.
func (s *Store) NoteLease(ctx context.Context, tenant uuid.UUID, key [32]byte, msgs []core.Message) ([]core.Message, error) {
	if _, err := s.begin(ctx, "note lease"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.reserved[reservedKey{tenant, key}]
	if r == nil {
		return nil, core.ErrNotFound
	}
	if r.Leased == nil {
		for _, m := range msgs {
			r.Leased = append(r.Leased, core.Message{Key: m.Key, Fence: m.Fence})
		}
	}
	return slices.Clone(r.Leased), nil
}

// DropReservations implements core.UpkeepStore.
func (s *Store) DropReservations(ctx context.Context) (int, error) {
	now, err := s.begin(ctx, "drop reservations")
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := 0
	for k, r := range s.reserved {
		if n < 1000 && !r.At.After(now.Add(-core.ReservationTTL)) {
			delete(s.reserved, k)
			n++
		}
	}
	return n, nil
}
