// Package simtest plays histories of a whole installation in one loop, and exists so that
// thousands of them, with faults at every boundary between two statements, take a
// minute and can be played again by their seed.
//
// Claimers, executors and clients of the API are steps on a virtual clock, driven by one
// source of chance; the store is the reference in memory, which a test elsewhere holds
// to the real database. The steps follow the protocol as the stages do, with their
// planner. Messages are lost, doubled, late and reordered; requests and answers of
// statements are lost; nodes crash, freeze, end and have wrong clocks; the database is
// gone for a while; and schedules are edited, paused, triggered and deleted meanwhile.
// What happened is written down as core/check reads it.
package simtest

import (
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/check"
	"github.com/fencepost/fencepost/core/memory"
)

const (
	region        = "local"
	jobs          = "jobs" // the queue
	lease         = 10 * time.Second
	dispatchLease = 10 * time.Second
	round         = 2 * time.Second // of claimers
	patience      = 2 * time.Second // until a statement without an answer is given up

	trouble = 3 * time.Minute // in which faults begin
	quiet   = 4 * time.Minute // after it
)

// Bounds are what the histories are judged by.
var Bounds = check.Bounds{Lag: 5 * time.Second, Recovery: 45 * time.Second, Lease: lease, Settle: 2 * time.Minute}

// starts are when histories begin: on any day, and right before clocks change in Berlin.
var starts = []time.Time{
	time.Date(2027, 6, 9, 11, 58, 30, 0, time.UTC), time.Date(2027, 3, 28, 0, 58, 30, 0, time.UTC), time.Date(2027, 10, 31, 0, 58, 30, 0, time.UTC),
}

type sim struct {
	ctx    context.Context
	rng    *rand.Rand
	now    time.Time
	began  time.Time
	events events
	seq    int
	db     Store
	tenant uuid.UUID
	h      check.History
	// outage is until when the database is gone, storm until when messages are.
	outage, storm time.Time
	claimers      []*claimer
	executors     []*executor
	schedules     []uuid.UUID
	err           error
}

// Store is what a simulation needs of a store.
type Store interface {
	core.TimerStore
	core.SweepStore
	core.RunStore
	core.ScheduleStore
}

// virtual is the database's clock.
type virtual struct{ s *sim }

func (v virtual) Now() time.Time                           { return v.s.now }
func (virtual) Sleep(context.Context, time.Duration) error { panic("a simulation does not wait") }
func (virtual) After(time.Duration) <-chan time.Time       { panic("a simulation does not wait") }

// Play plays the history of a seed. Spoil, if not nil, stands between the nodes and the
// store: tests break the store with it.
func Play(ctx context.Context, seed uint64, spoil func(Store) Store) (*check.History, error) {
	s := &sim{ctx: ctx, rng: rand.New(rand.NewPCG(seed, 1))}
	s.began = starts[s.rng.IntN(len(starts))]
	s.now = s.began
	s.db = memory.New(region, virtual{s})
	if spoil != nil {
		s.db = spoil(s.db)
	}
	s.tenant = s.id()
	for n := range 1 + s.rng.IntN(2) {
		c := &claimer{node: s.node(fmt.Sprintf("claimer%d", n))}
		s.claimers = append(s.claimers, c)
		c.start()
	}
	for n := range 3 {
		s.executors = append(s.executors, &executor{node: s.node(fmt.Sprintf("executor%d", n))})
	}
	s.plotFaults()
	s.plotClients()
	end := s.began.Add(trouble + quiet)
	s.h.Start, s.h.End = s.began, end
	for steps := 0; len(s.events) > 0 && s.err == nil; steps++ {
		e := heap.Pop(&s.events).(event)
		if e.at.After(end) || steps > 1_000_000 {
			break
		}
		s.now = e.at
		e.run()
	}
	if s.err != nil {
		return nil, s.err
	}
	s.now = end
	return &s.h, s.dump()
}

// event is what happens at a time. One of a node that has crashed since does not; one
// of a node that is frozen does when it thaws.
type event struct {
	at   time.Time
	seq  int
	node *node
	life int
	do   func()
}

func (e *event) run() {
	n := e.node
	switch {
	case n == nil:
		e.do()
	case n.life != e.life:
	case n.frozen.After(n.s.now):
		e.at = n.frozen
		n.s.push(*e)
	default:
		e.do()
	}
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(v any)   { *q = append(*q, v.(event)) }
func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

func (s *sim) push(e event) {
	s.seq++
	e.seq = s.seq
	heap.Push(&s.events, e)
}

// after lets something happen on a node; nil is the world, which has no faults.
func (s *sim) after(d time.Duration, n *node, do func()) {
	e := event{at: s.now.Add(max(0, d)), node: n, do: do}
	if n != nil {
		e.life = n.life
	}
	s.push(e)
}

// between returns a time from a to b.
func (s *sim) between(a, b time.Duration) time.Duration {
	return a + time.Duration(s.rng.Int64N(int64(b-a)+1))
}

// happens is true in so many of a thousand cases, while there is trouble.
func (s *sim) happens(perMille int) bool {
	return s.rng.IntN(1000) < perMille && s.now.Before(s.began.Add(trouble))
}

func (s *sim) id() uuid.UUID {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(s.rng.Uint32())
	}
	return id
}

// fault writes down that something went wrong, until it was right again.
func (s *sim) fault(kind, node string, lasts time.Duration) {
	s.h.Faults = append(s.h.Faults, check.Fault{Kind: kind, Node: node, Begin: s.now, Heal: s.now.Add(lasts)})
}

// node is a process.
type node struct {
	s      *sim
	name   string
	life   int // rises with each crash
	frozen time.Time
	// skew is how wrong the node's idea of the database's time is.
	skew time.Duration
}

func (s *sim) node(name string) *node { return &node{s: s, name: name} }

// call carries out a statement from a node, with the time that takes on the way, and
// goes on with its error. A statement that is on its way is carried out whatever
// becomes of its node; request or answer can be lost.
func (n *node) call(do func() error, then func(error)) {
	s := n.s
	there, back := s.between(time.Millisecond, 20*time.Millisecond), s.between(time.Millisecond, 20*time.Millisecond)
	switch {
	case s.now.Before(s.outage):
		s.after(patience/4, n, func() { then(errGone) })
	case s.happens(10):
		s.fault("request lost", n.name, patience)
		s.after(patience, n, func() { then(core.ErrUnknownOutcome) })
	case s.happens(5):
		late := s.between(patience, 2*lease)
		if s.rng.IntN(2) == 0 { // and its node stands still, as one does that is swapped out
			late = s.between(lease, 2*lease)
			n.frozen = later(n.frozen, s.now.Add(2*lease))
			s.fault("frozen", n.name, 2*lease)
		}
		s.fault("request late", n.name, late)
		s.after(late, nil, func() { _ = do() })
		s.after(patience, n, func() { then(core.ErrUnknownOutcome) })
	case s.happens(10):
		s.fault("answer lost", n.name, patience)
		s.after(there, nil, func() { _ = do() })
		s.after(patience, n, func() { then(core.ErrUnknownOutcome) })
	default:
		s.after(there, nil, func() {
			err := do()
			s.after(back, n, func() { then(err) })
		})
	}
}

var errGone = &core.Error{Code: core.CodeUnavailable, Message: "the database is gone"}
