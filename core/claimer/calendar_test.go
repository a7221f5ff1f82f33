package claimer_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/schedules"
)

// A calendar that closes while the claimer holds the timers stops what is to come,
// and lets it go on when it opens again; other schedules do not notice.
func TestCalendarClosesMeanwhile(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		put := func(c core.CalendarContent) {
			t.Helper()
			service := schedules.New(s.db, "local", nil)
			if _, _, err := service.PutCalendar(s.Context(), s.tenant, "freeze", c, false); err != nil {
				s.Fatal(err)
			}
		}
		put(core.CalendarContent{})
		id := s.add("every 10s", 10*time.Second, func(c *core.Schedule) {
			c.Overlap, c.Rules.Calendars = core.OverlapAllow, []string{"freeze"}
		})
		free := s.add("every 10s", 10*time.Second, func(c *core.Schedule) { c.Overlap = core.OverlapAllow })
		stop := s.claim(func(c *claimer.Config) { c.Publisher = out })
		s.until(25 * time.Second)
		put(core.CalendarContent{Ranges: []core.ClosedRange{{From: "1990-01-01", To: "2990-01-01"}}})
		s.until(45 * time.Second)
		put(core.CalendarContent{})
		s.until(65 * time.Second)
		stop()
		seconds := func(all ...time.Duration) []time.Duration {
			for i := range all {
				all[i] *= time.Second
			}
			return all
		}
		if diff := cmp.Diff(seconds(10, 20, 50, 60), out.slotsOf(id)); diff != "" {
			s.Errorf("slots that ran (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(seconds(10, 20, 30, 40, 50, 60), out.slotsOf(free)); diff != "" {
			s.Errorf("slots of the other schedule (-want +got):\n%s", diff)
		}
	})
}

// A schedule whose calendar is missing does not run: it is parked with an alert.
func TestMissingCalendarParks(t *testing.T) {
	bubble(t, func(s *stage, out *inbox) {
		bad := s.add("every 1d", 10*time.Second, func(c *core.Schedule) { c.Rules.Calendars = []string{"missing"} })
		stop := s.claim(func(c *claimer.Config) { c.Publisher = out })
		s.until(11 * time.Second)
		if s.db.Alert(bad) == "" || s.get(bad).Timer.FireAt.Before(s.began.Add(time.Hour)) || len(out.slotsOf(bad)) > 0 {
			s.Errorf("the timer is %+v, want it parked", s.get(bad).Timer)
		}
		stop()
	})
}
