// Package simulate plays schedules on a virtual clock, and exists so that what a
// file of schedules does on the weekend of a clock change, or in an outage, is seen
// and asserted before it happens. Planning, claiming and explaining are the
// product's own, on the store in memory.
//
// Nothing is claimed during an outage; a run that is under way goes on and ends.
// Runs start when they are claimed. What depends on the id of a schedule, its
// spread and H in its spec, is that of an id made of its name.
package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/explain"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/core/spec"
)

// MaxRows bounds what one schedule may do.
const MaxRows = 200_000

// Span is a time from From up to To.
type Span struct{ From, To time.Time }

func (s Span) has(t time.Time) bool { return !t.Before(s.From) && t.Before(s.To) }

// Job is how the runs of a schedule go. The zero value succeeds at once.
type Job struct {
	RunTime time.Duration
	// Fail is how many attempts of each run fail, from the first on.
	Fail int
}

// Scenario is the time that is played.
type Scenario struct {
	Span
	Outages []Span
}

// Row is a row of history, with what the product says of it.
type Row struct {
	core.Run
	explain.Slot
	// ClaimedAt is when the row was made.
	ClaimedAt time.Time
}

// History is what a schedule did.
type History struct {
	ID       uuid.UUID
	Name     string
	Zone     *time.Location
	ZoneName string
	State    core.ScheduleState
	// Next is the first slot that was not dealt with; zero if there is none.
	Next     time.Time
	Rows     []Row // in the order of their slots
	Warnings []string
}

// Calendar is a calendar that schedules may name.
type Calendar struct {
	Name    string
	Content core.CalendarContent
}

// still is a clock that stands where it is put. The store only reads it.
type still struct{ now time.Time }

func (s *still) Now() time.Time { return s.now }

// Sleep implements core.Clock: time has come at once.
func (s *still) Sleep(ctx context.Context, d time.Duration) error {
	s.now = s.now.Add(max(d, 0))
	return context.Cause(ctx)
}

// After implements core.Clock as Sleep does.
func (s *still) After(d time.Duration) <-chan time.Time {
	s.now = s.now.Add(max(d, 0))
	c := make(chan time.Time, 1)
	c <- s.now
	return c
}

const region = "local"

// Play plays one schedule, which is created at the beginning of the scenario. Errors
// are those of a wrong schedule, and of one that makes more than MaxRows rows.
func Play(ctx context.Context, s Scenario, f schedules.Fields, targets map[string]core.Target, calendars []Calendar, job Job) (*History, error) {
	clock := &still{now: s.From.UTC()}
	store := memory.New(region, clock)
	service := schedules.New(store, region, targets)
	tenant := uuid.NewSHA1(uuid.NameSpaceOID, []byte("simulate"))
	for _, c := range calendars {
		if _, _, err := service.PutCalendar(ctx, tenant, c.Name, c.Content, false); err != nil {
			return nil, fmt.Errorf("calendar %s: %w", c.Name, err)
		}
	}
	made := service.Many(ctx, tenant, []schedules.Fields{f}, schedules.ManyOptions{ID: func(int) (uuid.UUID, error) {
		return uuid.NewSHA1(tenant, []byte(*f.Name)), nil
	}})[0]
	if made.Err != nil {
		return nil, made.Err
	}
	d := &driver{ctx: ctx, scenario: s, store: store, clock: clock, job: job, id: made.Scheduled.Schedule.ID, tenant: tenant}
	if err := d.play(); err != nil {
		return nil, err
	}
	return d.history()
}

// history reads what became of the schedule.
func (d *driver) history() (*History, error) {
	cur, err := d.store.Get(d.ctx, d.tenant, d.id)
	if err != nil {
		return nil, err
	}
	slots, err := spec.Of(&cur)
	if err != nil {
		return nil, err
	}
	h := &History{
		ID: d.id, Name: cur.Schedule.Name, ZoneName: slots.Zone, State: cur.State(), Next: slots.Next(cur.Timer.Done),
		Warnings: schedules.Warnings(&cur, slots),
	}
	var runs []core.Run
	for _, key := range d.keys {
		run, _, err := d.store.Run(d.ctx, d.tenant, key)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	slices.SortFunc(runs, func(a, b core.Run) int { return a.Key.Slot.Compare(b.Key.Slot) })
	var before *core.Run
	for i := range runs {
		f := explain.Facts{Cur: &cur, Slots: slots, Slot: runs[i].Key.Slot, Row: &runs[i], Before: before}
		if i+1 < len(runs) {
			f.Next = &runs[i+1]
		}
		h.Rows = append(h.Rows, Row{Run: runs[i], Slot: explain.Judge(f), ClaimedAt: runs[i].CreatedAt})
		if runs[i].State != core.RunSkipped {
			before = &runs[i]
		}
	}
	if h.Zone, err = explain.Zone(slots.Zone); err != nil {
		return nil, err
	}
	return h, nil
}
