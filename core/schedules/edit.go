package schedules

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// Create stores a new schedule and returns it as stored. The errors name the
// field; nothing is stored then. A write of unknown outcome is sent again, which
// is safe: the schedule's id is new.
func (s *Service) Create(ctx context.Context, tenant uuid.UUID, f Fields) (core.Scheduled, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return core.Scheduled{}, fmt.Errorf("make a schedule id: %w", err)
	}
	return s.create(ctx, tenant, id, f)
}

func (s *Service) create(ctx context.Context, tenant, id uuid.UUID, f Fields) (core.Scheduled, error) {
	sch, err := s.whole(tenant, id, f)
	if err == nil {
		err = s.checkCalendar(ctx, tenant, f)
	}
	if err != nil {
		return core.Scheduled{}, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return core.Scheduled{}, fmt.Errorf("create schedule: %w", err)
	}
	n, _, err := s.first(f, sch, now)
	if err != nil {
		return core.Scheduled{}, err
	}
	if err := s.createOne(ctx, n, now); err != nil {
		return core.Scheduled{}, fmt.Errorf("create schedule: %w", refused(err))
	}
	return s.store.Get(ctx, tenant, id)
}

// createOne stores a new schedule, if its tenant may have one more.
func (s *Service) createOne(ctx context.Context, n core.NewSchedule, now time.Time) error {
	tenant := n.Schedule.TenantID
	granted, err := s.quota.reserve(ctx, tenant, 1, now)
	switch {
	case err != nil:
		return err
	case granted == 0:
		return s.quota.exceeded()
	}
	for range 3 {
		err = s.store.Create(ctx, n.Schedule, n.NextAt, n.Done)
		if !errors.Is(err, core.ErrUnknownOutcome) {
			break
		}
	}
	made := 1
	if err != nil && !errors.Is(err, core.ErrUnknownOutcome) {
		made = 0
	}
	s.quota.settle(tenant, 1, made)
	return err
}

// first plans a new schedule, which is whole but for its spec.
func (s *Service) first(f Fields, sch core.Schedule, now time.Time) (core.NewSchedule, spec.Spec, error) {
	parsed, err := parse(f, &sch, now)
	if err != nil {
		return core.NewSchedule{}, spec.Spec{}, err
	}
	if err := s.checkInterval(&sch, parsed); err != nil {
		return core.NewSchedule{}, spec.Spec{}, err
	}
	if err := checkWindow(&sch, parsed, now); err != nil {
		return core.NewSchedule{}, spec.Spec{}, err
	}
	n := core.NewSchedule{Schedule: sch}
	n.NextAt, n.Done = plan.First(&sch, parsed, now)
	if sch.Paused {
		n.NextAt = core.Forever
	}
	return n, parsed, nil
}

// whole returns a schedule of the given fields and the defaults of the others,
// with everything checked but what makes up the spec.
func (s *Service) whole(tenant, id uuid.UUID, f Fields) (core.Schedule, error) {
	sch := core.Schedule{
		Region: s.region, TenantID: tenant, ID: id, Misfire: core.MisfireRunOnce, MisfireGrace: core.DefaultMisfireGrace,
		Overlap: core.OverlapSkip, Timeout: core.DefaultTimeout, MaxAttempts: core.DefaultMaxAttempts,
	}
	switch {
	case f.Spec == nil:
		return sch, core.Invalid("spec", `is missing; write a cron expression, "every 15m", "at 2027-01-05T09:00" or "in 3d"`)
	case f.Job == nil:
		return sch, core.Invalid("job", "is missing")
	case f.Job.Queue == defaultQueue:
		sch.Timeout = core.DefaultHTTPTimeout
	}
	return sch, s.apply(f, &sch)
}

// refused says in the user's terms that the database did not take a value.
func refused(err error) error {
	if errors.Is(err, core.ErrBadRow) {
		return &core.Error{Code: core.CodeInvalid, Kind: "invalid", Field: "job.payload", Message: "holds a value that the database cannot store"}
	}
	return err
}

// parse reads the spec that f asks for and puts its normalized form into sch. A
// spec that is sent as it is stored is no new one.
func parse(f Fields, sch *core.Schedule, now time.Time) (spec.Spec, error) {
	isNew := f.Spec != nil && !sameSpec(*f.Spec, sch)
	if isNew {
		// A new spec starts without the old one's anchor.
		sch.Spec, sch.Anchor = *f.Spec, time.Time{}
	}
	isNew = isNew || f.Anchor != nil && !f.Anchor.Equal(sch.Anchor)
	set(f.Anchor, &sch.Anchor)
	var parsed spec.Spec
	var err error
	if isNew {
		parsed, err = spec.Parse(sch, now)
	} else if parsed, err = spec.Load(sch); err == nil && (f.DSTGap != nil || f.DSTOverlap != nil || f.TimeZone != nil || f.StartsAt != nil || f.EndsAt != nil) {
		err = spec.CheckFires(sch, parsed, now)
	}
	if err != nil {
		return spec.Spec{}, err
	}
	sch.Spec, sch.TimeZone, sch.Anchor = parsed.Text, parsed.Zone, parsed.Anchor
	return parsed, nil
}

