package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
)

// MaxMany bounds how many schedules one call of Many takes.
const MaxMany = 1000

const (
	// namesAtOnce bounds the memory that existing schedules take.
	namesAtOnce = 100
	// writesAtOnce is how many schedules are replaced side by side.
	writesAtOnce = 4
	// manyRounds bounds how often a name is looked up again because its holder
	// changed meanwhile.
	manyRounds = 5
)

// ManyOptions says what Many does. The zero value creates.
type ManyOptions struct {
	// Put replaces the schedules that exist, as Service.Put does.
	Put bool
	// DryRun stores nothing and answers what would be. Whether calendars exist is
	// left out: they may be made first.
	DryRun bool
	// ID returns the id of the schedule at an index, should it be created; the
	// same one when the request is sent again, which then finds what it made even
	// if that has another name by now. Nil makes ids.
	ID func(index int) (uuid.UUID, error)
}

// Result is what became of one schedule of many: Err, or the other two. Of a
// schedule that was created, Scheduled has what was given but not its version.
type Result struct {
	Scheduled core.Scheduled
	Outcome   Outcome
	// Again says that it was there already, created by the same request.
	Again bool
	Err   error
}

// Many creates or puts up to MaxMany schedules as if each were sent by itself, in
// order, but with few statements: one creates all that are new. Each has its own
// result, at its index. Sent again after an unknown outcome it puts the same; to
// create the same it needs the same ids.
func (s *Service) Many(ctx context.Context, tenant uuid.UUID, all []Fields, o ManyOptions) []Result {
	m := &many{Service: s, tenant: tenant, o: o, results: make([]Result, len(all)), planned: map[string]core.Scheduled{}}
	items := m.items(all)
	items, err := m.named(ctx, items)
	var now time.Time
	if err == nil {
		now, err = s.store.Now(ctx)
	}
	if err != nil {
		m.fail(items, err)
		return m.results
	}
	m.now = now
	for _, round := range distinct(items) {
		m.settle(ctx, round)
	}
	s.quota.settle(tenant, m.held, 0)
	if o.DryRun {
		m.fill(ctx)
	}
	return m.results
}

// many is one call of Many.
type many struct {
	*Service
	tenant  uuid.UUID
	o       ManyOptions
	now     time.Time
	results []Result // each written by the one goroutine that has its item
	// planned is what a dry run would have stored so far, by name.
	planned map[string]core.Scheduled
	// unsure is set when it is not known what a statement of this call created.
	unsure bool
	// held is how many schedules a dry run has taken of the tenant's quota, which
	// it gives back.
	held int
}

// item is a schedule on its way.
type item struct {
	index  int
	fields Fields
	id     uuid.UUID // should it be created
}

// items returns what has a name and an id; the others have their results.
func (m *many) items(all []Fields) []*item {
	makeID := m.o.ID
	if makeID == nil {
		makeID = func(int) (uuid.UUID, error) { return uuid.NewV7() }
	}
	var out []*item
	for i, f := range all {
		name := ""
		set(f.Name, &name)
		id, err := makeID(i)
		if err != nil {
			err = fmt.Errorf("make a schedule id: %w", err)
		} else {
			err = checkName(name)
		}
		if i >= MaxMany {
			err = core.Invalid("", "are more than %d", MaxMany)
		}
		if err != nil {
			m.results[i] = Result{Err: err}
			continue
		}
		out = append(out, &item{index: i, fields: f, id: id})
	}
	return out
}

// distinct cuts items into rounds, in each of which a name comes once, so that of
// two with one name the later meets what the earlier left.
func distinct(items []*item) [][]*item {
	var rounds [][]*item
	seen := map[string]int{}
	for _, it := range items {
		n := seen[*it.fields.Name]
		seen[*it.fields.Name]++
		if n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], it)
	}
	return rounds
}

func (m *many) fail(items []*item, err error) {
	for _, it := range items {
		m.results[it.index] = Result{Err: fmt.Errorf("store schedules: %w", err)}
	}
}

// settle gives each item its result. What is new is created; what that leaves out
// is looked up, and what is not there either is new again.
func (m *many) settle(ctx context.Context, items []*item) {
	for round := range manyRounds {
		looked := round > 0 || m.o.Put || m.o.DryRun
		if looked {
			items = m.look(ctx, items)
		}
		items = m.create(ctx, items, looked)
		if round > 0 && m.o.ID != nil {
			items = m.createEach(ctx, items)
		}
		if len(items) == 0 {
			return
		}
	}
	m.fail(items, core.ErrChanged)
}

// look settles the items whose names exist and returns the others.
func (m *many) look(ctx context.Context, items []*item) []*item {
	var missing []*item
	for part := range slices.Chunk(items, namesAtOnce) {
		found, err := m.find(ctx, part)
		if err != nil {
			m.fail(part, err)
			continue
		}
		gone := make([]bool, len(part)) // renamed or deleted since
		var group errgroup.Group
		group.SetLimit(writesAtOnce)
		for i, it := range part {
			cur, ok := found[*it.fields.Name]
			if !ok {
				gone[i] = true
				continue
			}
			group.Go(func() error {
				gone[i] = !m.meet(ctx, it, cur)
				return nil
			})
		}
		_ = group.Wait() // the results have the errors
		for i, it := range part {
			if gone[i] {
				missing = append(missing, it)
			} else if r := m.results[it.index]; m.o.DryRun && r.Err == nil {
				m.planned[*it.fields.Name] = r.Scheduled
			}
		}
	}
	return missing
}

