package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// driver plays one schedule, one thing at a time.
type driver struct {
	ctx      context.Context
	scenario Scenario
	store    *memory.Store
	clock    *still
	job      Job
	id       uuid.UUID
	tenant   uuid.UUID
	keys     []core.RunKey // of the rows, as they were made
	live     []attempt     // in the order of their ends
	retries  []time.Time   // when attempts are due again, in order
	slots    spec.Spec
	// moved says that something has happened since a claim looked at the timer.
	moved bool
}

// attempt is one that is under way.
type attempt struct {
	core.Started
	ends time.Time
}

// play does what comes first, until the scenario is over.
func (d *driver) play() error {
	cur, err := d.store.Get(d.ctx, d.tenant, d.id)
	if err != nil {
		return err
	}
	if d.slots, err = spec.Of(&cur); err != nil {
		return err
	}
	for {
		at, do, err := d.next()
		if err != nil {
			return err
		}
		if do == nil || !at.Before(d.scenario.To) {
			d.clock.now = d.scenario.To.UTC()
			return nil
		}
		if at.After(d.clock.now) {
			d.clock.now = at
		}
		if err := do(); err != nil {
			return err
		}
		if len(d.keys) > MaxRows {
			return fmt.Errorf("up to %s it makes more than %d rows; choose a shorter time", d.clock.now.Format(time.RFC3339), MaxRows)
		}
		if err := context.Cause(d.ctx); err != nil {
			return err
		}
	}
}

// next returns what comes first: the end of an attempt, a claim, or a retry. A
// waiting slot looks again when something has ended.
func (d *driver) next() (at time.Time, do func() error, err error) {
	cur, err := d.store.Get(d.ctx, d.tenant, d.id)
	if err != nil {
		return at, nil, err
	}
	look := cur.Timer.FireAt
	if next := d.slots.Next(d.clock.now.Add(-cur.Schedule.Offset())); cur.Timer.Parked && !d.moved && !next.IsZero() {
		look = cur.Schedule.Effective(next) // another slot can change what waits
	}
	at, do = d.awake(look), func() error { return d.claim(&cur) }
	if len(d.retries) > 0 {
		if retry := d.awake(d.retries[0]); !retry.After(at) {
			at, do = retry, d.sweep
		}
	}
	if len(d.live) > 0 && !d.live[0].ends.After(at) {
		at, do = d.live[0].ends, d.end
	}
	return at, do, nil
}

// awake returns when somebody is there who does what is due at a time.
func (d *driver) awake(t time.Time) time.Time {
	if t.Before(d.clock.now) {
		t = d.clock.now
	}
	for range d.scenario.Outages {
		for _, o := range d.scenario.Outages {
			if o.has(t) {
				t = o.To
			}
		}
	}
	return t
}

func (d *driver) claim(cur *core.Scheduled) error {
	d.moved = false
	m := plan.Move(&cur.Schedule, &cur.Timer, d.slots, d.clock.now)
	if m.CancelLive {
		if _, err := d.store.CancelPrevious(d.ctx, cur.Timer.Shard, []core.Move{m}); err != nil {
			return err
		}
		d.endCanceled()
	}
	claimed, err := d.store.Claim(d.ctx, cur.Timer.Shard, []core.Move{m}, time.Hour)
	if err != nil {
		return err
	}
	for _, c := range claimed {
		d.keys = append(d.keys, c.Key)
		if c.State == core.RunQueued {
			if err := d.start(core.Message{Key: c.Key, Fence: c.Fence}); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaseTime is longer than anything that is played.
const leaseTime = 100 * 365 * 24 * time.Hour

func (d *driver) start(m core.Message) error {
	started, err := d.store.Start(d.ctx, []core.Delivery{{Message: m, Token: uuid.New()}}, leaseTime)
	if err != nil {
		return err
	}
	for _, s := range started {
		if s.State != core.RunRunning {
			continue
		}
		takes := d.job.RunTime
		if s.Timeout > 0 {
			takes = min(takes, s.Timeout)
		}
		if s.Left != nil {
			takes = min(takes, *s.Left)
		}
		a := attempt{s, d.clock.now.Add(takes)}
		i := len(d.live)
		for i > 0 && d.live[i-1].ends.After(a.ends) {
			i--
		}
		d.live = append(d.live[:i], append([]attempt{a}, d.live[i:]...)...)
	}
	return nil
}

// endCanceled lets attempts end now that were asked to.
func (d *driver) endCanceled() {
	for i := range d.live {
		d.live[i].ends = d.clock.now
	}
}

// end ends the first attempt.
func (d *driver) end() error {
	a := d.live[0]
	d.live, d.moved = d.live[1:], true
	run, _, err := d.store.Run(d.ctx, d.tenant, a.Key)
	if err != nil {
		return err
	}
	o := core.Outcome{Held: core.Held{Key: a.Key, Fence: a.Fence}, State: core.RunSucceeded}
	took := d.clock.now.Sub(run.StartedAt)
	switch {
	case run.CancelRequested:
		o.State = core.RunCanceled
	case a.Left != nil && took >= *a.Left && d.job.RunTime > took:
		o.State, o.Reason, o.Error = core.RunDead, core.ReasonTotal, "the run took longer than its total timeout"
	case a.Timeout > 0 && took >= a.Timeout && d.job.RunTime > took:
		o.State, o.Reason, o.Error = core.RunRetrying, core.ReasonTimeout, "the attempt took longer than its timeout"
	case a.Attempt <= d.job.Fail:
		o.State, o.Reason, o.Error = core.RunRetrying, core.ReasonExhausted, "the scenario lets this attempt fail"
	}
	o.Delay = a.Retry.Delay(a.Attempt, middle)
	finished, err := d.store.Finish(d.ctx, []core.Outcome{o})
	if err != nil || len(finished) != 1 {
		return err
	}
	switch {
	case finished[0].State == core.RunRetrying:
		d.retries = append(d.retries, d.clock.now.Add(o.Delay))
		slices.SortFunc(d.retries, time.Time.Compare)
	case a.Awaited:
		return d.store.Nudge(d.ctx, []uuid.UUID{d.id})
	}
	return nil
}

// middle stands for what is random.
const middle = 0.5

// sweep starts the attempts that are due.
func (d *driver) sweep() error {
	for len(d.retries) > 0 && !d.retries[0].After(d.clock.now) {
		d.retries = d.retries[1:]
	}
	swept, _, err := d.store.Sweep(d.ctx, core.SweepOptions{
		Marks: []core.ShardMark{{Shard: core.ShardOf(d.id)}}, DispatchLease: time.Hour, MaxDispatchLease: time.Hour,
		Backoff: core.Backoff{Initial: time.Second, Max: time.Second}, LostIn: []int16{core.ShardOf(d.id)},
	})
	if err != nil {
		return err
	}
	for _, s := range swept {
		if s.State == core.RunQueued {
			if err := d.start(core.Message{Key: s.Key, Fence: s.Fence}); err != nil {
				return err
			}
		}
	}
	return nil
}
