package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Redrive lets a dead run be tried again, with as many attempts more as its schedule
// has, and returns it. One that is alive, as after a redrive whose answer was
// lost, is returned as it is. core.ErrRunNotDead of one that ended otherwise;
// core.ErrSuperseded as the store.
func (s *Service) Redrive(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, error) {
	run, err := s.redrive(ctx, tenant, key)
	if err != nil {
		return core.Run{}, fmt.Errorf("redrive run: %w", err)
	}
	return run, nil
}

func (s *Service) redrive(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, error) {
	sent := int64(0) // the fence of the dead run that a redrive was sent for
	for range maxRounds {
		run, _, err := s.store.Run(ctx, tenant, key)
		switch {
		case err != nil:
			return core.Run{}, err
		case !run.State.Final(), sent != 0 && run.Fence != sent: // it may have ended again
			return run, nil
		case run.State != core.RunDead:
			return core.Run{}, notDead(run)
		}
		cur, err := s.store.Get(ctx, tenant, key.ScheduleID)
		if err != nil {
			return core.Run{}, err
		}
		err = s.store.Redrive(ctx, tenant, core.Redrive{Key: key, Fence: cur.Timer.Fence, Within: cur.Schedule.Rules.TotalTimeout})
		sent = run.Fence
		if err != nil && !errors.Is(err, core.ErrUnknownOutcome) && !errors.Is(err, core.ErrChanged) && !errors.Is(err, core.ErrRunNotDead) {
			return core.Run{}, err
		}
	}
	return core.Run{}, core.ErrChanged
}

func notDead(run core.Run) error {
	e := *core.ErrRunNotDead
	e.Message, e.Current = fmt.Sprintf("only dead runs can be redriven, and this one is %s", run.State), string(run.State)
	return &e
}

// maxRedrives is how many runs one call redrives: each takes some statements.
const maxRedrives = 100

// RedriveQuery chooses dead runs. A zero field chooses all.
type RedriveQuery struct {
	// Schedule is the only one whose runs are meant; Schedules chooses among all
	// otherwise.
	Schedule  uuid.UUID
	Schedules core.ScheduleQuery
	// From and Before bound the slots; Before is exclusive.
	From, Before time.Time
	Reasons      []core.Reason
	Limit        int // 1 to 100
	// DryRun says what would be redriven.
	DryRun bool
	After  RedrivePosition
}

// RedrivePosition is where a page ended: behind a schedule, or behind one of its
// runs if Slot is not zero.
type RedrivePosition struct {
	Schedule uuid.UUID
	Slot     time.Time
}

// Redriven is a dead run that was chosen. Err says why it was left alone, nil that
// it was not.
type Redriven struct {
	Run core.Run
	Err error
}

// RedrivePage is a page of these; it can be empty although there are more.
type RedrivePage struct {
	Items []Redriven
	More  bool
	Last  RedrivePosition
}

// maxLooks bounds how often one call reads schedules or runs.
const maxLooks = 20

// RedriveAll lets the chosen dead runs be tried again. Of a schedule whose overlap
// is not allow that is the last run that was admitted, since the others are
// superseded. An outage ends the page behind what was done.
func (s *Service) RedriveAll(ctx context.Context, tenant uuid.UUID, q RedriveQuery) (RedrivePage, error) {
	page := RedrivePage{More: true, Last: q.After}
	q.Limit = min(max(q.Limit, 1), maxRedrives)
	for looks := 0; looks < maxLooks && page.More && len(page.Items) < q.Limit; looks++ {
		err := s.redriveNext(ctx, tenant, q, &page)
		switch {
		case err != nil && len(page.Items) == 0:
			return RedrivePage{}, fmt.Errorf("redrive runs: %w", err)
		case err != nil:
			return page, nil
		}
	}
	return page, nil
}

// redriveNext goes on with the schedule in which the page stands, or with the next
// ones.
func (s *Service) redriveNext(ctx context.Context, tenant uuid.UUID, q RedriveQuery, page *RedrivePage) error {
	only := q.Schedule
	if !page.Last.Slot.IsZero() {
		only = page.Last.Schedule
	}
	if only != uuid.Nil {
		cur, err := s.store.Get(ctx, tenant, only)
		if errors.Is(err, core.ErrNotFound) && q.Schedule == uuid.Nil { // deleted meanwhile
			page.Last = RedrivePosition{Schedule: only}
			return nil
		}
		if err != nil {
			return err
		}
		return s.redriveOf(ctx, tenant, q, &cur, page)
	}
	q.Schedules.After, q.Schedules.Limit = page.Last.Schedule, readChunk
	list, err := s.store.List(ctx, tenant, q.Schedules)
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := s.redriveOf(ctx, tenant, q, &list.Items[i], page); err != nil {
			return err
		}
		if len(page.Items) == q.Limit || !page.Last.Slot.IsZero() {
			return nil
		}
	}
	page.More, page.Last = list.More, RedrivePosition{Schedule: list.Last}
	return nil
}

// redriveOf adds dead runs of one schedule to the page.
func (s *Service) redriveOf(ctx context.Context, tenant uuid.UUID, q RedriveQuery, cur *core.Scheduled, page *RedrivePage) error {
	before := q.Before
	if page.Last.Schedule == cur.Schedule.ID && !page.Last.Slot.IsZero() {
		before = page.Last.Slot
	}
	runs, err := s.dead(ctx, tenant, q, cur, before, q.Limit-len(page.Items))
	if err != nil {
		return err
	}
	for _, run := range runs.Items {
		item := Redriven{Run: run}
		if !q.DryRun {
			redriven, err := s.redrive(ctx, tenant, run.Key)
			switch {
			case err == nil:
				item.Run = redriven
			case core.CodeOf(err) == core.CodeUnavailable:
				return err
			}
			item.Err = err
		}
		page.Items = append(page.Items, item)
		page.Last = RedrivePosition{cur.Schedule.ID, run.Key.Slot}
	}
	page.Last = RedrivePosition{Schedule: cur.Schedule.ID}
	if runs.More {
		page.Last.Slot = runs.Last
	}
	page.More = q.Schedule == uuid.Nil || runs.More
	return nil
}

// dead returns up to limit of a schedule's dead runs that the query chooses, newest
// first.
func (s *Service) dead(ctx context.Context, tenant uuid.UUID, q RedriveQuery, cur *core.Scheduled, before time.Time, limit int) (core.RunPage, error) {
	rq := core.RunQuery{From: q.From, Before: before, Limit: limit, States: []core.RunState{core.RunDead}}
	allow := cur.Schedule.Overlap == core.OverlapAllow
	if last := cur.Timer.LastRun; !allow {
		if cur.LastState != core.RunDead || last.Before(q.From) || !before.IsZero() && !last.Before(before) {
			return core.RunPage{}, nil
		}
		rq.From, rq.Before, rq.Limit = last, last.Add(time.Microsecond), 1
	}
	page, err := s.store.Runs(ctx, tenant, cur.Schedule.ID, rq)
	page.More = page.More && allow
	page.Items = slices.DeleteFunc(page.Items, func(r core.Run) bool {
		return len(q.Reasons) > 0 && !slices.Contains(q.Reasons, r.Reason)
	})
	return page, err
}
