package policytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// Store is what a play needs of a store.
type Store interface {
	core.TimerStore
	core.SweepStore
	core.RunStore
	core.ScheduleStore
}

// Play carries out an event under two policies against a store and returns the
// history. It stands in for claimer and executor, one thing at a time: to moves
// the store's time, which otherwise stands still. An error is the store's.
func Play(ctx context.Context, store Store, region string, to func(time.Time), e *Event, c Cell) ([]core.Run, error) {
	p := &player{ctx: ctx, store: store, to: to, e: e, tenant: uuid.New(), live: map[core.Held]Job{}}
	for _, step := range e.Steps {
		if err := p.until(step.At); err != nil {
			return nil, err
		}
		to(step.At)
		if err := p.step(step, region, c); err != nil {
			return nil, fmt.Errorf("%s at %s: %w", step.Do, e.short(step.At), err)
		}
	}
	page, err := store.Runs(ctx, p.tenant, p.id, core.RunQuery{Limit: 1000})
	slices.Reverse(page.Items)
	return page.Items, err
}

const (
	dispatchLease = 30 * time.Second
	runLease      = time.Hour
	// maxDeeds bounds a play.
	maxDeeds = 500
)

type player struct {
	ctx    context.Context
	store  Store
	to     func(time.Time)
	e      *Event
	tenant uuid.UUID
	id     uuid.UUID
	shard  int16

	claims bool // a claimer is at work
	next   Deed // what becomes of its next claim
	// looked is when a parked timer was looked at; zero if something has happened
	// since.
	looked time.Time
	todo   []deed
	live   map[core.Held]Job
}

// deed is what somebody will do.
type deed struct {
	at time.Time
	do func(now time.Time) error
}

// until lets happen what does up to a time.
func (p *player) until(end time.Time) error {
	for range maxDeeds {
		d, err := p.nextDeed()
		if err != nil {
			return err
		}
		if d.do == nil || d.at.After(end) {
			return nil
		}
		now, err := p.store.Now(p.ctx)
		if err != nil {
			return err
		}
		if d.at.After(now) {
			now = d.at
			p.to(now)
		}
		if err := d.do(now); err != nil {
			return fmt.Errorf("at %s: %w", p.e.short(now), err)
		}
	}
	return errors.New("the play has no end")
}

// nextDeed returns what comes first: of what is to be done, of the claims and of the
// sweeps.
func (p *player) nextDeed() (deed, error) {
	var first deed
	consider := func(d deed) {
		if first.do == nil || d.at.Before(first.at) {
			first = d
		}
	}
	for i, d := range p.todo {
		consider(deed{d.at, func(now time.Time) error {
			p.todo = slices.Delete(p.todo, i, i+1)
			p.looked = time.Time{}
			return d.do(now)
		}})
	}
	if !p.claims {
		return first, nil
	}
	cur, err := p.store.Get(p.ctx, p.tenant, p.id)
	if err != nil {
		return first, err
	}
	consider(deed{p.nextLook(&cur.Timer), p.claim})
	page, err := p.store.Runs(p.ctx, p.tenant, p.id, core.RunQuery{Limit: 100})
	for _, r := range page.Items {
		if r.State == core.RunQueued || r.State == core.RunRetrying {
			consider(deed{r.WakeAt, p.sweep})
		}
	}
	return first, err
}

// nextLook returns when the claimer looks at the timer. Looking at one that is
// parked makes sense when something has happened, a slot that came included.
func (p *player) nextLook(t *core.Timer) time.Time {
	if !t.Parked || p.looked.IsZero() {
		return t.FireAt
	}
	for _, slot := range p.e.Slots {
		if slot.After(p.looked) {
			return slot
		}
	}
	return core.Forever
}

func (p *player) step(s Step, region string, c Cell) error {
	switch s.Do {
	case Create:
		return p.create(region, s.At, c)
	case Claim:
		p.claims = true
	case Rest, End:
		p.claims = false
	case Crash, AnswerLost, ClaimLost:
		p.next = s.Do
	default:
		cur, err := p.store.Get(p.ctx, p.tenant, p.id)
		if err != nil {
			return err
		}
		edit, err := s.Edit(&cur)
		if err != nil {
			return err
		}
		p.looked = time.Time{}
		return p.store.Apply(p.ctx, p.tenant, edit)
	}
	return nil
}

func (p *player) create(region string, now time.Time, c Cell) error {
	s := p.e.Schedule(c)
	s.Region, s.TenantID, s.ID = region, p.tenant, uuid.New()
	s.Name = s.ID.String()
	slots, err := spec.Load(&s)
	if err != nil {
		return fmt.Errorf("load the schedule: %w", err)
	}
	p.id, p.shard = s.ID, core.ShardOf(s.ID)
	next, done := plan.First(&s, slots, now)
	return p.store.Create(p.ctx, s, next, done)
}

