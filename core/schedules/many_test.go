package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// lot returns n schedules, named from 0 on.
func lot(n int) []schedules.Fields {
	all := make([]schedules.Fields, n)
	for i := range all {
		all[i] = fields()
		all[i].Name = ptr(fmt.Sprint("n", i))
	}
	return all
}

// told renders results for comparison: an outcome, or a code with its field.
func told(results []schedules.Result) []string {
	out := make([]string, len(results))
	for i, r := range results {
		out[i] = string(r.Outcome)
		if r.Err != nil {
			out[i] = string(core.CodeOf(r.Err))
		}
		if ce := (*core.Error)(nil); errors.As(r.Err, &ce) && ce.Field != "" {
			out[i] += " " + ce.Field
		}
	}
	return out
}

func (w *world) many(t *testing.T, o schedules.ManyOptions, want []string, all ...schedules.Fields) []schedules.Result {
	t.Helper()
	got := w.service.Many(t.Context(), w.tenant, all, o)
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Errorf("%+v: %s", o, diff)
	}
	return got
}

func (w *world) count(t *testing.T) int {
	t.Helper()
	all, err := w.service.List(t.Context(), w.tenant, core.ScheduleQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return len(all.Items)
}

// mixed is a lot with every kind of item: good, bad, one with a name that another
// has, one whose name exists already.
func mixed() []schedules.Fields {
	all := lot(6)
	all[1].Spec = ptr("61 * * * *")
	all[2].Name = nil
	all[3].Name = all[0].Name
	all[3].Spec = ptr("@daily")
	all[4].Name = ptr("old")
	return all
}

func TestManyCreates(t *testing.T) {
	t.Parallel()
	w := newWorld()
	old := fields()
	old.Name = ptr("old")
	mustCreate(t, w, old)
	want := []string{"created", "invalid spec", "invalid name", "conflict name", "conflict name", "created"}
	w.many(t, schedules.ManyOptions{DryRun: true}, want, mixed()...)
	if n := w.count(t); n != 1 {
		t.Errorf("%d schedules after a dry run", n)
	}
	got := w.many(t, schedules.ManyOptions{}, want, mixed()...)
	if n := w.count(t); n != 3 {
		t.Errorf("%d schedules", n)
	}
	stored, err := w.service.Get(t.Context(), w.tenant, got[5].Scheduled.Schedule.ID)
	if err != nil || stored.Schedule.Name != "n5" || stored.State() != core.ScheduleActive {
		t.Errorf("%+v %v", stored, err)
	}
	for _, i := range []int{3, 4} {
		if !errors.Is(got[i].Err, core.ErrNameTaken) {
			t.Errorf("item %d: %v", i, got[i].Err)
		}
	}
	w.many(t, schedules.ManyOptions{}, []string{}, []schedules.Fields{}...)
}

func TestManyPuts(t *testing.T) {
	t.Parallel()
	w := newWorld()
	old := fields()
	old.Name = ptr("old")
	mustCreate(t, w, old)
	all := mixed()
	all = append(all, old)
	all[6].Overlap = ptr(core.OverlapAllow)
	o := schedules.ManyOptions{Put: true}
	want := []string{"created", "invalid spec", "invalid name", "replaced", "unchanged", "created", "replaced"}
	dry := o
	dry.DryRun = true
	w.many(t, dry, want, all...)
	if n := w.count(t); n != 1 {
		t.Errorf("%d schedules after a dry run", n)
	}
	w.many(t, o, want, all...)
	if n := w.count(t); n != 3 {
		t.Errorf("%d schedules", n)
	}
	w.many(t, o, []string{"unchanged", "unchanged", "unchanged"}, all[3], all[5], all[6])
	for name, spec := range map[string]string{"n0": "@daily", "n5": "*/5 * * * *"} {
		if got, err := w.service.GetNamed(t.Context(), w.tenant, name); err != nil || got.Schedule.Spec != spec {
			t.Errorf("%s: %+v %v", name, got.Schedule, err)
		}
	}
}

// TestManyTakesAThousand: they are created by one statement, and read back by the
// hundred.
func TestManyTakesAThousand(t *testing.T) {
	t.Parallel()
	w := newWorld()
	counting := &counter{flaky: w.store}
	service := schedules.New(counting, "local", map[string]core.Target{"exec": picky{}})
	results := service.Many(t.Context(), w.tenant, lot(schedules.MaxMany+1), schedules.ManyOptions{})
	for i, r := range results[:schedules.MaxMany] {
		if r.Outcome != schedules.Created {
			t.Fatalf("item %d: %v", i, r.Err)
		}
	}
	if core.CodeOf(results[schedules.MaxMany].Err) != core.CodeInvalid {
		t.Errorf("item %d: %+v", schedules.MaxMany, results[schedules.MaxMany])
	}
	if got := counting.creates.Load(); got != 1 || counting.reads.Load() != 0 || w.count(t) != schedules.MaxMany {
		t.Errorf("%d statements made %d schedules after %d reads", got, w.count(t), counting.reads.Load())
	}
	for i, r := range service.Many(t.Context(), w.tenant, lot(schedules.MaxMany), schedules.ManyOptions{Put: true}) {
		if r.Outcome != schedules.Unchanged {
			t.Fatalf("item %d: %v", i, r.Err)
		}
	}
	if counting.creates.Load() != 1 || counting.reads.Load() != 10 {
		t.Errorf("%d creates, %d reads", counting.creates.Load(), counting.reads.Load())
	}
}

// TestManyPutsMeetWhatIsThere: what speaks against a new schedule does not against
// one that is there already.
func TestManyPutsMeetWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld()
	all := lot(150)
	all[3].Spec = ptr("at 2026-12-01T11:00")
	o := schedules.ManyOptions{Put: true}
	want := make([]string, len(all))
	for i := range want {
		want[i] = "created"
	}
	w.many(t, o, want, all...)
	w.clock.now = w.clock.now.Add(24 * time.Hour)
	for i := range want {
		want[i] = "unchanged"
	}
	all[7].Overlap, want[7] = ptr(core.OverlapAllow), "replaced"
	all[8].Spec, want[8] = ptr("61 * * * *"), "invalid spec"
	all[9].Name, want[9] = ptr("new"), "created"
	all[10].Name, all[10].Spec, want[10] = ptr("over"), ptr("at 2026-12-01T11:00"), "invalid spec"
	all[11].Spec, want[11] = ptr("in 3d"), "invalid spec"
	dry := o
	dry.DryRun = true
	w.many(t, dry, want, all...)
	w.many(t, o, want, all...)
	if n := w.count(t); n != 151 {
		t.Errorf("%d schedules", n)
	}
}

