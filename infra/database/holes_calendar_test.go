package database_test

import (
	"sync"

	"github.com/fencepost/fencepost/core"
)

// closeDuringClaim: a claim, planned while the slot was open, has taken its
// snapshot; a calendar closes the slot and is answered; the claim goes on. Nothing
// may start after the answer.
func closeDuringClaim(w *world) string {
	_, _, err := w.service().PutCalendar(w.ctx, w.tenant, "freeze", core.CalendarContent{}, false)
	w.must(err)
	id := w.overdue(func(s *core.Schedule) { s.Rules.Calendars = []string{"freeze"} })
	m := w.move(id, w.now())
	var got []core.Claimed
	var wg sync.WaitGroup
	wg.Go(func() { got = w.claim(id, m) })
	w.waitAsleep()
	always := core.CalendarContent{Ranges: []core.ClosedRange{{From: "2000-01-01", To: "2999-12-31"}}}
	_, _, err = w.service().PutCalendar(w.ctx, w.tenant, "freeze", always, false)
	w.must(err)
	wg.Wait()
	if len(got) > 0 {
		return "C8: a run was made after a calendar that closes its slot had been answered"
	}
	return ""
}
