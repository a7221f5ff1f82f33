package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// counting counts how often it is asked how many schedules there are.
type counting struct {
	core.ScheduleStore
	asked int
	err   error
	full  bool // answer that there is no room, whatever there is
}

func (c *counting) CountSchedules(ctx context.Context, tenant uuid.UUID, most int) (int, error) {
	c.asked++
	if c.err != nil || c.full {
		return most, c.err
	}
	return c.ScheduleStore.CountSchedules(ctx, tenant, most)
}

// limitedWorld is a world with limits, and what counts in it.
func limitedWorld(t *testing.T, l schedules.Limits) (*world, *counting) {
	t.Helper()
	w := newWorld()
	c := &counting{ScheduleStore: w.store}
	w.service = w.process(t, c, l)
	return w, c
}

// process returns a service beside the world's, as another process has.
func (w *world) process(t *testing.T, store core.ScheduleStore, l schedules.Limits) *schedules.Service {
	t.Helper()
	s, err := schedules.NewLimited(store, "local", map[string]core.Target{"exec": picky{}}, l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// makeOne creates a schedule and wants it to be refused or not.
func (w *world) makeOne(t *testing.T, s *schedules.Service, refused bool) uuid.UUID {
	t.Helper()
	f := fields()
	f.Name = ptr(uuid.NewString())
	made, err := s.Create(t.Context(), w.tenant, f)
	if errors.Is(err, core.ErrQuotaExceeded) != refused || !refused && err != nil {
		t.Errorf("refused: %t, want %t: %v", err != nil, refused, err)
	}
	return made.Schedule.ID
}

func TestQuota(t *testing.T) {
	t.Parallel()
	w, _ := limitedWorld(t, schedules.Limits{Schedules: 3})
	for range 2 {
		w.makeOne(t, w.service, false)
	}
	id := w.makeOne(t, w.service, false)
	w.makeOne(t, w.service, true)
	f := fields()
	f.Name = ptr("one more")
	_, err := w.service.Create(t.Context(), w.tenant, f)
	if core.CodeOf(err) != core.CodeConflict || !strings.Contains(fmt.Sprint(err), "may have 3 schedules") {
		t.Errorf("refused with %v", err)
	}
	if err := w.service.Delete(t.Context(), w.tenant, id); err != nil {
		t.Fatal(err)
	}
	w.makeOne(t, w.service, false) // at once
	w.makeOne(t, w.service, true)
	w.tenant = uuid.New()
	w.makeOne(t, w.service, false)
}

// TestQuotaCountsSeldom: neither creating nor being refused costs a count each.
func TestQuotaCountsSeldom(t *testing.T) {
	t.Parallel()
	w, c := limitedWorld(t, schedules.Limits{Schedules: 40})
	for _, step := range []struct {
		pass    time.Duration
		n       int
		refused bool
		asked   int
	}{
		{0, 20, false, 1}, {10*time.Second - 1, 10, false, 1}, {1, 10, false, 2},
		{0, 20, true, 2}, {time.Second, 20, true, 3}, {900 * time.Millisecond, 20, true, 3},
	} {
		w.clock.now = w.clock.now.Add(step.pass)
		for range step.n {
			w.makeOne(t, w.service, step.refused)
		}
		if c.asked != step.asked {
			t.Errorf("after another %s and %d creations there were %d counts, want %d", step.pass, step.n, c.asked, step.asked)
		}
	}
}

// TestQuotaOfTwoProcesses is kept to within what they make in ten seconds.
func TestQuotaOfTwoProcesses(t *testing.T) {
	t.Parallel()
	w, c := limitedWorld(t, schedules.Limits{Schedules: 4})
	other := w.process(t, c, schedules.Limits{Schedules: 4})
	w.makeOne(t, w.service, false)
	var theirs []uuid.UUID
	for range 3 {
		theirs = append(theirs, w.makeOne(t, other, false))
	}
	w.makeOne(t, other, true)
	w.makeOne(t, w.service, false) // the fifth: this process has not counted since
	w.clock.now = w.clock.now.Add(10 * time.Second)
	w.makeOne(t, w.service, true)
	for _, id := range theirs {
		if err := other.Delete(t.Context(), w.tenant, id); err != nil {
			t.Fatal(err)
		}
	}
	w.makeOne(t, w.service, true)
	w.clock.now = w.clock.now.Add(time.Second)
	w.makeOne(t, w.service, false)
}

// TestQuotaOfMany: what is new beyond the quota is refused, each by itself.
func TestQuotaOfMany(t *testing.T) {
	t.Parallel()
	w, _ := limitedWorld(t, schedules.Limits{Schedules: 5})
	const full, taken = "conflict", "conflict name"
	put, dry := schedules.ManyOptions{Put: true}, schedules.ManyOptions{DryRun: true}
	all := lot(7)
	for range 2 { // a dry run takes nothing
		w.many(t, dry, []string{"created", "created", "created", "created", "created", full, full}, all...)
	}
	w.many(t, schedules.ManyOptions{}, []string{"created", "created", "created", "created"}, all[:4]...)
	// Names that are taken are told as such, and take no room.
	w.many(t, schedules.ManyOptions{}, []string{taken, taken, taken, taken, "created", full, full}, all...)
	w.many(t, schedules.ManyOptions{}, []string{taken, taken, taken, taken, taken, full, full}, all...)
	w.many(t, dry, []string{taken, taken, taken, taken, taken, full, full}, all...)
	all[3].MaxAttempts = ptr(9)
	w.many(t, put, []string{"unchanged", "unchanged", "unchanged", "replaced", "unchanged", full, full}, all...)
	if n := w.count(t); n != 5 {
		t.Errorf("there are %d schedules", n)
	}
	if _, _, err := w.service.Put(t.Context(), w.tenant, all[6], false); !errors.Is(err, core.ErrQuotaExceeded) {
		t.Errorf("put: %v", err)
	}
}

// TestQuotaLetsManyBeSentAgain: what a request has made is no more than it may.
func TestQuotaLetsManyBeSentAgain(t *testing.T) {
	t.Parallel()
	w, _ := limitedWorld(t, schedules.Limits{Schedules: 4})
	ids := make([]uuid.UUID, 4)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
	}
	o := schedules.ManyOptions{ID: func(index int) (uuid.UUID, error) { return ids[index], nil }}
	for range 3 {
		w.many(t, o, []string{"created", "created", "created", "created"}, lot(4)...)
	}
}

func TestQuotaGivesBack(t *testing.T) {
	t.Parallel()
	w, _ := limitedWorld(t, schedules.Limits{Schedules: 2})
	f := fields()
	for range 2 {
		_, err := w.service.Create(t.Context(), w.tenant, f) // the second time its name is taken
		if errors.Is(err, core.ErrQuotaExceeded) {
			t.Error(err)
		}
	}
	w.store.instead = []error{core.ErrBadRow}
	if _, err := w.service.Create(t.Context(), w.tenant, lot(1)[0]); core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("a refused value: %v", err)
	}
	w.makeOne(t, w.service, false)
	w.makeOne(t, w.service, true)
}

