package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// Outcome says what became of a schedule that was given whole.
type Outcome string

// The outcomes.
const (
	Created   Outcome = "created"
	Replaced  Outcome = "replaced"
	Unchanged Outcome = "unchanged" // it was as given, and no version was made
)

// GetNamed returns the schedule with this name; core.ErrNotFound.
func (s *Service) GetNamed(ctx context.Context, tenant uuid.UUID, name string) (core.Scheduled, error) {
	if checkName(name) != nil {
		return core.Scheduled{}, core.ErrNotFound
	}
	// A schedule that is renamed between the two reads leaves its name to another.
	for range maxRounds {
		found, err := s.store.Named(ctx, tenant, []string{name})
		switch {
		case err != nil:
			return core.Scheduled{}, fmt.Errorf("get schedule by name: %w", err)
		case len(found) == 0:
			return core.Scheduled{}, core.ErrNotFound
		}
		got, err := s.store.Get(ctx, tenant, found[0].Schedule.ID)
		if errors.Is(err, core.ErrNotFound) || err == nil && got.Schedule.Name != name {
			continue
		}
		return got, err
	}
	return core.Scheduled{}, fmt.Errorf("get schedule by name: %w", core.ErrChanged)
}

// Put makes the schedule of the given name what f says, with the defaults for
// what f leaves open, whether it exists or not. Equal content makes no version.
// A dry run stores nothing and returns what would be there; a schedule that would
// be created has no id then. It may be sent again.
func (s *Service) Put(ctx context.Context, tenant uuid.UUID, f Fields, dryRun bool) (core.Scheduled, Outcome, error) {
	if s.match.Exists || s.match.Set {
		return s.putExisting(ctx, tenant, f, dryRun)
	}
	r := s.Many(ctx, tenant, []Fields{f}, ManyOptions{Put: true, DryRun: dryRun})[0]
	if r.Err != nil || r.Outcome != Created || dryRun {
		return r.Scheduled, r.Outcome, r.Err
	}
	made, err := s.store.Get(ctx, tenant, r.Scheduled.Schedule.ID)
	return made, Created, err
}

// putExisting is Put where a schedule must be there already.
func (s *Service) putExisting(ctx context.Context, tenant uuid.UUID, f Fields, dryRun bool) (core.Scheduled, Outcome, error) {
	name := ""
	set(f.Name, &name)
	if !dryRun {
		if err := s.checkCalendar(ctx, tenant, f); err != nil {
			return core.Scheduled{}, "", err
		}
	}
	cur, err := s.GetNamed(ctx, tenant, name)
	if err == nil {
		var outcome Outcome
		if cur, outcome, err = s.replace(ctx, cur, f, dryRun); err == nil {
			return cur, outcome, nil
		}
	}
	if errors.Is(err, core.ErrNotFound) || errors.Is(err, errRenamed) {
		err = errNoVersion
	}
	return core.Scheduled{}, "", err
}

// errRenamed says that a schedule got another name between look-up and write.
var errRenamed = errors.New("the schedule was renamed meanwhile")

// replace makes an existing schedule what f says. When it is no longer there
// under its name the error is core.ErrNotFound or errRenamed.
func (s *Service) replace(ctx context.Context, cur core.Scheduled, f Fields, dryRun bool) (core.Scheduled, Outcome, error) {
	id, tenant := cur.Schedule.ID, cur.Schedule.TenantID
	edit, err := s.planPut(&cur, f)
	if merr := s.match.meets(cur.Schedule.Version, err == nil && edit == nil); merr != nil {
		return core.Scheduled{}, "", fmt.Errorf("replace schedule: %w", merr)
	}
	switch {
	case err != nil:
		return core.Scheduled{}, "", err
	case edit == nil:
		return cur, Unchanged, nil
	case dryRun:
		would := edited(cur, edit)
		return would, Replaced, s.fill(ctx, tenant, &would)
	}
	outcome := Unchanged // should somebody else have put the same meanwhile
	got, err := s.change(ctx, tenant, id, "replace schedule", func(cur *core.Scheduled, _ spec.Spec) (*core.Edit, error) {
		if cur.Schedule.Name != *f.Name {
			return nil, errRenamed
		}
		edit, err := s.planPut(cur, f)
		if edit != nil {
			outcome = Replaced
		}
		return edit, err
	})
	return got, outcome, err
}

