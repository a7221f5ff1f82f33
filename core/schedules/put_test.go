package schedules_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// put puts a schedule that must be taken and compares what became of it.
func (w *world) put(t *testing.T, want schedules.Outcome, version int64, f schedules.Fields) core.Scheduled {
	t.Helper()
	before, _ := w.service.GetNamed(t.Context(), w.tenant, *f.Name)
	dry, outcome, err := w.service.Put(t.Context(), w.tenant, f, true)
	if err != nil || outcome != want || dry.Schedule.Version != version {
		t.Errorf("dry run: %s, version %d, %v; want %s, version %d", outcome, dry.Schedule.Version, err, want, version)
	}
	if after, _ := w.service.GetNamed(t.Context(), w.tenant, *f.Name); !cmp.Equal(before, after) {
		t.Errorf("the dry run changed something: %s", cmp.Diff(before, after))
	}
	got, outcome, err := w.service.Put(t.Context(), w.tenant, f, false)
	if err != nil || outcome != want || got.Schedule.Version != version {
		t.Fatalf("%s, version %d, %v; want %s, version %d", outcome, got.Schedule.Version, err, want, version)
	}
	stored, err := w.service.Get(t.Context(), w.tenant, got.Schedule.ID)
	if err != nil {
		t.Fatal(err)
	}
	stored.LastState = "" // is not looked up for what stays as it is
	if diff := cmp.Diff(stored, got); diff != "" {
		t.Errorf("answered and stored differ: %s", diff)
	}
	dry.Schedule.ID, dry.Timer = got.Schedule.ID, got.Timer
	if diff := cmp.Diff(got, dry); diff != "" {
		t.Errorf("the dry run said otherwise: %s", diff)
	}
	return got
}

func TestPut(t *testing.T) {
	t.Parallel()
	w := newWorld()
	f := fields()
	first := w.put(t, schedules.Created, 1, f)
	w.clock.now = w.clock.now.Add(time.Second)
	w.put(t, schedules.Unchanged, 1, f)
	f.Overlap, f.TimeZone, f.MaxAttempts, f.Window = ptr(core.OverlapAllow), ptr("Europe/Berlin"), ptr(7), ptr(time.Minute)
	changed := w.put(t, schedules.Replaced, 2, f)
	if changed.Schedule.ID != first.Schedule.ID || changed.Schedule.MaxAttempts != 7 {
		t.Errorf("replaced is %+v", changed.Schedule)
	}
	// What is left out gets its default again.
	reset := w.put(t, schedules.Replaced, 3, fields())
	reset.Schedule.Version, reset.Schedule.UpdatedAt = first.Schedule.Version, first.Schedule.UpdatedAt
	if diff := cmp.Diff(first.Schedule, reset.Schedule); diff != "" {
		t.Error(diff)
	}
}

