package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/backfill"
)

// BackfillOptions say which past slots are to run and how. Zero bounds of runs and
// concurrency are the defaults.
type BackfillOptions struct {
	backfill.Order
	MaxRuns     int
	Concurrency int
	Payload     json.RawMessage // instead of the schedule's; nil keeps that
	DryRun      bool
	// Request is the request under its idempotency key; nil for one without.
	Request *core.Request
}

// BackfillPlan is what a backfill would run or runs.
type BackfillPlan struct {
	// Backfill is nil in a dry run.
	Backfill *core.Backfill
	// Again says that the request had made it before.
	Again bool
	// Slots are those that were asked for, in the order in which they run.
	Slots []backfill.Planned
	// Unsettled is the first slot that was asked for and is left to the schedule,
	// which has not dealt with it yet; zero if there is none.
	Unsettled time.Time
}

// Runs returns how many runs are to be made.
func (p *BackfillPlan) Runs() int {
	n := 0
	for _, s := range p.Slots {
		if !s.Run.Key.IsZero() {
			n++
		}
	}
	return n
}

// Backfill runs past slots of a schedule, or says what it would. More of them than
// MaxRuns are refused, never cut. The slots are those of the schedule as it is now,
// and stay what they are when it is edited; what is run is the job as it is then.
func (s *Service) Backfill(ctx context.Context, tenant, id uuid.UUID, o BackfillOptions) (BackfillPlan, error) {
	plan, err := s.backfill(ctx, tenant, id, o)
	if err != nil {
		return BackfillPlan{}, fmt.Errorf("backfill: %w", refused(err))
	}
	return plan, nil
}