// TestQuotaUnderConcurrency: one process never makes more than the quota.
func TestQuotaUnderConcurrency(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.service = w.process(t, w.store.ScheduleStore, schedules.Limits{Schedules: 10})
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 4 {
				f := fields()
				f.Name = ptr(fmt.Sprint(i, "-", j))
				_, _ = w.service.Create(t.Context(), w.tenant, f) // the count tells
			}
		})
	}
	wait.Wait()
	if n := w.count(t); n != 10 {
		t.Errorf("there are %d schedules", n)
	}
}

func TestQuotaNeedsItsCount(t *testing.T) {
	t.Parallel()
	w, c := limitedWorld(t, schedules.Limits{Schedules: 9})
	c.err = &core.Error{Code: core.CodeUnavailable, Message: "no"}
	if _, err := w.service.Create(t.Context(), w.tenant, fields()); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("create: %v", err)
	}
	w.many(t, schedules.ManyOptions{}, []string{"unavailable", "unavailable"}, lot(2)...)
	if n := w.count(t); n != 0 {
		t.Errorf("there are %d schedules", n)
	}
}

// TestQuotaForgetsTenants: the memory for tenants is bounded.
func TestQuotaForgetsTenants(t *testing.T) {
	t.Parallel()
	w, c := limitedWorld(t, schedules.Limits{Schedules: 1})
	c.full = true
	tenants := make([]uuid.UUID, 10_010)
	for i := range tenants {
		tenants[i] = uuid.New()
	}
	for range 2 {
		for _, w.tenant = range tenants {
			w.makeOne(t, w.service, true)
		}
	}
	if c.asked < len(tenants)+10 || c.asked > len(tenants)+1000 {
		t.Errorf("%d counts for %d tenants", c.asked, len(tenants))
	}
}

