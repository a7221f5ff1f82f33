package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/explain"
	"github.com/fencepost/fencepost/core/spec"
)

// Explanation is what a schedule did or will do around an instant.
type Explanation struct {
	Cur   core.Scheduled
	Slots spec.Spec
	At    explain.At
	// Before is the last slot that is not after At, After the first that is; nil if
	// there is none.
	Before, After *explain.Slot
}

// admitted are the states of a run that was admitted, whatever became of it.
var admitted = []core.RunState{
	core.RunQueued, core.RunRunning, core.RunRetrying, core.RunSucceeded, core.RunDead, core.RunCanceled,
}

// Explain says what became of the slots before and after an instant, or a time on
// the clocks of the schedule's zone; see explain.ParseAt. core.ErrNotFound.
func (s *Service) Explain(ctx context.Context, tenant, id uuid.UUID, at string) (Explanation, error) {
	cur, slots, err := s.load(ctx, tenant, id)
	if err != nil {
		return Explanation{}, fmt.Errorf("explain schedule: %w", err)
	}
	e := Explanation{Cur: cur, Slots: slots}
	if e.At, err = explain.ParseAt(at, slots.Zone, cur.Now); err != nil {
		return Explanation{}, err
	}
	before := slots.Prev(e.At.Add(time.Microsecond))
	after := slots.Next(e.At.Time)
	for _, side := range []struct {
		slot time.Time
		to   **explain.Slot
	}{{before, &e.Before}, {after, &e.After}} {
		if side.slot.IsZero() || !side.slot.Before(core.Forever) {
			continue
		}
		facts, err := s.facts(ctx, &cur, slots, side.slot)
		if err != nil {
			return Explanation{}, fmt.Errorf("explain schedule: %w", err)
		}
		judged := explain.Judge(facts)
		*side.to = &judged
	}
	return e, nil
}

// facts reads what is known about a slot.
func (s *Service) facts(ctx context.Context, cur *core.Scheduled, slots spec.Spec, slot time.Time) (explain.Facts, error) {
	f := explain.Facts{Cur: cur, Slots: slots, Slot: slot}
	tenant, id := cur.Schedule.TenantID, cur.Schedule.ID
	if !slot.After(cur.Timer.Done) {
		row, err := s.store.SlotRow(ctx, tenant, id, slot)
		if err != nil {
			return f, err
		}
		f.Row = row
	}
	there, err := s.store.SlotStates(ctx, tenant, id, []time.Time{slot})
	if err != nil {
		return f, err
	}
	var newest time.Time
	for _, r := range there {
		if r.Cause == core.CauseBackfill && r.Key.After(newest) {
			newest, f.Filled = r.Key, r.State
		}
	}
	first := slot
	if f.Row != nil {
		if f.Next, err = s.store.SlotRow(ctx, tenant, id, f.Row.Key.Slot.Add(time.Microsecond)); err != nil {
			return f, err
		}
		if !f.Row.RangeFrom.IsZero() {
			first = f.Row.RangeFrom
		}
	}
	page, err := s.store.Runs(ctx, tenant, id, core.RunQuery{Before: first, Limit: 1, States: admitted})
	if err == nil && len(page.Items) > 0 {
		f.Before = &page.Items[0]
	}
	return f, err
}
