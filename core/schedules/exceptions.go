package schedules

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// SetException says what is different about one slot to come, instead of what was
// said before. core.ErrSlotClaimed for a slot that has been dealt with or is due.
func (s *Service) SetException(ctx context.Context, tenant, id uuid.UUID, e core.Exception) (core.Scheduled, error) {
	return s.except(ctx, tenant, id, "set exception", e.Slot, func(cur *core.Scheduled, slots spec.Spec) (*core.Exception, error) {
		return &e, s.checkException(cur, slots, &e)
	})
}

// DropException lets a slot be like the others again; one without an exception is
// left alone. core.ErrSlotClaimed as SetException.
func (s *Service) DropException(ctx context.Context, tenant, id uuid.UUID, slot time.Time) (core.Scheduled, error) {
	return s.except(ctx, tenant, id, "drop exception", slot, func(*core.Scheduled, spec.Spec) (*core.Exception, error) { return nil, nil })
}

// except changes the exception of a slot; nil is none. Those of slots that have
// passed go by the way.
func (s *Service) except(ctx context.Context, tenant, id uuid.UUID, doing string, slot time.Time,
	which func(*core.Scheduled, spec.Spec) (*core.Exception, error),
) (core.Scheduled, error) {
	return s.change(ctx, tenant, id, doing, func(cur *core.Scheduled, slots spec.Spec) (*core.Edit, error) {
		if err := checkSlot(cur, slots, slot); err != nil {
			return nil, err
		}
		e, err := which(cur, slots)
		if err != nil {
			return nil, err
		}
		next := cur.Schedule
		next.Rules.Exceptions = nil
		for _, old := range cur.Schedule.Rules.Exceptions {
			if old.Slot.After(cur.Timer.Done) && !old.Slot.Equal(slot) {
				next.Rules.Exceptions = append(next.Rules.Exceptions, old)
			}
		}
		if e != nil {
			next.Rules.Exceptions = append(next.Rules.Exceptions, *e)
		}
		slices.SortFunc(next.Rules.Exceptions, func(a, b core.Exception) int { return a.Slot.Compare(b.Slot) })
		if len(next.Rules.Exceptions) > core.MaxExceptions {
			return nil, core.Invalid("slot", "would be the %dth exception to come; a schedule has up to %d", len(next.Rules.Exceptions), core.MaxExceptions)
		}
		if sameContent(&cur.Schedule, &next) {
			return nil, nil
		}
		edit := plan.Edit(cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: slots})
		return &edit, nil
	})
}

// checkSlot refuses what is no slot, or none to come.
func checkSlot(cur *core.Scheduled, slots spec.Slots, slot time.Time) error {
	if got := slots.Prev(slot.Add(1)); !got.Equal(slot) {
		hint := "it has none after that"
		if next := slots.Next(slot); !next.IsZero() {
			hint = "the next one is " + next.UTC().Format(time.RFC3339)
		}
		return core.Invalid("slot", "is not a slot of this schedule; %s", hint)
	}
	if !slot.After(cur.Timer.Done) || !cur.Schedule.Effective(slot).After(cur.Now) {
		return core.ErrSlotClaimed
	}
	return nil
}

func (s *Service) checkException(cur *core.Scheduled, slots spec.Slots, e *core.Exception) error {
	switch {
	case !e.Skip && e.MoveTo.IsZero() && e.Payload == nil:
		return core.Invalid("skip", "is missing, and so are move_to and payload: say what is different about the slot")
	case e.Skip && (!e.MoveTo.IsZero() || e.Payload != nil):
		return core.Invalid("skip", "goes with neither move_to nor payload: a skipped slot does not run")
	case len(e.Note) > maxNoteBytes:
		return core.Invalid("note", "is longer than %d bytes", maxNoteBytes)
	}
	if e.Payload != nil {
		if err := s.checkJob(core.Job{Queue: cur.Schedule.Job.Queue, Payload: e.Payload}); err != nil {
			return atPayload(err)
		}
	}
	if e.MoveTo.IsZero() {
		return nil
	}
	// Slots start in their order, or the settled mark would not be one time.
	if !e.MoveTo.After(cur.Now) {
		return core.Invalid("move_to", "lies in the past; to run something now, trigger it")
	}
	if before := slots.Prev(e.Slot); !before.IsZero() && e.MoveTo.Before(cur.Schedule.Effective(before)) {
		return core.Invalid("move_to", "passes the slot before, which starts at %s", cur.Schedule.Effective(before).UTC().Format(time.RFC3339))
	}
	if after := slots.Next(e.Slot); !after.IsZero() && e.MoveTo.After(cur.Schedule.Effective(after)) {
		return core.Invalid("move_to", "passes the slot after, which starts at %s", cur.Schedule.Effective(after).UTC().Format(time.RFC3339))
	}
	return nil
}