// counter counts statements.
type counter struct {
	*flaky
	creates, reads atomic.Int64
}

func (c *counter) CreateMany(ctx context.Context, tenant uuid.UUID, all []core.NewSchedule) ([]uuid.UUID, error) {
	c.creates.Add(1)
	return c.flaky.CreateMany(ctx, tenant, all)
}

func (c *counter) Named(ctx context.Context, tenant uuid.UUID, names []string) ([]core.Scheduled, error) {
	c.reads.Add(1)
	return c.flaky.Named(ctx, tenant, names)
}

// TestManyOfUnknownOutcome: a lost answer makes neither twins nor lies.
func TestManyOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(*flaky){
		"before the database": func(f *flaky) { f.instead = []error{core.ErrUnknownOutcome} },
		"after the database":  func(f *flaky) { f.after = []error{core.ErrUnknownOutcome} },
	} {
		for _, put := range []bool{false, true} {
			w := newWorld()
			lost(w.store)
			w.many(t, schedules.ManyOptions{Put: put}, []string{"created", "created", "created"}, lot(3)...)
			if n := w.count(t); n != 3 {
				t.Errorf("%s: %d schedules", name, n)
			}
		}
	}
	w := newWorld()
	w.store.instead = []error{core.ErrUnknownOutcome, core.ErrUnknownOutcome, core.ErrUnknownOutcome}
	for _, r := range w.many(t, schedules.ManyOptions{}, []string{"unavailable", "unavailable"}, lot(2)...) {
		if !errors.Is(r.Err, core.ErrUnknownOutcome) {
			t.Errorf("%v", r.Err)
		}
	}
}

// TestManyWithGivenIDs: sent again, as after an answer that never came, the items
// are found to be there already, each by its id.
func TestManyWithGivenIDs(t *testing.T) {
	t.Parallel()
	w := newWorld()
	ids := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	o := schedules.ManyOptions{ID: func(i int) (uuid.UUID, error) { return ids[i], nil }}
	want := []string{"created", "created", "created"}
	for range 2 {
		for i, r := range w.many(t, o, want, lot(3)...) {
			if r.Scheduled.Schedule.ID != ids[i] {
				t.Errorf("item %d has another id", i)
			}
		}
	}
	if n := w.count(t); n != 3 {
		t.Errorf("%d schedules", n)
	}
	o.Put = true
	w.many(t, o, want, lot(3)...)
	o.ID = func(int) (uuid.UUID, error) { return uuid.UUID{}, errors.New("no ids left") }
	w.many(t, o, []string{"internal", "internal"}, lot(2)...)
}

// TestManyFindsTheBadRow: what the database refuses is one item's fault.
func TestManyFindsTheBadRow(t *testing.T) {
	t.Parallel()
	w := newWorld()
	all := lot(20)
	want := make([]string, len(all))
	for i := range all {
		want[i] = "created"
	}
	for _, i := range []int{7, 19} {
		all[i].Job = job("{\"command\":\"\\u0000\"}")
		want[i] = "invalid job.payload"
	}
	w.many(t, schedules.ManyOptions{}, want, all...)
	if n := w.count(t); n != 18 {
		t.Errorf("%d schedules", n)
	}
}

// TestManyWithoutADatabase: every item says so.
func TestManyWithoutADatabase(t *testing.T) {
	t.Parallel()
	w := newWorld()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range w.service.Many(ctx, w.tenant, lot(3), schedules.ManyOptions{Put: true}) {
		if !errors.Is(r.Err, context.Canceled) {
			t.Errorf("%+v", r)
		}
	}
	down := &core.Error{Code: core.CodeUnavailable}
	w.store.instead = []error{down}
	w.many(t, schedules.ManyOptions{}, []string{"unavailable", "unavailable"}, lot(2)...)
}