// sameSpec reports whether text is another way to write the stored spec: what
// has not changed is not judged again, as a time that has passed would be.
func sameSpec(text string, sch *core.Schedule) bool {
	if text == sch.Spec {
		return true
	}
	other := *sch
	other.Spec = text
	parsed, err := spec.Load(&other)
	return err == nil && !parsed.Relative && parsed.Text == sch.Spec && parsed.Zone == sch.TimeZone
}

// Edit changes the given fields of a schedule. Slots that the old content owes
// get their rows first. An edit that changes nothing makes no new version.
func (s *Service) Edit(ctx context.Context, tenant, id uuid.UUID, f Fields) (core.Scheduled, error) {
	if err := s.checkCalendar(ctx, tenant, f); err != nil {
		return core.Scheduled{}, err
	}
	return s.change(ctx, tenant, id, "edit schedule", func(cur *core.Scheduled, old spec.Spec) (*core.Edit, error) {
		next := cur.Schedule
		if err := s.apply(f, &next); err != nil {
			return nil, err
		}
		parsed, err := parse(f, &next, cur.Now)
		if err != nil {
			return nil, err
		}
		return s.replan(cur, next, old, parsed)
	})
}

// replan plans the change of a schedule to new content, nil if there is none.
func (s *Service) replan(cur *core.Scheduled, next core.Schedule, old, parsed spec.Spec) (*core.Edit, error) {
	if sameContent(&cur.Schedule, &next) {
		return nil, nil
	}
	if err := checkWindow(&next, parsed, cur.Now); err != nil && next.Window != cur.Schedule.Window {
		return nil, err
	}
	changed := slotsChanged(&old, &parsed) || boundsChanged(&cur.Schedule.Rules, &next.Rules)
	if parsed.OneTime && changed && !parsed.Prev(core.Forever).After(cur.Now) {
		return nil, core.Invalid("spec", "lies in the past, which an edit cannot ask for; to run something now, trigger it")
	}
	if changed {
		if err := s.checkInterval(&next, parsed); err != nil {
			return nil, err
		}
	}
	if changed {
		next.Rules.Exceptions = still(next.Rules.Exceptions, parsed)
	}
	e := plan.Edit(cur, plan.Change{
		Old: cur.Schedule, New: next, OldSlots: old, NewSlots: parsed,
		SlotsChanged: changed,
	})
	return &e, nil
}

// still returns the exceptions whose slots are some of the new spec, too.
func still(all []core.Exception, slots spec.Slots) []core.Exception {
	var left []core.Exception
	for _, e := range all {
		if slots.Prev(e.Slot.Add(1)).Equal(e.Slot) {
			left = append(left, e)
		}
	}
	return left
}

func boundsChanged(a, b *core.Rules) bool {
	return !a.StartsAt.Equal(b.StartsAt) || !a.EndsAt.Equal(b.EndsAt)
}

// slotsChanged compares what decides about slots. Zone and clock changes do so
// for cron alone, and there by what their policies came to: an edit that moves no
// slot must not settle one that is waiting for its start.
func slotsChanged(a, b *spec.Spec) bool {
	if a.Text != b.Text || !a.Anchor.Equal(b.Anchor) {
		return true
	}
	if a.OneTime && b.OneTime {
		return !a.Prev(core.Forever).Equal(b.Prev(core.Forever))
	}
	if b.OneTime || strings.HasPrefix(b.Text, "every ") {
		return false
	}
	return a.Zone != b.Zone || a.DST.Gap != b.DST.Gap || a.DST.Overlap != b.DST.Overlap
}

// sameContent compares what users set.
func sameContent(a, b *core.Schedule) bool {
	x, y := *a, *b
	if !x.Anchor.Equal(y.Anchor) || !sameJSON(x.Job.Payload, y.Job.Payload) {
		return false
	}
	x.Anchor, x.Job.Payload, x.Version, x.CreatedAt, x.UpdatedAt = y.Anchor, y.Job.Payload, y.Version, y.CreatedAt, y.UpdatedAt
	return reflect.DeepEqual(x, y)
}

