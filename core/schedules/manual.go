package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// TriggerOptions say how a manual run differs. The zero value is a run as the
// schedule has it.
type TriggerOptions struct {
	// Payload is what the run gets instead of the schedule's; nil keeps that.
	Payload json.RawMessage
	// Request is the request under its idempotency key; nil for one without.
	Request *core.Request
}

// Triggered is a manual run. Again says that the request had made it before.
type Triggered struct {
	core.Run
	Again bool
}

// Trigger makes a manual run at once; core.ErrRunLive while a run is alive and
// overlap is not allow. Once a write's outcome is unknown its slot names the
// request, or its idempotency key does: before it is sent again, and before a
// refusal is believed, the run is looked for.
func (s *Service) Trigger(ctx context.Context, tenant, id uuid.UUID, o TriggerOptions) (Triggered, error) {
	run, again, err := s.trigger(ctx, tenant, id, o)
	if err != nil {
		return Triggered{}, fmt.Errorf("trigger schedule: %w", refused(err))
	}
	return Triggered{run, again}, nil
}

func (s *Service) trigger(ctx context.Context, tenant, id uuid.UUID, o TriggerOptions) (run core.Run, again bool, err error) {
	m := core.Manual{ScheduleID: id, Payload: o.Payload}
	sent := false // a write whose outcome is unknown
	for n := range maxRounds {
		if run, found, err := s.triggered(ctx, tenant, id, o.Request); found || err != nil {
			return run, !sent, err
		}
		cur, err := s.store.Get(ctx, tenant, id)
		if err != nil {
			return core.Run{}, false, err
		}
		if err := s.prepare(&m, &cur, o, n, sent); err != nil {
			return core.Run{}, false, err
		}
		run, err := s.store.Trigger(ctx, tenant, m)
		if err == nil {
			return run, false, nil
		}
		if sent = sent || errors.Is(err, core.ErrUnknownOutcome); sent && o.Request == nil {
			if run, found, lerr := s.look(ctx, tenant, id, m.Slot); found || lerr != nil {
				return run, false, lerr
			}
		}
		if !errors.Is(err, core.ErrUnknownOutcome) && !errors.Is(err, core.ErrChanged) {
			return core.Run{}, false, err
		}
	}
	return core.Run{}, false, core.ErrChanged
}

// prepare brings a manual run to what is known of its schedule.
func (s *Service) prepare(m *core.Manual, cur *core.Scheduled, o TriggerOptions, round int, sent bool) error {
	if m.Payload != nil {
		if err := s.checkJob(core.Job{Queue: cur.Schedule.Job.Queue, Payload: m.Payload}); err != nil {
			return atPayload(err)
		}
	}
	m.Fence, m.Within = cur.Timer.Fence, cur.Schedule.Rules.TotalTimeout
	if !sent { // the microsecond of the round before may be another run's
		m.Slot = manualSlot(cur.Now.Add(time.Duration(round) * time.Microsecond))
	}
	if o.Request != nil {
		m.Key = o.Request.Key[:]
	}
	return nil
}

// atPayload names the field of a refused payload as a trigger has it.
func atPayload(err error) error {
	var ce *core.Error
	if !errors.As(err, &ce) {
		return err
	}
	moved := *ce
	moved.Field = strings.TrimPrefix(moved.Field, "job.")
	return &moved
}

// triggered finds the run that a request with a key has made.
func (s *Service) triggered(ctx context.Context, tenant, id uuid.UUID, r *core.Request) (core.Run, bool, error) {
	if r == nil {
		return core.Run{}, false, nil
	}
	o, err := s.Reserve(ctx, tenant, *r)
	if err != nil || o.reservation.Slot.IsZero() {
		return core.Run{}, false, err
	}
	run, _, err := s.store.Run(ctx, tenant, core.RunKey{Region: s.region, ScheduleID: id, Slot: o.reservation.Slot})
	return run, err == nil, err
}

// look finds the run that a trigger may have made. When that cannot be learned
// the request's outcome stays unknown.
func (s *Service) look(ctx context.Context, tenant, id uuid.UUID, slot time.Time) (core.Run, bool, error) {
	run, _, err := s.store.Run(ctx, tenant, core.RunKey{Region: s.region, ScheduleID: id, Slot: slot})
	switch {
	case err == nil:
		return run, true, nil
	case errors.Is(err, core.ErrNotFound):
		return core.Run{}, false, nil
	default:
		return core.Run{}, false, fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
	}
}

// manualSlot returns t with its microseconds within the millisecond made
// non-zero: slots are whole milliseconds, so a manual run can never be one.
func manualSlot(t time.Time) time.Time {
	t = t.Truncate(time.Microsecond)
	if t.Nanosecond()%int(time.Millisecond) == 0 {
		t = t.Add(time.Microsecond)
	}
	return t
}

// CancelRun ends a waiting run and asks a running one to end; sent again it changes
// nothing. core.ErrNotFound; core.ErrRunFinal with the state of one that ended
// otherwise.
func (s *Service) CancelRun(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, error) {
	run, err := s.store.CancelRun(ctx, tenant, key)
	for n := 0; n < 2 && errors.Is(err, core.ErrUnknownOutcome); n++ {
		run, err = s.store.CancelRun(ctx, tenant, key)
	}
	if errors.Is(err, core.ErrRunFinal) {
		err = &core.Error{
			Code: core.CodeConflict, Kind: core.ErrRunFinal.Kind,
			Message: fmt.Sprintf("the run has ended: it is %s", run.State), Current: string(run.State),
		}
	}
	if err != nil {
		return core.Run{}, fmt.Errorf("cancel run: %w", err)
	}
	return run, nil
}
