package schedules_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/core/schedules"
)

// stopped is a clock that a test moves.
type stopped struct {
	core.Clock
	now time.Time
}

func (s *stopped) Now() time.Time { return s.now }

// picky is a target that wants a command.
type picky struct{ core.Target }

func (picky) Check(p json.RawMessage) error {
	if !strings.Contains(string(p), "command") {
		return core.Invalid("command", "is missing")
	}
	return nil
}

// flaky answers each write as its list of errors says, after carrying it out or
// instead.
type flaky struct {
	core.ScheduleStore
	instead []error // errors of writes that did not happen
	after   []error // errors of writes that did
	before  func()  // runs before the next write, once
	then    func()  // runs after it, once
}

func (f *flaky) write(do func() error) error {
	if before := f.before; before != nil {
		f.before = nil
		before()
	}
	if len(f.instead) > 0 {
		err := f.instead[0]
		f.instead = f.instead[1:]
		return err
	}
	err := do()
	if then := f.then; then != nil {
		f.then = nil
		then()
	}
	if err == nil && len(f.after) > 0 {
		err = f.after[0]
		f.after = f.after[1:]
	}
	return err
}

func (f *flaky) Create(ctx context.Context, s core.Schedule, nextAt, done time.Time) error {
	return f.write(func() error { return f.ScheduleStore.Create(ctx, s, nextAt, done) })
}

func (f *flaky) CreateMany(ctx context.Context, tenant uuid.UUID, all []core.NewSchedule) (made []uuid.UUID, err error) {
	err = f.write(func() error {
		made, err = f.ScheduleStore.CreateMany(ctx, tenant, all)
		return err
	})
	if err != nil {
		made = nil
	}
	return made, err
}

func (f *flaky) Apply(ctx context.Context, tenant uuid.UUID, e core.Edit) error {
	return f.write(func() error { return f.ScheduleStore.Apply(ctx, tenant, e) })
}

func (f *flaky) Delete(ctx context.Context, tenant uuid.UUID, e core.Edit) error {
	return f.write(func() error { return f.ScheduleStore.Delete(ctx, tenant, e) })
}

func (f *flaky) Trigger(ctx context.Context, tenant uuid.UUID, s core.Manual) (run core.Run, err error) {
	err = f.write(func() error {
		run, err = f.ScheduleStore.Trigger(ctx, tenant, s)
		return err
	})
	return run, err
}

func (f *flaky) Redrive(ctx context.Context, tenant uuid.UUID, r core.Redrive) error {
	return f.write(func() error { return f.ScheduleStore.Redrive(ctx, tenant, r) })
}

type world struct {
	clock   *stopped
	store   *flaky
	service *schedules.Service
	tenant  uuid.UUID
}

func newWorld() *world {
	clock := &stopped{now: time.Date(2026, 12, 1, 10, 0, 30, 0, time.UTC)}
	store := &flaky{ScheduleStore: memory.New("local", clock)}
	return &world{
		clock: clock, store: store, tenant: uuid.New(),
		service: schedules.New(store, "local", map[string]core.Target{"exec": picky{}}),
	}
}

func ptr[T any](v T) *T { return &v }

func fields() schedules.Fields {
	return schedules.Fields{
		Name: ptr("nightly"), Spec: ptr("*/5 * * * *"), Job: &core.Job{Queue: "exec", Payload: []byte(`{"command":"date"}`)},
	}
}

func TestCreateFillsInTheDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld()
	got, err := w.service.Create(t.Context(), w.tenant, fields())
	if err != nil {
		t.Fatal(err)
	}
	s := got.Schedule
	if s.Overlap != core.OverlapSkip || s.Misfire != core.MisfireRunOnce || s.MisfireGrace != time.Minute || s.MaxAttempts != 5 ||
		s.Timeout != 15*time.Minute || s.Version != 1 || got.State() != core.ScheduleActive {
		t.Errorf("created %+v", s)
	}
	if want := time.Date(2026, 12, 1, 10, 5, 0, 0, time.UTC); !got.Timer.FireAt.Equal(want) {
		t.Errorf("it fires at %s, want %s", got.Timer.FireAt, want)
	}
}