// TestPutOfEqualSpecs: however a spec is written, what comes to the same is no
// new version, and what comes to something else is one.
func TestPutOfEqualSpecs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second schedules.Fields
		want          schedules.Outcome
	}{
		"blanks":            {schedules.Fields{Spec: ptr("*/5  * * * *")}, schedules.Fields{Spec: ptr("*/5 * * * *")}, schedules.Unchanged},
		"another minute":    {schedules.Fields{Spec: ptr("5 * * * *")}, schedules.Fields{Spec: ptr("6 * * * *")}, schedules.Replaced},
		"zone in front":     {schedules.Fields{Spec: ptr("CRON_TZ=Asia/Tokyo 0 9 * * *")}, schedules.Fields{Spec: ptr("0 9 * * *"), TimeZone: ptr("Asia/Tokyo")}, schedules.Unchanged},
		"zone gone":         {schedules.Fields{Spec: ptr("CRON_TZ=Asia/Tokyo 0 9 * * *")}, schedules.Fields{Spec: ptr("0 9 * * *")}, schedules.Replaced},
		"phase of an id":    {schedules.Fields{Spec: ptr("every 15m")}, schedules.Fields{Spec: ptr("every 900s")}, schedules.Unchanged},
		"anchor":            {schedules.Fields{Spec: ptr("every 15m"), Anchor: ptr(time.Unix(60, 0))}, schedules.Fields{Spec: ptr("@every 15m"), Anchor: ptr(time.Unix(60, 0))}, schedules.Unchanged},
		"anchor gone":       {schedules.Fields{Spec: ptr("every 15m"), Anchor: ptr(time.Unix(60, 0))}, schedules.Fields{Spec: ptr("every 15m")}, schedules.Replaced},
		"H":                 {schedules.Fields{Spec: ptr("H H * * *")}, schedules.Fields{Spec: ptr("H H * * *")}, schedules.Unchanged},
		"one time":          {schedules.Fields{Spec: ptr("at 2027-01-05T09:00"), TimeZone: ptr("Asia/Tokyo")}, schedules.Fields{Spec: ptr("AT 2027-01-05 09:00:00"), TimeZone: ptr("Asia/Tokyo")}, schedules.Unchanged},
		"an instant":        {schedules.Fields{Spec: ptr("at 2027-01-05T09:00"), TimeZone: ptr("Asia/Tokyo")}, schedules.Fields{Spec: ptr("at 2027-01-05T00:00:00Z"), TimeZone: ptr("Asia/Tokyo")}, schedules.Replaced},
		"another time":      {schedules.Fields{Spec: ptr("at 2027-01-05T09:00")}, schedules.Fields{Spec: ptr("at 2027-01-05T09:01")}, schedules.Replaced},
		"clock changes":     {schedules.Fields{Spec: ptr("0 9 * * *")}, schedules.Fields{Spec: ptr("0 9 * * *"), DSTGap: ptr(core.DSTGapSkip)}, schedules.Replaced},
		"payload's members": {schedules.Fields{Spec: ptr("@daily"), Job: job(`{"command":"a","n":[1e3,-0.50,0]}`)}, schedules.Fields{Spec: ptr("@daily"), Job: job(`{ "n": [1000, -5e-1, -0.0], "command": "a" }`)}, schedules.Unchanged},
		"payload's numbers": {schedules.Fields{Spec: ptr("@daily"), Job: job(`{"command":"a","n":10}`)}, schedules.Fields{Spec: ptr("@daily"), Job: job(`{"command":"a","n":1}`)}, schedules.Replaced},
		"huge exponents":    {schedules.Fields{Spec: ptr("@daily"), Job: job(`{"command":"a","n":1e99999999999999999999}`)}, schedules.Fields{Spec: ptr("@daily"), Job: job(`{"command":"a","n":2e99999999999999999999}`)}, schedules.Replaced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			for _, f := range []*schedules.Fields{&c.first, &c.second} {
				f.Name = ptr("n")
				if f.Job == nil {
					f.Job = job(`{"command":"date"}`)
				}
			}
			w.put(t, schedules.Created, 1, c.first)
			version := int64(1)
			if c.want == schedules.Replaced {
				version = 2
			}
			w.put(t, c.want, version, c.second)
			w.put(t, schedules.Unchanged, version, c.second)
		})
	}
}

func job(payload string) *core.Job { return &core.Job{Queue: "exec", Payload: []byte(payload)} }

// TestPutOfATimeThatPassed: a file with a one-time schedule can be applied again
// after its time, with another job too, but not with another time in the past.
func TestPutOfATimeThatPassed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	f := fields()
	f.Spec = ptr("at 2026-12-01T11:00")
	w.put(t, schedules.Created, 1, f)
	w.clock.now = w.clock.now.Add(30 * 24 * time.Hour)
	w.put(t, schedules.Unchanged, 1, f)
	f.MaxAttempts = ptr(1)
	w.put(t, schedules.Replaced, 2, f)
	f.Spec = ptr("at 2026-12-02T11:00")
	_, _, err := w.service.Put(t.Context(), w.tenant, f, false)
	refusedField(t, err, "spec")
	f.CatchUpWithin = ptr(365 * 24 * time.Hour)
	_, _, err = w.service.Put(t.Context(), w.tenant, f, false)
	refusedField(t, err, "spec")
}

