// Package storetest is the conformance suite of the stores, and exists so that
// the stages can be tested on the store in memory and run on a database.
package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Store is every store of core in one, as the suite takes it.
type Store interface {
	core.TimerStore
	core.SweepStore
	core.LeaseStore
	core.BackfillQueue
	core.RunStore
	core.LimitStore
	core.ScheduleStore
	core.KeyStore
	core.UpkeepStore
}

// Harness is a store with what the suite does to its surroundings. No field may
// be left out.
type Harness struct {
	// Store is empty, apart from partitions, and used by nobody else.
	Store Store
	// Region is the region of all keys of the store.
	Region string
	// Advance moves the database's time, which otherwise stands still, by d,
	// which may be negative.
	Advance func(d time.Duration)
	// Alert returns the text of the alert that is open for a schedule, "" if
	// there is none.
	Alert func(schedule uuid.UUID) string
}

// Open returns a harness of its own for each call. It clears up behind itself
// with t.Cleanup and is called from parallel tests.
type Open func(t *testing.T) Harness

// Run holds a store to the contracts in core, that of UpkeepStore excepted. Each
// subtest opens a store; those of one database may share it by their regions.
func Run(t *testing.T, open Open) {
	for _, group := range [][]test{
		lookTests(), claimTests(), runTests(), sweepTests(), leaseTests(), scheduleTests(), manyTests(), editTests(), keyTests(), manualTests(), policyTests(), calendarTests(), retryTests(), redriveTests(), backfillTests(), limitTests(),
		pageTests(), otherTests(),
	} {
		run(t, open, group)
	}
}

// RunUpkeep holds a store to the contract of UpkeepStore, whose methods know no
// regions: here each subtest needs a database of its own.
func RunUpkeep(t *testing.T, open Open) { run(t, open, upkeepTests()) }

func run(t *testing.T, open Open, tests []test) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(newWorld(t, open(t)))
		})
	}
}

type test struct {
	name string
	run  func(*world)
}