// TestRefusals: each wrong field is named, and nothing is stored.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*schedules.Fields)
		field  string
	}{
		"no name":             {func(f *schedules.Fields) { f.Name = nil }, "name"},
		"empty name":          {func(f *schedules.Fields) { f.Name = ptr("") }, "name"},
		"long name":           {func(f *schedules.Fields) { f.Name = ptr(strings.Repeat("x", 201)) }, "name"},
		"name not UTF-8":      {func(f *schedules.Fields) { f.Name = ptr("a\xff") }, "name"},
		"name with NUL":       {func(f *schedules.Fields) { f.Name = ptr("a\x00") }, "name"},
		"no spec":             {func(f *schedules.Fields) { f.Spec = nil }, "spec"},
		"spec wrong":          {func(f *schedules.Fields) { f.Spec = ptr("61 * * * *") }, "spec"},
		"zone wrong":          {func(f *schedules.Fields) { f.TimeZone = ptr("PST") }, "time_zone"},
		"anchor for cron":     {func(f *schedules.Fields) { f.Anchor = ptr(time.Unix(0, 0)) }, "anchor"},
		"no job":              {func(f *schedules.Fields) { f.Job = nil }, "job"},
		"queue unknown":       {func(f *schedules.Fields) { f.Job = &core.Job{Queue: "ftp", Payload: []byte("{}")} }, "job.queue"},
		"no queue":            {func(f *schedules.Fields) { f.Job = &core.Job{Payload: []byte("{}")} }, "job.queue"},
		"payload not JSON":    {func(f *schedules.Fields) { f.Job = &core.Job{Queue: "exec", Payload: []byte("{")} }, "job.payload"},
		"payload refused":     {func(f *schedules.Fields) { f.Job = &core.Job{Queue: "exec", Payload: []byte("{}")} }, "job.payload.command"},
		"misfire unknown":     {func(f *schedules.Fields) { f.Misfire = ptr(core.Misfire("never")) }, "misfire"},
		"overlap unknown":     {func(f *schedules.Fields) { f.Overlap = ptr(core.Overlap("maybe")) }, "overlap"},
		"grace short":         {func(f *schedules.Fields) { f.MisfireGrace = ptr(time.Second) }, "misfire_grace"},
		"window long":         {func(f *schedules.Fields) { f.Window = ptr(25 * time.Hour) }, "window"},
		"window of a part":    {func(f *schedules.Fields) { f.Window = ptr(1500 * time.Millisecond) }, "window"},
		"timeout negative":    {func(f *schedules.Fields) { f.Timeout = ptr(-time.Second) }, "timeout"},
		"no attempts":         {func(f *schedules.Fields) { f.MaxAttempts = ptr(0) }, "retry.max_attempts"},
		"too many attempts":   {func(f *schedules.Fields) { f.MaxAttempts = ptr(1001) }, "retry.max_attempts"},
		"one time, long past": {func(f *schedules.Fields) { f.Spec = ptr("at 2020-01-01T00:00") }, "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			f := fields()
			c.change(&f)
			_, err := w.service.Create(t.Context(), w.tenant, f)
			var ce *core.Error
			if !errors.As(err, &ce) || ce.Code != core.CodeInvalid || ce.Field != c.field {
				t.Errorf("got %v, want field %s to be refused", err, c.field)
			}
			if all, err := w.service.List(t.Context(), w.tenant, core.ScheduleQuery{Limit: 10}); err != nil || len(all.Items) != 0 {
				t.Errorf("%d schedules were stored, %v", len(all.Items), err)
			}
		})
	}
}

