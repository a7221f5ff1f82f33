package core

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// ScheduleQuery asks for a page of schedules, in the order of their ids. A zero
// field chooses all.
type ScheduleQuery struct {
	Limit int // 1 to 1,000
	// After is where the page before ended.
	After      uuid.UUID
	States     []ScheduleState
	Queue      string
	NamePrefix string
	Labels     Selector
}

// SchedulePage is a page of schedules. It may have fewer than asked for, even
// none, although there are more: what one call looks at is bounded.
type SchedulePage struct {
	Items []Scheduled
	More  bool
	Last  uuid.UUID // where the next page goes on, if there are more
}

// RunQuery asks for a page of a schedule's runs, newest slot first. A zero field
// chooses all.
type RunQuery struct {
	Limit int // 1 to 1,000
	// From and Before bound the slots; Before is exclusive, and where the page
	// before ended.
	From   time.Time
	Before time.Time
	States []RunState
}

// RunPage is a page of runs, with the same reserve as SchedulePage.
type RunPage struct {
	Items []Run
	More  bool
	Last  time.Time // slot where the next page goes on, if there are more
}

// ScanLimit is how many rows one call of List or Runs looks at.
const ScanLimit = 10_000

// Manual is a run that somebody asks for.
type Manual struct {
	ScheduleID uuid.UUID
	Fence      int64 // of the timer
	Slot       time.Time
	// Within is how long the run may take in all; zero is no limit.
	Within  time.Duration
	Payload json.RawMessage // instead of the schedule's; nil keeps that
	// Key is the hash of the idempotency key under which it is asked for; nil for
	// none.
	Key []byte
}

// Redrive names a dead run that is to be tried again.
type Redrive struct {
	Key   RunKey
	Fence int64 // of the timer
	// Within is how long the run may take in all from now on; zero is no limit.
	Within time.Duration
}

// Request is a request with an idempotency key. Both are known by their SHA-256.
type Request struct {
	Key  [32]byte
	Body [32]byte // of all that makes the request
}

// ReservationTTL is how long an idempotency key stands for its request.
const ReservationTTL = 24 * time.Hour

// Reservation is what is known of an idempotency key.
type Reservation struct {
	Request
	// At is when the key was reserved, by the database's clock.
	At time.Time
	// Slot is that of the manual run that was made under it; zero if none was.
	Slot time.Time
	// Leased are the runs that were leased under it; nil if none were.
	Leased []Message
}

// Overdue is what waits too long, of one kind: schedules that are due and not
// claimed, or runs in a state that somebody should have ended.
type Overdue struct {
	// State is empty for schedules.
	State RunState
	Queue string // of runs
	Count int64
	Since time.Time // since when the oldest waits
}

// AlertClaimRefused is the kind of alert of a schedule that no claim can carry out:
// it is tried again an hour later.
const AlertClaimRefused = "claim_refused"

// Alert is what needs a person about one schedule.
type Alert struct {
	ScheduleID uuid.UUID
	Name       string // of the schedule
	Kind       string
	// Detail is for those who run the installation: it can quote the database.
	Detail   string
	OpenedAt time.Time
}

// ScheduleRef names a schedule and whose it is.
type ScheduleRef struct {
	TenantID, ID uuid.UUID
}
