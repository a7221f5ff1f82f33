package core

import "time"

// Observe is told what the stages do, for metrics. Nil is told nothing. It is called by
// many at once and must not block. Who observes learns no tenant and no schedule: what
// is counted must stay few.
type Observe func(Event)

// Tell passes an event on, if there is somebody to hear it.
func (o Observe) Tell(e Event) {
	if o != nil {
		o(e)
	}
}

// Finished tells of an attempt's end, by which its run came to a state.
func (o Observe) Finished(queue string, state RunState) {
	o.Tell(Event{Kind: EventFinished, Queue: queue, State: state, N: 1})
	if state == RunDead {
		o.Tell(Event{Kind: EventDead, Queue: queue, N: 1})
	}
}

// EventKind says what happened, and which fields of an Event tell more.
type EventKind int

// The kinds of events. N counts runs unless something else is said.
const (
	EventDue         EventKind = iota + 1 // N timers came due
	EventClaim                            // a claim took Took
	EventClaimed                          // N rows of State were made in Queue
	EventHeld                             // N runs wait for a permit of Queue
	EventDispatched                       // N messages were published to Queue
	EventUndelivered                      // N messages were refused by Queue
	EventRepublished                      // N messages are published again, since nobody started their runs
	EventRetried                          // N runs of Queue are tried again
	EventLost                             // N runs of Queue lost their heartbeats
	EventStarted                          // a run of Queue started, Took after it was to, or negative where none is known
	EventFinished                         // an attempt in Queue ended; the run came to State
	EventDead                             // a run of Queue is dead
	EventStale                            // a write of the kind What was refused, since its fence is stale
	EventLeaseLost                        // an executor let go of a run of Queue that it could not keep
	EventRequest                          // a request of the route What was answered with the status N after Took
	EventFailed                           // a round of the stage What failed

	// The rest are levels, not events: the newest counts.
	EventShards // N shards are held
	EventLive   // N attempts are under way
	EventOffset // the database's clock is Took ahead of this process's
)

// Event is something that a stage did.
type Event struct {
	Kind  EventKind
	Queue string
	State RunState
	What  string
	N     int
	Took  time.Duration
}