// Pause stops new runs, until a resume or until the given time; those claimed
// before go on. Pausing the same way twice is no error.
func (s *Service) Pause(ctx context.Context, tenant, id uuid.UUID, o PauseOptions) (core.Scheduled, error) {
	return s.change(ctx, tenant, id, "pause schedule", func(cur *core.Scheduled, slots spec.Spec) (*core.Edit, error) {
		o.Until = o.Until.Truncate(time.Microsecond)
		if err := checkPause(o, cur.Now); err != nil {
			return nil, err
		}
		r := &cur.Schedule.Rules
		if cur.Schedule.PausedAt(cur.Now) {
			if o == (PauseOptions{}) || r.PausedUntil.Equal(o.Until) && r.PauseNote == o.Note {
				return nil, nil
			}
		}
		e := plan.Pause(cur, slots, o.Until, o.Note)
		return &e, nil
	})
}

// Resume lets the schedule fire again from its next slot; the slots that passed
// meanwhile are recorded in one skipped row. Resuming twice is no error.
func (s *Service) Resume(ctx context.Context, tenant, id uuid.UUID) (core.Scheduled, error) {
	return s.change(ctx, tenant, id, "resume schedule", func(cur *core.Scheduled, slots spec.Spec) (*core.Edit, error) {
		if !cur.Schedule.PausedAt(cur.Now) {
			return nil, nil
		}
		e := plan.Resume(cur, slots)
		return &e, nil
	})
}

// change reads a schedule, plans and writes, again as long as somebody else
// changed it in between. A nil edit changes nothing. An unknown outcome is
// resolved by reading: the next version with the wished content is ours.
func (s *Service) change(ctx context.Context, tenant, id uuid.UUID, doing string,
	planIt func(*core.Scheduled, spec.Spec) (*core.Edit, error),
) (core.Scheduled, error) {
	var sent *core.Edit
	for range maxRounds {
		cur, slots, err := s.load(ctx, tenant, id)
		if err != nil {
			return core.Scheduled{}, fmt.Errorf("%s: %w", doing, err)
		}
		if sent != nil && cur.Schedule.Version == sent.Version+1 && sameContent(&cur.Schedule, &sent.Schedule) {
			return cur, nil
		}
		e, err := planIt(&cur, slots)
		if merr := s.match.meets(cur.Schedule.Version, err == nil && e == nil); merr != nil {
			return core.Scheduled{}, fmt.Errorf("%s: %w", doing, merr)
		}
		if err != nil || e == nil {
			return cur, err
		}
		err = s.store.Apply(ctx, tenant, *e)
		switch {
		case err == nil:
			return s.store.Get(ctx, tenant, id)
		case errors.Is(err, core.ErrUnknownOutcome):
			sent = e
		case !errors.Is(err, core.ErrChanged):
			return core.Scheduled{}, fmt.Errorf("%s: %w", doing, refused(err))
		}
	}
	return core.Scheduled{}, fmt.Errorf("%s: %w", doing, core.ErrChanged)
}

func (s *Service) load(ctx context.Context, tenant, id uuid.UUID) (core.Scheduled, spec.Spec, error) {
	cur, err := s.store.Get(ctx, tenant, id)
	if err != nil {
		return core.Scheduled{}, spec.Spec{}, err
	}
	slots, err := spec.Of(&cur)
	return cur, slots, err
}

// Delete removes a schedule and cancels its live runs; its history stays until
// it expires.
func (s *Service) Delete(ctx context.Context, tenant, id uuid.UUID) error {
	return s.remove(ctx, tenant, id, "")
}

// DeleteNamed is Delete for the schedule that has this name when it goes.
func (s *Service) DeleteNamed(ctx context.Context, tenant uuid.UUID, name string) error {
	for range maxRounds {
		found, err := s.GetNamed(ctx, tenant, name)
		if err != nil {
			return err
		}
		if err := s.remove(ctx, tenant, found.Schedule.ID, name); !errors.Is(err, errRenamed) {
			return err
		}
	}
	return fmt.Errorf("delete schedule: %w", core.ErrChanged)
}

// remove deletes a schedule while it has this name; errRenamed once it has another
// one. Under the empty name it may have any.
func (s *Service) remove(ctx context.Context, tenant, id uuid.UUID, name string) error {
	unknown := false
	for range maxRounds {
		cur, slots, err := s.load(ctx, tenant, id)
		if unknown && errors.Is(err, core.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete schedule: %w", err)
		}
		if name != "" && cur.Schedule.Name != name {
			return errRenamed
		}
		if err := s.match.meets(cur.Schedule.Version, false); err != nil {
			return fmt.Errorf("delete schedule: %w", err)
		}
		err = s.store.Delete(ctx, tenant, plan.Delete(&cur, slots))
		switch {
		case err == nil:
			s.quota.settle(tenant, 0, -1)
			return nil
		case errors.Is(err, core.ErrUnknownOutcome):
			unknown = true
		case !errors.Is(err, core.ErrChanged):
			return fmt.Errorf("delete schedule: %w", err)
		}
	}
	return fmt.Errorf("delete schedule: %w", core.ErrChanged)
}
