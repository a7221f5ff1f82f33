package simtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/check"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

// claimer loads what comes due within a minute, claims each at its time and publishes
// the runs, and sweeps.
type claimer struct {
	*node
	aimed map[uuid.UUID]int64 // fences of the timers that it holds
}

// start begins with nothing in memory.
func (c *claimer) start() {
	c.aimed = map[uuid.UUID]int64{}
	c.s.after(c.s.between(0, round), c.node, c.round)
}

func (c *claimer) round() {
	s := c.s
	var found []core.Scheduled
	c.call(func() (err error) {
		found, _, err = s.db.Preload(s.ctx, marks(), time.Minute)
		return err
	}, func(err error) {
		if err == nil {
			c.skew = -s.between(0, 20*time.Millisecond) // its answer is that old
			for i := range found {
				c.aim(&found[i])
			}
		}
		c.sweep()
	})
	s.after(round, c.node, c.round)
}

// aim claims a timer when the claimer takes its time to have come.
func (c *claimer) aim(cur *core.Scheduled) {
	if c.aimed[cur.Schedule.ID] >= cur.Timer.Fence {
		return
	}
	c.aimed[cur.Schedule.ID] = cur.Timer.Fence
	slots, err := spec.Of(cur)
	if err != nil {
		c.s.err = err
		return
	}
	c.s.after(cur.Timer.FireAt.Sub(c.s.now)-c.skew, c.node, func() {
		m := plan.Move(&cur.Schedule, &cur.Timer, slots, c.s.now.Add(c.skew))
		if !m.CancelLive {
			c.claim(m)
			return
		}
		c.call(func() error {
			_, err := c.s.db.CancelPrevious(c.s.ctx, cur.Timer.Shard, []core.Move{m})
			return err
		}, func(err error) {
			if err == nil {
				c.claim(m)
				return
			}
			delete(c.aimed, m.ScheduleID)
		})
	})
}

func (c *claimer) claim(m core.Move) {
	s := c.s
	var got []core.Claimed
	c.call(func() (err error) {
		got, err = s.db.Claim(s.ctx, core.ShardOf(m.ScheduleID), []core.Move{m}, dispatchLease)
		return err
	}, func(err error) {
		switch {
		case err == nil && len(got) > 0:
			c.publish(got)
		case errors.Is(err, core.ErrUnknownOutcome):
			c.resolve(m)
		default: // early, locked, or another's: it is looked at again
			delete(c.aimed, m.ScheduleID)
		}
	})
}

// resolve finds out what a claim without an answer did.
func (c *claimer) resolve(m core.Move) {
	var got []core.Claimed
	c.call(func() (err error) {
		got, err = c.s.db.ReadClaimed(c.s.ctx, []core.Move{m})
		return err
	}, func(err error) {
		if err != nil {
			c.s.after(round, c.node, func() { c.resolve(m) })
			return
		}
		delete(c.aimed, m.ScheduleID)
		c.publish(got)
	})
}

func (c *claimer) publish(got []core.Claimed) {
	for _, r := range got {
		if r.State == core.RunQueued {
			c.s.send(r.Message())
		}
	}
}

func (c *claimer) sweep() {
	s := c.s
	var got []core.Swept
	c.call(func() (err error) {
		got, _, err = s.db.Sweep(s.ctx, core.SweepOptions{
			Marks: marks(), DispatchLease: dispatchLease, MaxDispatchLease: time.Minute, Backoff: core.Backoff{Initial: time.Second, Max: 5 * time.Second},
			Queues: []string{jobs}, LostIn: core.AllShards(),
		})
		return err
	}, func(error) { // what is lost with an error is due again
		for _, r := range got {
			if r.State == core.RunQueued {
				s.send(r.Message())
			}
		}
	})
}

func marks() []core.ShardMark {
	out := make([]core.ShardMark, core.Shards)
	for i := range out {
		out[i].Shard = int16(i)
	}
	return out
}

// send gives a message to the queue, which may lose, double and delay it.
func (s *sim) send(m core.Message) {
	if s.now.Before(s.storm) {
		return
	}
	copies := 1
	switch {
	case s.happens(20):
		s.fault("message lost", "", 0)
		return
	case s.happens(50):
		copies = 2 + s.rng.IntN(2)
	}
	for range copies {
		delay := s.between(time.Millisecond, 50*time.Millisecond)
		if s.happens(20) {
			delay = s.between(time.Second, 20*time.Second)
			s.fault("message late", "", delay)
		}
		s.after(delay, nil, func() {
			e := s.executors[s.rng.IntN(len(s.executors))]
			s.after(0, e.node, func() { e.receive(core.Delivery{Message: m, Token: s.id()}) })
		})
	}
}

// executor starts runs, keeps them and says how they ended.
type executor struct {
	*node
	live map[core.Held]*attempt
}

// attempt is a run that an executor has. Its job writes down when it begins and ends.
type attempt struct {
	core.Started
	trust time.Time // by the executor's clock, which runs as the world's does
	entry int       // of the executions
	over  bool
}

