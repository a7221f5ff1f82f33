// Package schedules carries out what users ask of schedules: it validates, reads,
// plans and writes in one guarded statement, so that no edit loses a slot.
package schedules

import (
	"time"

	"github.com/fencepost/fencepost/core"
)

// Fields are what a user may set of a schedule. A nil field is left as it is by
// Edit and gets its default from Create.
type Fields struct {
	Name *string
	// Spec is a cron expression, "every 15m", "at 2027-01-05T09:00" or "in 3d".
	Spec     *string
	TimeZone *string // IANA name; empty is UTC
	// Anchor is the origin of an interval. Without one the phase is a hash of
	// the schedule's id.
	Anchor       *time.Time
	Job          *core.Job
	Misfire      *core.Misfire
	MisfireGrace *time.Duration
	Overlap      *core.Overlap
	Window       *time.Duration
	Timeout      *time.Duration
	MaxAttempts  *int
}