// claim carries out what is due, and what becomes of a claim.
func (p *player) claim(time.Time) error {
	read, now, err := p.store.ReadTimers(p.ctx, []uuid.UUID{p.id})
	if err != nil || len(read) != 1 {
		return errors.Join(err, fmt.Errorf("%d timers were read", len(read)))
	}
	cur := &read[0]
	slots, err := spec.Of(cur)
	if err != nil {
		return err
	}
	move := plan.Move(&cur.Schedule, &cur.Timer, slots, now)
	if move.CancelLive {
		if err := p.cancel(move, now); err != nil {
			return err
		}
	}
	next := p.next
	p.next, p.looked = "", now
	if next == ClaimLost {
		return p.resolve(move, 0)
	}
	claimed, err := p.store.Claim(p.ctx, p.shard, []core.Move{move}, dispatchLease)
	switch {
	case err != nil:
		return err
	case next == Crash:
		p.claims = false
		return nil
	case next == AnswerLost:
		return p.resolve(move, len(claimed))
	}
	return p.publish(claimed)
}

// resolve learns what became of a claim that made so many rows.
func (p *player) resolve(move core.Move, made int) error {
	found, err := p.store.ReadClaimed(p.ctx, []core.Move{move})
	if err != nil {
		return err
	}
	if len(found) > made {
		return fmt.Errorf("%d rows of a claim are found that made %d", len(found), made)
	}
	return p.publish(found)
}

// cancel asks the run before to end, which hears it with its next heartbeat.
func (p *player) cancel(move core.Move, now time.Time) error {
	if _, err := p.store.CancelPrevious(p.ctx, p.shard, []core.Move{move}); err != nil {
		return err
	}
	for h, job := range p.live {
		if job.How == Running {
			p.later(now.Add(time.Second), func(time.Time) error { return p.hear(h) })
		}
	}
	return nil
}

func (p *player) later(at time.Time, do func(now time.Time) error) {
	p.todo = append(p.todo, deed{at, do})
}

func (p *player) publish(claimed []core.Claimed) error {
	for _, c := range claimed {
		if c.State != core.RunQueued {
			continue
		}
		if err := p.receive(core.Message{Key: c.Key, Fence: c.Fence}); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) receive(m core.Message) error {
	start := func(now time.Time) error { return p.start(m, now) }
	if job := p.e.Jobs[m.Key.Slot.UTC()]; job.How == Queued {
		p.later(job.Until, start)
		return nil
	}
	now, err := p.store.Now(p.ctx)
	if err != nil {
		return err
	}
	return start(now)
}

func (p *player) start(m core.Message, now time.Time) error {
	got, err := p.store.Start(p.ctx, []core.Delivery{{Message: m, Token: uuid.New()}}, runLease)
	if err != nil || len(got) != 1 || got[0].State != core.RunRunning {
		return err // a double, or a run that was canceled
	}
	s := got[0]
	job := p.e.Jobs[m.Key.Slot.UTC()]
	held := core.Held{Key: s.Key, Fence: s.Fence}
	p.live[held] = job
	end := func(at time.Time, state core.RunState) {
		p.later(at, func(now time.Time) error {
			return p.finish(core.Outcome{Held: held, State: state, Reason: core.ReasonPermanent, Delay: job.Until.Sub(now)}, s.Awaited)
		})
	}
	switch {
	case job.How == Running || job.How == Deaf:
		p.later(job.Until, func(time.Time) error { return p.hear(held) })
		end(job.Until, core.RunSucceeded)
	case job.How == Dead:
		end(now.Add(Takes), core.RunDead)
	case job.How == Retrying && s.Attempt == 1:
		end(now.Add(Takes), core.RunRetrying)
	default:
		end(now.Add(Takes), core.RunSucceeded)
	}
	return nil
}

// hear lets a run end that was asked to.
func (p *player) hear(h core.Held) error {
	if _, ok := p.live[h]; !ok {
		return nil
	}
	beats, err := p.store.Heartbeat(p.ctx, []core.Held{h}, runLease)
	if err != nil || len(beats) != 1 || !beats[0].CancelRequested {
		return err
	}
	return p.finish(core.Outcome{Held: h, State: core.RunCanceled}, true)
}

// finish ends an attempt that has not ended yet.
func (p *player) finish(o core.Outcome, awaited bool) error {
	if _, ok := p.live[o.Held]; !ok {
		return nil
	}
	delete(p.live, o.Held)
	ended, err := p.store.Finish(p.ctx, []core.Outcome{o})
	if err != nil || len(ended) != 1 {
		return errors.Join(err, fmt.Errorf("%d outcomes were accepted", len(ended)))
	}
	if awaited && ended[0].State.Final() {
		return p.store.Nudge(p.ctx, []uuid.UUID{p.id})
	}
	return nil
}

func (p *player) sweep(time.Time) error {
	swept, _, err := p.store.Sweep(p.ctx, core.SweepOptions{
		Marks: []core.ShardMark{{Shard: p.shard}}, DispatchLease: dispatchLease, MaxDispatchLease: 10 * time.Minute,
		Backoff: core.Backoff{Initial: time.Second, Max: time.Minute}, Queues: []string{Queue}, LostIn: []int16{p.shard},
	})
	if err != nil {
		return err
	}
	for _, s := range swept {
		if s.State == core.RunQueued {
			if err := p.receive(core.Message{Key: s.Key, Fence: s.Fence}); err != nil {
				return err
			}
		}
	}
	return nil
}
