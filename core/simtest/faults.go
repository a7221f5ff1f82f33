package simtest

import (
	"time"
)

// plotFaults lays out what will go wrong.
func (s *sim) plotFaults() {
	for range 2 + s.rng.IntN(6) {
		s.after(s.between(10*time.Second, trouble-5*time.Second), nil, s.strike)
	}
}

// strike lets one thing go wrong.
func (s *sim) strike() {
	switch s.rng.IntN(7) {
	case 0:
		s.crashClaimer()
	case 1, 2:
		s.crashExecutor()
	case 3:
		n := s.anyNode()
		d := s.between(time.Second, 25*time.Second)
		n.frozen = later(n.frozen, s.now.Add(d))
		s.fault("frozen", n.name, n.frozen.Sub(s.now))
	case 4:
		c := s.claimers[s.rng.IntN(len(s.claimers))]
		c.skew = s.between(-30*time.Second, 30*time.Second)
		s.fault("clock wrong", c.name, round)
	case 5:
		d := s.between(time.Second, 20*time.Second)
		if s.rng.IntN(3) == 0 {
			d = s.between(20*time.Second, 90*time.Second) // several slots are missed
		}
		s.outage = later(s.outage, s.now.Add(d))
		s.fault("database gone", "", s.outage.Sub(s.now))
	case 6:
		d := s.between(time.Second, 10*time.Second)
		s.storm = later(s.storm, s.now.Add(d))
		s.fault("messages gone", "", s.storm.Sub(s.now))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *sim) anyNode() *node {
	n := s.rng.IntN(len(s.claimers) + len(s.executors))
	if n < len(s.claimers) {
		return s.claimers[n].node
	}
	return s.executors[n-len(s.claimers)].node
}

func (s *sim) crashClaimer() {
	c := s.claimers[s.rng.IntN(len(s.claimers))]
	down := s.between(100*time.Millisecond, 20*time.Second)
	s.fault("claimer killed", c.name, down)
	c.life++
	s.after(down, nil, c.start)
}

// crashExecutor kills an executor, or has it end: then it hands back what it is at.
// Messages that come while it is away are lost with it.
func (s *sim) crashExecutor() {
	e := s.executors[s.rng.IntN(len(s.executors))]
	down := s.between(100*time.Millisecond, 20*time.Second)
	if s.rng.IntN(2) == 0 && !e.frozen.After(s.now) {
		s.fault("executor ended", e.name, 0)
		for _, a := range e.attempts() {
			o := s.outcome(a)
			o.State, o.HandedBack, o.Result, o.Delay = "retrying", true, nil, 0
			o.Reason = "exhausted"
			e.end(a, o)
		}
		return
	}
	s.fault("executor killed", e.name, down)
	e.life++
	e.live = nil
	e.frozen = s.now.Add(down)
}