// TestRetriesAreMerged: an edit changes the members that it names, a default that
// is sent is no change, and a put without retries has the defaults.
func TestRetriesAreMerged(t *testing.T) {
	t.Parallel()
	w := newWorld()
	f := fields()
	f.Retry = schedules.RetryFields{InitialDelay: ptr(10 * time.Second), Jitter: ptr(core.JitterFull)}
	first := w.put(t, schedules.Created, 1, f)
	if want := (core.Retry{Jitter: core.JitterFull}); first.Schedule.Rules.Retry != want {
		t.Errorf("stored %+v, want %+v", first.Schedule.Rules.Retry, want)
	}
	edit := schedules.Fields{TotalTimeout: ptr(time.Hour), Retry: schedules.RetryFields{MaxDelay: ptr(time.Minute), Multiplier: ptr(1.5)}}
	got, err := w.service.Edit(t.Context(), w.tenant, first.Schedule.ID, edit)
	if want := (core.Retry{MaxDelay: time.Minute, Multiplier: 1.5, Jitter: core.JitterFull}); err != nil || got.Schedule.Rules.Retry != want || got.Schedule.Rules.TotalTimeout != time.Hour {
		t.Errorf("edited to %+v: %v", got.Schedule.Rules, err)
	}
	if got, err = w.service.Edit(t.Context(), w.tenant, first.Schedule.ID, edit); err != nil || got.Schedule.Version != 2 {
		t.Errorf("again: version %d, %v", got.Schedule.Version, err)
	}
	edit.Retry = schedules.RetryFields{MaxDelay: ptr(time.Second)}
	_, err = w.service.Edit(t.Context(), w.tenant, first.Schedule.ID, edit)
	refusedField(t, err, "retry.max_delay")
	f.Retry = schedules.RetryFields{}
	if got := w.put(t, schedules.Replaced, 3, f); got.Schedule.Rules.Retry != (core.Retry{}) || got.Schedule.Rules.TotalTimeout != 0 {
		t.Errorf("a put without retries left %+v", got.Schedule.Rules)
	}
}

func refusedField(t *testing.T, err error, field string) {
	t.Helper()
	var ce *core.Error
	if !errors.As(err, &ce) || ce.Code != core.CodeInvalid || ce.Field != field {
		t.Errorf("got %v, want %s to be refused", err, field)
	}
}

func TestPutRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*schedules.Fields)
		field  string
	}{
		"no name":       {func(f *schedules.Fields) { f.Name = nil }, "name"},
		"name with NUL": {func(f *schedules.Fields) { f.Name = ptr("a\x00") }, "name"},
		"no spec":       {func(f *schedules.Fields) { f.Spec = nil }, "spec"},
		"no job":        {func(f *schedules.Fields) { f.Job = nil }, "job"},
		"wrong spec":    {func(f *schedules.Fields) { f.Spec = ptr("61 * * * *") }, "spec"},
		"from now on":   {func(f *schedules.Fields) { f.Spec = ptr("in 3d") }, "spec"},
		"wrong window":  {func(f *schedules.Fields) { f.Window = ptr(-time.Second) }, "window"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			for _, exists := range []bool{false, true} {
				if exists {
					w.put(t, schedules.Created, 1, fields())
				}
				for _, dry := range []bool{true, false} {
					f := fields()
					c.change(&f)
					_, _, err := w.service.Put(t.Context(), w.tenant, f, dry)
					refusedField(t, err, c.field)
				}
			}
			if got, err := w.service.GetNamed(t.Context(), w.tenant, "nightly"); err != nil || got.Schedule.Version != 1 {
				t.Errorf("version %d, %v", got.Schedule.Version, err)
			}
		})
	}
}