// TestWritesOfUnknownOutcome: whether a write happened or not, the user gets one
// schedule, one edit, one run.
func TestWritesOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(*flaky){
		"before the database": func(f *flaky) { f.instead = []error{core.ErrUnknownOutcome} },
		"after the database":  func(f *flaky) { f.after = []error{core.ErrUnknownOutcome} },
		"fence moved on":      func(f *flaky) { f.instead = []error{core.ErrChanged, core.ErrChanged} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			ctx := t.Context()
			if name != "fence moved on" { // creating has no fence
				lost(w.store)
			}
			s, err := w.service.Create(ctx, w.tenant, fields())
			if err != nil {
				t.Fatal(err)
			}
			id := s.Schedule.ID
			lost(w.store)
			if s, err = w.service.Edit(ctx, w.tenant, id, schedules.Fields{Name: ptr("other")}); err != nil || s.Schedule.Version != 2 {
				t.Errorf("edit: version %d, %v", s.Schedule.Version, err)
			}
			lost(w.store)
			if s, err = w.service.Pause(ctx, w.tenant, id, schedules.PauseOptions{}); err != nil || !s.Schedule.Paused || s.Schedule.Version != 3 {
				t.Errorf("pause: version %d, %v", s.Schedule.Version, err)
			}
			lost(w.store)
			if s, err = w.service.Resume(ctx, w.tenant, id); err != nil || s.Schedule.Paused || s.Schedule.Version != 4 {
				t.Errorf("resume: version %d, %v", s.Schedule.Version, err)
			}
			lost(w.store)
			if _, err := w.service.Trigger(ctx, w.tenant, id, schedules.TriggerOptions{}); err != nil {
				t.Errorf("trigger: %v", err)
			}
			runs, err := w.service.Runs(ctx, w.tenant, id, core.RunQuery{Limit: 10})
			if err != nil || len(runs.Items) != 1 {
				t.Errorf("%d runs after one trigger, %v", len(runs.Items), err)
			}
			lost(w.store)
			if err := w.service.Delete(ctx, w.tenant, id); err != nil {
				t.Errorf("delete: %v", err)
			}
			if _, err := w.service.Get(ctx, w.tenant, id); !errors.Is(err, core.ErrNotFound) {
				t.Errorf("after the delete: %v", err)
			}
		})
	}
}

// TestRepeatsChangeNothing: pausing twice, resuming twice and an edit to what is
// there make no new version.
func TestRepeatsChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld()
	ctx := t.Context()
	s, err := w.service.Create(ctx, w.tenant, fields())
	if err != nil {
		t.Fatal(err)
	}
	same := fields()
	same.Job.Payload = []byte(`{ "command" : "date" }`)
	for name, do := range map[string]func() (core.Scheduled, error){
		"resume": func() (core.Scheduled, error) { return w.service.Resume(ctx, w.tenant, s.Schedule.ID) },
		"edit":   func() (core.Scheduled, error) { return w.service.Edit(ctx, w.tenant, s.Schedule.ID, same) },
	} {
		if got, err := do(); err != nil || got.Schedule.Version != 1 {
			t.Errorf("%s: version %d, %v", name, got.Schedule.Version, err)
		}
	}
}

// TestTriggerThatCommitsLate: a trigger's answer is lost and its write seems not
// to have happened; the next one finds the fence moved on, and the first run.
func TestTriggerThatCommitsLate(t *testing.T) {
	t.Parallel()
	w := newWorld()
	ctx := t.Context()
	s, err := w.service.Create(ctx, w.tenant, fields())
	if err != nil {
		t.Fatal(err)
	}
	w.store.after = []error{core.ErrUnknownOutcome}
	hidden := &late{flaky: w.store}
	run, err := schedules.New(hidden, "local", nil).Trigger(ctx, w.tenant, s.Schedule.ID, schedules.TriggerOptions{})
	if err != nil {
		t.Fatalf("trigger: %v", err)
	}
	runs, err := w.service.Runs(ctx, w.tenant, s.Schedule.ID, core.RunQuery{Limit: 10})
	if err != nil || len(runs.Items) != 1 || runs.Items[0].Key != run.Key {
		t.Errorf("%d runs, %v", len(runs.Items), err)
	}
}

// late hides each run from its first look-up.
type late struct {
	*flaky
	looked bool
}

func (l *late) Run(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, []core.Attempt, error) {
	if !l.looked {
		l.looked = true
		return core.Run{}, nil, core.ErrNotFound
	}
	return l.flaky.Run(ctx, tenant, key)
}