func (s *Service) backfill(ctx context.Context, tenant, id uuid.UUID, o BackfillOptions) (BackfillPlan, error) {
	if err := checkBackfill(&o); err != nil {
		return BackfillPlan{}, err
	}
	bid, err := s.backfillID(ctx, tenant, o)
	if err != nil {
		return BackfillPlan{}, err
	}
	if made, err := s.store.Backfill(ctx, tenant, bid); o.Request != nil && !errors.Is(err, core.ErrNotFound) {
		return BackfillPlan{Backfill: &made, Again: true}, err
	}
	cur, slots, err := s.load(ctx, tenant, id)
	if err != nil {
		return BackfillPlan{}, err
	}
	if o.Payload != nil {
		if err := s.checkJob(core.Job{Queue: cur.Schedule.Job.Queue, Payload: o.Payload}); err != nil {
			return BackfillPlan{}, atPayload(err)
		}
	}
	all, more := backfill.Slots(o.Order, slots, cur.Timer.Done, core.MaxBackfillRuns)
	if more {
		return BackfillPlan{}, core.Invalid("to", "is too far from from: there are more than %d slots between them; ask for less", core.MaxBackfillRuns)
	}
	there, err := s.slotStates(ctx, tenant, id, all)
	if err != nil {
		return BackfillPlan{}, err
	}
	plan := BackfillPlan{Slots: backfill.Plan(o.Order, slots, all, there)}
	if next := slots.Next(later(cur.Timer.Done, o.From.Add(-time.Microsecond))); !next.IsZero() && next.Before(o.To) {
		plan.Unsettled = next
	}
	if n := plan.Runs(); n > o.MaxRuns {
		return BackfillPlan{}, core.Invalid("max_runs", "is %d, and %d slots would run; ask for less, or raise it, up to %d", o.MaxRuns, n, core.MaxBackfillRuns)
	}
	if o.DryRun {
		return plan, nil
	}
	if plan.Runs() == 0 {
		return BackfillPlan{}, core.Invalid("from", "and to leave no slot to run: %d are between them, and all of them succeeded or are alive; rerun runs them again", len(plan.Slots))
	}
	return plan, s.createBackfill(ctx, &cur.Schedule, bid, o, &plan)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func checkBackfill(o *BackfillOptions) error {
	if o.MaxRuns == 0 {
		o.MaxRuns = core.DefaultBackfillRuns
	}
	if o.Concurrency == 0 {
		o.Concurrency = 1
	}
	switch {
	case o.From.IsZero():
		return core.Invalid("from", "is required")
	case o.To.IsZero():
		return core.Invalid("to", "is required")
	case !o.To.After(o.From):
		return core.Invalid("to", "must be after from")
	case o.MaxRuns < 1 || o.MaxRuns > core.MaxBackfillRuns:
		return core.Invalid("max_runs", "must be from 1 to %d", core.MaxBackfillRuns)
	case o.Concurrency < 1 || o.Concurrency > core.MaxBackfillConcurrency:
		return core.Invalid("concurrency", "must be from 1 to %d", core.MaxBackfillConcurrency)
	}
	return nil
}

// backfillID returns the id of a new backfill: that of its request, if it has a key.
func (s *Service) backfillID(ctx context.Context, tenant uuid.UUID, o BackfillOptions) (uuid.UUID, error) {
	if o.Request == nil || o.DryRun {
		return uuid.NewV7()
	}
	origin, err := s.Reserve(ctx, tenant, *o.Request)
	if err != nil {
		return uuid.UUID{}, err
	}
	return origin.ID(0)
}

func (s *Service) slotStates(ctx context.Context, tenant, id uuid.UUID, all []time.Time) ([]core.SlotState, error) {
	var out []core.SlotState
	for chunk := range slices.Chunk(all, 1000) {
		got, err := s.store.SlotStates(ctx, tenant, id, chunk)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// createBackfill stores what was planned. It may be sent again.
func (s *Service) createBackfill(ctx context.Context, cur *core.Schedule, id uuid.UUID, o BackfillOptions, plan *BackfillPlan) error {
	var runs []core.BackfillRun
	for _, p := range plan.Slots {
		if !p.Run.Key.IsZero() {
			runs = append(runs, p.Run)
		}
	}
	b := core.Backfill{
		ID: id, TenantID: cur.TenantID, ScheduleID: cur.ID, From: o.From, To: o.To, Descending: o.Descending, Rerun: o.Rerun,
		Concurrency: o.Concurrency, Payload: o.Payload,
	}
	err := s.store.CreateBackfill(ctx, b, runs)
	for n := 0; n < 2 && errors.Is(err, core.ErrUnknownOutcome); n++ {
		err = s.store.CreateBackfill(ctx, b, runs)
	}
	if err != nil {
		return err
	}
	made, err := s.store.Backfill(ctx, cur.TenantID, id)
	plan.Backfill = &made
	return err
}

// GetBackfill returns one backfill; core.ErrNotFound.
func (s *Service) GetBackfill(ctx context.Context, tenant, id uuid.UUID) (core.Backfill, error) {
	return s.store.Backfill(ctx, tenant, id)
}

// Backfills returns the newest 100 backfills of a schedule; core.ErrNotFound.
func (s *Service) Backfills(ctx context.Context, tenant, schedule uuid.UUID) ([]core.Backfill, error) {
	all, err := s.store.Backfills(ctx, tenant, schedule)
	if err == nil && len(all) == 0 {
		_, err = s.store.Get(ctx, tenant, schedule)
	}
	if err != nil {
		return nil, fmt.Errorf("list backfills: %w", err)
	}
	return all, nil
}

// CancelBackfill lets a backfill make no more runs, and cancels those that are alive
// if that is asked for. Sent again it changes nothing more; core.ErrNotFound.
func (s *Service) CancelBackfill(ctx context.Context, tenant, id uuid.UUID, runs bool) (core.Backfill, error) {
	err := s.store.CancelBackfill(ctx, tenant, id)
	for n := 0; n < 2 && errors.Is(err, core.ErrUnknownOutcome); n++ {
		err = s.store.CancelBackfill(ctx, tenant, id)
	}
	if err != nil {
		return core.Backfill{}, fmt.Errorf("cancel backfill: %w", err)
	}
	b, err := s.store.Backfill(ctx, tenant, id)
	if err != nil || !runs {
		return b, err
	}
	for i, key := range b.Live {
		if b.States[i] == "" || b.States[i].Final() {
			continue
		}
		_, err := s.CancelRun(ctx, tenant, core.RunKey{Region: s.region, ScheduleID: b.ScheduleID, Slot: key})
		if err != nil && !errors.Is(err, core.ErrRunFinal) && !errors.Is(err, core.ErrNotFound) {
			return b, err
		}
	}
	return s.store.Backfill(ctx, tenant, id)
}