// TestPutAndPauses: being paused is no content. It stays as it is unless it is
// asked for.
func TestPutAndPauses(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.put(t, schedules.Created, 1, fields())
	if _, err := w.service.Pause(t.Context(), w.tenant, s.Schedule.ID, schedules.PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	w.put(t, schedules.Unchanged, 2, fields())
	f := fields()
	f.Spec = ptr("0 9 * * *")
	if got := w.put(t, schedules.Replaced, 3, f); got.State() != core.SchedulePaused {
		t.Errorf("the schedule is %s", got.State())
	}
	f.Paused = ptr(false)
	if got := w.put(t, schedules.Replaced, 4, f); got.State() != core.ScheduleActive || !got.Timer.FireAt.Equal(time.Date(2026, 12, 2, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("the schedule is %s and fires at %s", got.State(), got.Timer.FireAt)
	}
	f.Paused, f.Name = ptr(true), ptr("born paused")
	w.clock.now = w.clock.now.Add(time.Minute)
	born := w.put(t, schedules.Created, 1, f)
	if born.State() != core.SchedulePaused || !born.Timer.FireAt.Equal(core.Forever) {
		t.Errorf("the schedule is %s and fires at %s", born.State(), born.Timer.FireAt)
	}
	w.clock.now = w.clock.now.Add(48 * time.Hour)
	resumed, err := w.service.Resume(t.Context(), w.tenant, born.Schedule.ID)
	if err != nil || !resumed.Timer.FireAt.Equal(time.Date(2026, 12, 4, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("it fires at %s, %v", resumed.Timer.FireAt, err)
	}
}

// TestPutRaces: whatever happens between the look and the write, the put ends as
// if it had come before or after.
func TestPutRaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*testing.T, *world) // before the put
		want    schedules.Outcome
		version int64
	}{
		"created, answer lost":  {func(_ *testing.T, w *world) { w.store.after = []error{core.ErrUnknownOutcome} }, schedules.Created, 1},
		"create lost":           {func(_ *testing.T, w *world) { w.store.instead = []error{core.ErrUnknownOutcome} }, schedules.Created, 1},
		"replaced, answer lost": {func(t *testing.T, w *world) { w.other(t); w.store.after = []error{core.ErrUnknownOutcome} }, schedules.Replaced, 2},
		"replace lost":          {func(t *testing.T, w *world) { w.other(t); w.store.instead = []error{core.ErrUnknownOutcome} }, schedules.Replaced, 2},
		"edited meanwhile":      {func(t *testing.T, w *world) { w.other(t); w.store.instead = []error{core.ErrChanged} }, schedules.Replaced, 2},
		"created meanwhile":     {func(t *testing.T, w *world) { w.store.before = func() { w.other(t) } }, schedules.Replaced, 2},
		"the same meanwhile": {func(t *testing.T, w *world) {
			w.store.before = func() { mustCreate(t, w, fields()) }
		}, schedules.Unchanged, 1},
		"deleted meanwhile": {func(t *testing.T, w *world) {
			id := w.other(t)
			w.store.before = func() {
				if err := w.service.Delete(t.Context(), w.tenant, id); err != nil {
					t.Error(err)
				}
			}
		}, schedules.Created, 1},
		"renamed meanwhile": {func(t *testing.T, w *world) {
			id := w.other(t)
			w.store.before = func() {
				if _, err := w.service.Edit(t.Context(), w.tenant, id, schedules.Fields{Name: ptr("elsewhere")}); err != nil {
					t.Error(err)
				}
			}
		}, schedules.Created, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.prepare(t, w)
			got, outcome, err := w.service.Put(t.Context(), w.tenant, fields(), false)
			if err != nil || outcome != c.want || got.Schedule.Version != c.version || got.Schedule.Spec != "*/5 * * * *" || got.Schedule.Name != "nightly" {
				t.Errorf("%s %+v %v", outcome, got.Schedule, err)
			}
			if again, outcome, err := w.service.Put(t.Context(), w.tenant, fields(), false); err != nil || outcome != schedules.Unchanged || again.Schedule.Version != c.version {
				t.Errorf("put again: %s, version %d, %v", outcome, again.Schedule.Version, err)
			}
		})
	}
}

// other creates a schedule of the same name and other content.
func (w *world) other(t *testing.T) uuid.UUID {
	t.Helper()
	f := fields()
	f.Spec = ptr("@daily")
	return mustCreate(t, w, f)
}

func mustCreate(t *testing.T, w *world, f schedules.Fields) uuid.UUID {
	t.Helper()
	s, err := w.service.Create(t.Context(), w.tenant, f)
	if err != nil {
		t.Fatal(err)
	}
	return s.Schedule.ID
}

func TestGetNamed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	want := w.put(t, schedules.Created, 1, fields())
	got, err := w.service.GetNamed(t.Context(), w.tenant, "nightly")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, name := range []string{"", "other", "a\xff", "a\x00"} {
		if _, err := w.service.GetNamed(t.Context(), w.tenant, name); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := w.service.GetNamed(t.Context(), uuid.New(), "nightly"); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("another tenant: %v", err)
	}
}

// TestDeleteNamed: what lost its name between the look and the write stays, and
// what has the name by then goes.
func TestDeleteNamed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	id := w.other(t)
	w.store.before = func() {
		if _, err := w.service.Edit(t.Context(), w.tenant, id, schedules.Fields{Name: ptr("elsewhere")}); err != nil {
			t.Error(err)
		}
	}
	if err := w.service.DeleteNamed(t.Context(), w.tenant, "nightly"); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("renamed meanwhile: %v", err)
	}
	heir := mustCreate(t, w, fields())
	w.store.after = []error{core.ErrUnknownOutcome}
	if err := w.service.DeleteNamed(t.Context(), w.tenant, "nightly"); err != nil {
		t.Errorf("answer lost: %v", err)
	}
	if _, err := w.service.Get(t.Context(), w.tenant, heir); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("the heir of the name is still there: %v", err)
	}
	if _, err := w.service.Get(t.Context(), w.tenant, id); err != nil {
		t.Errorf("the renamed schedule: %v", err)
	}
}