func TestTriggerBesideALiveRun(t *testing.T) {
	t.Parallel()
	w := newWorld()
	ctx := t.Context()
	s, err := w.service.Create(ctx, w.tenant, fields())
	if err != nil {
		t.Fatal(err)
	}
	first, err := w.service.Trigger(ctx, w.tenant, s.Schedule.ID, schedules.TriggerOptions{})
	if err != nil || first.Key.Slot.Nanosecond()%int(time.Millisecond) == 0 {
		t.Fatalf("a manual run at %s, %v", first.Key.Slot, err)
	}
	if _, err := w.service.Trigger(ctx, w.tenant, s.Schedule.ID, schedules.TriggerOptions{}); !errors.Is(err, core.ErrRunLive) {
		t.Errorf("the second trigger: %v, want run_live", err)
	}
	if _, err := w.service.Edit(ctx, w.tenant, s.Schedule.ID, schedules.Fields{Overlap: ptr(core.OverlapAllow)}); err != nil {
		t.Fatal(err)
	}
	second, err := w.service.Trigger(ctx, w.tenant, s.Schedule.ID, schedules.TriggerOptions{})
	if err != nil || second.Key == first.Key {
		t.Errorf("beside a live run with overlap allow: %+v, %v", second.Key, err)
	}
}

// TestTenantsAreApart: with a foreign id every operation answers as with none.
func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld()
	ctx := t.Context()
	s, err := w.service.Create(ctx, w.tenant, fields())
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.service.Trigger(ctx, w.tenant, s.Schedule.ID, schedules.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stranger, id := uuid.New(), s.Schedule.ID
	for name, err := range map[string]error{
		"get":     second(w.service.Get(ctx, stranger, id)),
		"edit":    second(w.service.Edit(ctx, stranger, id, schedules.Fields{Name: ptr("mine")})),
		"pause":   second(w.service.Pause(ctx, stranger, id, schedules.PauseOptions{})),
		"resume":  second(w.service.Resume(ctx, stranger, id)),
		"delete":  w.service.Delete(ctx, stranger, id),
		"trigger": second(w.service.Trigger(ctx, stranger, id, schedules.TriggerOptions{})),
		"redrive": second(w.service.Redrive(ctx, stranger, run.Key)),
		"runs":    second(w.service.Runs(ctx, stranger, id, core.RunQuery{Limit: 10})),
		"run": func() error {
			_, _, err := w.service.Run(ctx, stranger, run.Key)
			return err
		}(),
	} {
		if !errors.Is(err, core.ErrNotFound) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestEditThatMovesNoSlot: the time of a one-time schedule has come and its start,
// spread by the window, has not: a change of what decides about no slot of it
// must not drop the run.
func TestEditThatMovesNoSlot(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]schedules.Fields{
		"dst_overlap": {DSTOverlap: ptr(core.DSTOverlapBoth)},
		"time_zone":   {TimeZone: ptr("Asia/Tokyo")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			f := fields()
			f.Spec, f.Window = ptr("at 2026-12-01T11:00:00Z"), ptr(24*time.Hour)
			s, err := w.service.Create(t.Context(), w.tenant, f)
			if err != nil {
				t.Fatal(err)
			}
			if s.Schedule.Offset() < time.Minute {
				t.Skip("this id starts at once")
			}
			w.clock.now = time.Date(2026, 12, 1, 11, 0, 1, 0, time.UTC)
			got, err := w.service.Edit(t.Context(), w.tenant, s.Schedule.ID, change)
			if err != nil {
				t.Fatal(err)
			}
			runs, err := w.service.Runs(t.Context(), w.tenant, s.Schedule.ID, core.RunQuery{Limit: 10})
			if err != nil || len(runs.Items) != 0 || !got.Timer.FireAt.Equal(s.Timer.FireAt) {
				t.Errorf("the timer went from %s to %s, with %d rows, %v", s.Timer.FireAt, got.Timer.FireAt, len(runs.Items), err)
			}
		})
	}
}