func (m *many) find(ctx context.Context, items []*item) (map[string]core.Scheduled, error) {
	found := map[string]core.Scheduled{}
	names := make([]string, 0, len(items))
	for _, it := range items {
		name := *it.fields.Name
		if cur, ok := m.planned[name]; ok {
			found[name] = cur
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return found, nil
	}
	stored, err := m.store.Named(ctx, m.tenant, names)
	for _, cur := range stored {
		found[cur.Schedule.Name] = cur
	}
	return found, err
}

// meet settles an item whose name a schedule has; false if it has it no more.
func (m *many) meet(ctx context.Context, it *item, cur core.Scheduled) bool {
	own := cur.Schedule.ID == it.id // created by this call, or when it was sent before
	r := Result{Scheduled: cur, Outcome: Created, Again: own && !m.unsure}
	switch {
	case m.o.Put:
		r.Scheduled, r.Outcome, r.Err = m.replace(ctx, cur, it.fields, m.o.DryRun)
		if own && r.Outcome == Unchanged {
			r.Outcome = Created
		}
		r.Again = r.Again && r.Outcome == Created
	case own:
	default:
		r = m.made(ctx, it, core.ErrNameTaken) // and renamed since, if it was
	}
	if errors.Is(r.Err, errRenamed) || errors.Is(r.Err, core.ErrNotFound) {
		return false
	}
	m.results[it.index] = r
	return true
}

// create creates the items and returns those whose name or id was taken, and
// those beyond the tenant's quota that may be there already: nobody has looked.
func (m *many) create(ctx context.Context, items []*item, looked bool) []*item {
	all, byID := m.planAll(ctx, items)
	granted, err := m.quota.reserve(ctx, m.tenant, len(all), m.now)
	var left []*item
	for _, n := range all[granted:] {
		it := byID[n.Schedule.ID]
		switch {
		case err == nil && !looked:
			left = append(left, it)
			continue
		case err == nil:
			err = m.quota.exceeded()
		}
		m.results[it.index] = Result{Err: fmt.Errorf("create schedule: %w", err)}
		delete(m.planned, n.Schedule.Name)
	}
	all = all[:granted]
	if m.o.DryRun {
		m.held += granted
		return nil
	}
	made, failed, unsure := m.createAll(ctx, all)
	m.unsure = m.unsure || unsure
	m.quota.settle(m.tenant, granted, len(made))
	for _, n := range all {
		it := byID[n.Schedule.ID]
		switch err := failed[it.id]; {
		case err != nil:
			m.results[it.index] = Result{Err: fmt.Errorf("create schedule: %w", refused(err))}
		case made[it.id]:
			m.results[it.index] = Result{Scheduled: core.Scheduled{Schedule: n.Schedule}, Outcome: Created}
		default:
			left = append(left, it)
		}
	}
	return left
}

// planAll plans the creation of the items, and returns those that have no result
// yet, by their ids too.
func (m *many) planAll(ctx context.Context, items []*item) (all []core.NewSchedule, byID map[uuid.UUID]*item) {
	byID = make(map[uuid.UUID]*item, len(items))
	var wrong []*item
	for _, it := range items {
		n, err := m.plan(it)
		if err != nil {
			m.results[it.index] = Result{Err: err}
			wrong = append(wrong, it)
			continue
		}
		all = append(all, n)
		byID[it.id] = it
	}
	m.recall(ctx, wrong)
	return all, byID
}

// plan plans the creation of an item; a dry run ends with it.
func (m *many) plan(it *item) (core.NewSchedule, error) {
	sch, err := m.whole(m.tenant, it.id, it.fields)
	if err != nil {
		return core.NewSchedule{}, err
	}
	n, parsed, err := m.first(it.fields, sch, m.now)
	switch {
	case err != nil:
		return n, err
	case m.o.Put && parsed.Relative:
		return n, refuseRelative()
	case m.o.DryRun:
		would := unmade(n, parsed, m.now)
		m.planned[n.Schedule.Name] = would
		m.results[it.index] = Result{Scheduled: would, Outcome: Created}
	}
	return n, nil
}

// createAll stores new schedules and says which it made and which it could not
// store. A statement of unknown outcome is sent again, which makes nothing twice
// but leaves it unsure what was made; one with a value that the database refuses is
// halved until that is found.
func (s *Service) createAll(ctx context.Context, all []core.NewSchedule) (made map[uuid.UUID]bool, failed map[uuid.UUID]error, unsure bool) {
	made, failed = map[uuid.UUID]bool{}, map[uuid.UUID]error{}
	for parts := [][]core.NewSchedule{all}; len(parts) > 0; {
		part := parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		if len(part) == 0 {
			continue
		}
		ids, lost, err := s.createPart(ctx, part)
		unsure = unsure || lost
		switch {
		case errors.Is(err, core.ErrBadRow) && len(part) > 1:
			parts = append(parts, part[:len(part)/2], part[len(part)/2:])
		case err != nil:
			for _, n := range part {
				failed[n.Schedule.ID] = err
			}
		}
		for _, id := range ids {
			made[id] = true
		}
	}
	return made, failed, unsure
}

func (s *Service) createPart(ctx context.Context, part []core.NewSchedule) (ids []uuid.UUID, lost bool, err error) {
	for range 3 {
		ids, err = s.store.CreateMany(ctx, part[0].Schedule.TenantID, part)
		if !errors.Is(err, core.ErrUnknownOutcome) {
			break
		}
		lost = true
	}
	return ids, lost, err
}
