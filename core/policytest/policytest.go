// Package policytest is a table of what becomes of each slot, for every event
// under every policy, and exists so that every store and the claimer itself are
// held to the same answers, which were written by hand.
//
// The table is text. An event, after "==", tells its story, names the schedule's
// spec and zone, and lists what happens when; then come the slots, and under each
// "- misfire: overlaps" the rows of history: slot or range of slots, state, cause
// and reason. Times are UTC, of the event's day unless they name another.
//
// A schedule's grace is 10 s, and a run takes 1 s and succeeds unless a line "job"
// says how the run of a slot goes. The service refuses run_all with
// cancel_previous, where each missed run would cancel the one before.
package policytest

import (
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

const (
	// Takes is how long a run takes whose job says nothing else.
	Takes = time.Second
	// Queue is the queue of all runs.
	Queue = "test"

	grace    = 10 * time.Second
	attempts = 3
)

// Event is something that happens to a schedule, with what becomes of its slots
// under each policy. It is to be read only.
type Event struct {
	Name  string
	Story string
	Spec  string
	Zone  string
	Cap   int // of run_all; zero is the default
	// Steps are what happens, in the order of time, from Create to End.
	Steps []Step
	Jobs  map[time.Time]Job // by slot
	Slots []time.Time       // all that come between the first and the last step
	Cells []Cell
	day   time.Time
}

// Cell is the history that an event leaves under two policies.
type Cell struct {
	Misfire core.Misfire
	Overlap core.Overlap
	Rows    []string // oldest first, in the form of Event.Rows
}

// Step is one thing that happens at a time; Arg is what the deed needs.
type Step struct {
	At  time.Time
	Do  Deed
	Arg string
}

// Deed is what can happen in an event.
type Deed string

// The deeds. Those of the claimer are said of its next claim before it begins it.
const (
	Create     Deed = "create"      // the schedule, settled up to now
	Claim      Deed = "claim"       // a claimer goes to work
	Rest       Deed = "rest"        // the claimer ends
	Crash      Deed = "crash"       // the claimer will die when its claim is carried out
	AnswerLost Deed = "answer lost" // of a claim that was carried out
	ClaimLost  Deed = "claim lost"  // it was not carried out, which the claimer cannot know
	Edit       Deed = "edit"        // to the spec in Arg
	Pause      Deed = "pause"       // until the time in Arg, if there is one
	Resume     Deed = "resume"
	End        Deed = "end" // history is looked at
)

// Job is how the run of a slot goes.
type Job struct {
	How   Way
	Until time.Time
}

// Way is one way in which a run can go.
type Way string

// The ways of a run.
const (
	Queued   Way = "queued"   // not started before Until
	Running  Way = "running"  // succeeds at Until, or ends when it is asked to
	Deaf     Way = "deaf"     // ends at Until, canceled if it was asked to
	Retrying Way = "retrying" // its first attempt fails after Takes, the next comes at Until
	Dead     Way = "dead"     // fails for good after Takes
)

//go:embed table/*.txt
var files embed.FS

// Events returns the table, in its order. An error is a mistake in its text.
func Events() ([]Event, error) {
	names, err := fs.Glob(files, "table/*.txt")
	if err != nil {
		return nil, fmt.Errorf("list the table's files: %w", err)
	}
	var all []Event
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		events, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, events...)
	}
	return all, nil
}

// Schedule returns the content of the cell's schedule, without region, tenant, id
// and name.
func (e *Event) Schedule(c Cell) core.Schedule {
	s := core.Schedule{
		Spec: e.Spec, TimeZone: e.Zone, Misfire: c.Misfire, MisfireGrace: grace, Overlap: c.Overlap, MaxAttempts: attempts,
		Job: core.Job{Queue: Queue, Payload: []byte(`{}`)},
	}
	if c.Misfire == core.MisfireRunAll {
		s.Rules.MisfireCap = e.Cap
	}
	return s
}

// Edit plans what a step does to a schedule: an edit, a pause or a resume.
func (s Step) Edit(cur *core.Scheduled) (core.Edit, error) {
	slots, err := spec.Load(&cur.Schedule)
	if err != nil {
		return core.Edit{}, fmt.Errorf("load the schedule: %w", err)
	}
	switch s.Do {
	case Pause:
		var until time.Time
		if s.Arg != "" {
			if until, err = time.Parse(time.RFC3339, s.Arg); err != nil {
				return core.Edit{}, fmt.Errorf("read the end of the pause: %w", err)
			}
		}
		return plan.Pause(cur, slots, until, ""), nil
	case Resume:
		return plan.Resume(cur, slots), nil
	}
	next := cur.Schedule
	next.Spec = s.Arg
	parsed, err := spec.Parse(&next, cur.Now)
	if err != nil {
		return core.Edit{}, fmt.Errorf("read the edited spec: %w", err)
	}
	return plan.Edit(cur, plan.Change{Old: cur.Schedule, New: next, OldSlots: slots, NewSlots: parsed, SlotsChanged: true}), nil
}
