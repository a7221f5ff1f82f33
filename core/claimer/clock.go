package claimer

import (
	"sync"
	"time"

	"github.com/fencepost/fencepost/core"
)

// databaseClock estimates the database's time from its answers, so that claims
// are aimed at the moment at which the database will call them due. It only
// aims: the claim itself compares with the database's own clock.
type databaseClock struct {
	clock  core.Clock
	mu     sync.Mutex
	offset time.Duration
	known  bool
}

// observe takes an answer that carried the database's time and was asked for
// at sent. The answer's time lies between sent and now; the earliest is assumed,
// so that aiming errs on the late side.
func (d *databaseClock) observe(db, sent time.Time) {
	received := d.clock.Now()
	low, high := db.Sub(received), db.Sub(sent)
	d.mu.Lock()
	defer d.mu.Unlock()
	// Keep the estimate while the answer allows it: short round trips narrow
	// it down, long ones do not spoil it.
	if !d.known || d.offset < low || d.offset > high {
		d.offset, d.known = low, true
	}
}

// ahead returns by how much the database's clock is estimated to be ahead.
func (d *databaseClock) ahead() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.offset
}

// now returns the estimated database time.
func (d *databaseClock) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock.Now().Add(d.offset)
}

// until returns how long it is until the database's clock shows t.
func (d *databaseClock) until(t time.Time) time.Duration { return t.Sub(d.now()) }