// planPut plans the change that makes a schedule what f says, nil if it is.
func (s *Service) planPut(cur *core.Scheduled, f Fields) (*core.Edit, error) {
	old := &cur.Schedule
	slots, err := spec.Of(cur)
	if err != nil {
		return nil, fmt.Errorf("load the stored spec: %w", err)
	}
	next, err := s.whole(old.TenantID, old.ID, f)
	if err != nil {
		return nil, err
	}
	next.Region, next.Version, next.CreatedAt, next.UpdatedAt = old.Region, old.Version, old.CreatedAt, old.UpdatedAt
	if f.Paused == nil || *f.Paused == old.Paused { // a state, not content
		next.Paused, next.Rules.PausedUntil, next.Rules.PauseNote = old.Paused, old.Rules.PausedUntil, old.Rules.PauseNote
	}
	next.Rules.Exceptions = old.Rules.Exceptions
	parsed, err := parseWhole(f, &next, old, cur.Now)
	if err != nil {
		return nil, err
	}
	return s.replan(cur, next, slots, parsed)
}

// parseWhole reads the spec that f asks for as parse does, but a spec that comes
// to what is stored is no new one, however it is written: a time that has passed
// may be put again.
func parseWhole(f Fields, next, old *core.Schedule, now time.Time) (spec.Spec, error) {
	next.Spec = *f.Spec
	set(f.Anchor, &next.Anchor)
	parsed, err := spec.Load(next)
	switch {
	case err == nil && parsed.Relative:
		return spec.Spec{}, refuseRelative()
	case err != nil || parsed.Text != old.Spec || parsed.Zone != old.TimeZone || !parsed.Anchor.Equal(old.Anchor):
		parsed, err = spec.Parse(next, now)
	case next.DSTGap != old.DSTGap || next.DSTOverlap != old.DSTOverlap || boundsChanged(&next.Rules, &old.Rules):
		err = spec.CheckFires(next, parsed, now)
	}
	if err != nil {
		return spec.Spec{}, err
	}
	next.Spec, next.TimeZone, next.Anchor = parsed.Text, parsed.Zone, parsed.Anchor
	return parsed, nil
}

func refuseRelative() error {
	return core.Invalid("spec", `counts from now, so that it would ask for another time whenever it is put; write the time, such as "at 2027-01-05T09:00"`)
}

// edited returns what an edit would make of a schedule.
func edited(cur core.Scheduled, e *core.Edit) core.Scheduled {
	cur.Schedule = e.Schedule
	cur.Schedule.Version++
	cur.Schedule.UpdatedAt = cur.Now
	if e.MoveTimer {
		cur.Timer.FireAt = e.NextAt
		if e.NextAt.Before(cur.Now) {
			cur.Timer.FireAt = cur.Now
		}
	}
	return cur
}

// unmade returns what creating a schedule would make. Its id is not known yet,
// nor when it fires if that depends on the id.
func unmade(n core.NewSchedule, parsed spec.Spec, now time.Time) core.Scheduled {
	sch := n.Schedule
	out := core.Scheduled{Schedule: sch, Timer: core.Timer{FireAt: n.NextAt}, Now: now}
	if parsed.FromID || sch.Spread() > 0 {
		out.Timer.FireAt = time.Time{}
	}
	out.Schedule.ID, out.Schedule.Version = uuid.UUID{}, 1
	out.Schedule.CreatedAt, out.Schedule.UpdatedAt = now, now
	return out
}