func TestSmallestInterval(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		least  time.Duration
		spec   string
		refuse string // the gap that the refusal names
	}{
		{0, "* * * * * *", ""},
		{time.Second, "every 1s", ""},
		{time.Minute, "every 59s", "59s"},
		{time.Minute, "every 1m", ""},
		{time.Minute, "* * * * *", ""},
		{time.Minute, "30 * * * * *", ""},
		{time.Minute, "*/30 * * * * *", "30s"},
		{time.Minute, "0,1 0 0 1 1 *", "1s"}, // once a year
		{time.Minute, "0,59 0 0 29 2 *", "59s"},
		{20 * time.Second, "1,59 0,58,59 12 * * *", "2s"},
		{20 * time.Second, "0,20,50 0,2,59 2,3 * * *", "10s"}, // only from one hour to the next
		{5 * time.Minute, "*/7 * * * *", "4m"},                // at the end of the hour
		{5 * time.Minute, "*/5 * * * *", ""},
		{time.Hour, "59 23 * * 1\n", ""},
		{time.Hour, "0,59 * * * *", "59m"},
		{time.Hour, "H * * * *", ""},
		{time.Hour, "@hourly", ""},
		{24 * time.Hour, "30 2 * * *", ""}, // 23 h apart once a year, by the clocks
		{24 * time.Hour, "0 0,12 * * 7", "12h"},
		{48 * time.Hour, "0 0 1,31 * *", "1d"},
		{time.Hour, "at 2027-01-05T09:00", ""},
		{time.Hour, "in 90s", ""},
	} {
		w, _ := limitedWorld(t, schedules.Limits{MinInterval: c.least})
		f := fields()
		f.Spec, f.TimeZone = &c.spec, ptr("Europe/Berlin")
		_, err := w.service.Create(t.Context(), w.tenant, f)
		var ce *core.Error
		if c.refuse == "" && err != nil || c.refuse != "" && (!errors.As(err, &ce) || !errors.Is(err, core.ErrQuotaExceeded) || ce.Field != "spec" ||
			!strings.Contains(ce.Message, "has slots "+c.refuse+" apart")) {
			t.Errorf("%q, at least %s: %v", c.spec, c.least, err)
		}
	}
}

// TestSmallestIntervalOfEdits: a spec is judged when it comes, not because another
// field is edited.
func TestSmallestIntervalOfEdits(t *testing.T) {
	t.Parallel()
	w := newWorld()
	f := fields()
	f.Spec = ptr("every 5s")
	s, err := w.service.Create(t.Context(), w.tenant, f)
	if err != nil {
		t.Fatal(err)
	}
	id := s.Schedule.ID
	w.service = w.process(t, w.store, schedules.Limits{MinInterval: time.Minute})
	for name, c := range map[string]struct {
		f       schedules.Fields
		refused bool
	}{
		"another field": {schedules.Fields{MaxAttempts: ptr(7)}, false},
		"the same spec": {schedules.Fields{Spec: ptr("every 5s")}, false},
		"another spec":  {schedules.Fields{Spec: ptr("every 6s")}, true},
	} {
		if _, err := w.service.Edit(t.Context(), w.tenant, id, c.f); errors.Is(err, core.ErrQuotaExceeded) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.Spec = ptr("every 7s")
	results := w.service.Many(t.Context(), w.tenant, []schedules.Fields{f, lot(1)[0]}, schedules.ManyOptions{Put: true})
	if diff := cmp.Diff([]string{"conflict spec", "created"}, told(results)); diff != "" {
		t.Error(diff)
	}
}

func TestLimitsMustMakeSense(t *testing.T) {
	t.Parallel()
	for _, l := range []schedules.Limits{{Schedules: -1}, {Schedules: schedules.MaxQuota + 1}, {MinInterval: -1}} {
		if _, err := schedules.NewLimited(newWorld().store, "local", nil, l); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