const margin = time.Second

func (e *executor) receive(d core.Delivery) { e.start(d, e.s.now) }

// start starts a run, and sends that again, under the same token, for as long as what
// the first may have got can be trusted.
func (e *executor) start(d core.Delivery, first time.Time) {
	s, sent := e.s, e.s.now
	var got []core.Started
	e.call(func() (err error) {
		got, err = s.db.Start(s.ctx, []core.Delivery{d}, lease)
		return err
	}, func(err error) {
		switch {
		case err != nil && s.now.Before(first.Add(lease-margin)):
			s.after(100*time.Millisecond, e.node, func() { e.start(d, first) })
		case err == nil && len(got) == 1 && got[0].State == core.RunRunning:
			e.begin(got[0], sent)
		}
	})
}

func (e *executor) begin(r core.Started, sent time.Time) {
	s := e.s
	a := &attempt{Started: r, trust: sent.Add(lease - margin), entry: len(s.h.Executions)}
	if !s.now.Before(a.trust) {
		return // too long on the way, or frozen there
	}
	s.h.Executions = append(s.h.Executions, check.Execution{
		Run: r.Key.ID(), Schedule: r.Key.ScheduleID.String(), Slot: r.Key.Slot, Attempt: r.Attempt, Fence: r.Fence, Begin: s.now,
	})
	if e.live == nil {
		e.live = map[core.Held]*attempt{}
	}
	e.live[core.Held{Key: r.Key, Fence: r.Fence}] = a
	s.after(lease/3, e.node, func() { e.beat(a) })
	s.after(s.takes(), e.node, func() { e.end(a, s.outcome(a)) })
}

// takes returns how long a job takes: mostly a moment, at times longer than a lease.
func (s *sim) takes() time.Duration {
	if s.rng.IntN(5) == 0 {
		return s.between(5*time.Second, 25*time.Second)
	}
	return s.between(10*time.Millisecond, 2*time.Second)
}

func (s *sim) outcome(a *attempt) core.Outcome {
	o := core.Outcome{Held: core.Held{Key: a.Key, Fence: a.Fence}, State: core.RunSucceeded, Result: fmt.Appendf(nil, `{"fence": %d}`, a.Fence)}
	switch s.rng.IntN(12) {
	case 0, 1:
		o.State, o.Reason, o.Delay, o.Error, o.Result = core.RunRetrying, core.ReasonExhausted, s.between(0, 3*time.Second), "it failed", nil
	case 2:
		o.State, o.Reason, o.Error, o.Result = core.RunDead, core.ReasonPermanent, "no", nil
	}
	return o
}

// stop ends a job, if it goes on.
func (e *executor) stop(a *attempt) {
	if !a.over {
		a.over = true
		e.s.h.Executions[a.entry].End = e.s.now
		delete(e.live, core.Held{Key: a.Key, Fence: a.Fence})
	}
}

// beat keeps a lease, and stops the job when it cannot be trusted any more.
func (e *executor) beat(a *attempt) {
	s, sent := e.s, e.s.now
	if a.over {
		return
	}
	if !s.now.Before(a.trust) {
		e.stop(a)
		s.h.Executions[a.entry].Failed = true
		return
	}
	var got []core.Beat
	e.call(func() (err error) {
		got, err = s.db.Heartbeat(s.ctx, []core.Held{{Key: a.Key, Fence: a.Fence}}, lease)
		return err
	}, func(err error) {
		switch {
		case a.over:
		case err == nil && len(got) == 0:
			s.h.Executions[a.entry].Failed = true
			e.stop(a)
		case err == nil && got[0].CancelRequested:
			s.h.Executions[a.entry].Failed = true
			e.end(a, core.Outcome{Held: core.Held{Key: a.Key, Fence: a.Fence}, State: core.RunCanceled})
		case err == nil:
			a.trust = sent.Add(lease - margin)
		}
	})
	s.after(min(lease/3, max(time.Millisecond, a.trust.Sub(s.now))), e.node, func() { e.beat(a) })
}

// end ends a job and says how, until that is answered or the lease is not trusted.
func (e *executor) end(a *attempt, o core.Outcome) {
	if a.over {
		return
	}
	if o.State != core.RunSucceeded || !e.s.now.Before(a.trust) {
		e.s.h.Executions[a.entry].Failed = true
	}
	e.s.h.Executions[a.entry].HandedBack = o.HandedBack
	e.stop(a)
	e.finish(a, o)
}

func (e *executor) finish(a *attempt, o core.Outcome) {
	s := e.s
	if !s.now.Before(a.trust) {
		return
	}
	e.call(func() error {
		_, err := s.db.Finish(s.ctx, []core.Outcome{o})
		return err
	}, func(err error) {
		if err != nil {
			s.after(100*time.Millisecond, e.node, func() { e.finish(a, o) })
		}
	})
}
