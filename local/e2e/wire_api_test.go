package e2e_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// Parts of the texts by which the proxy knows the statements of the API.
const (
	createText  = "INSERT INTO schedules"
	applyText   = "version = s.version + 1, updated_at = now()"
	triggerText = "'queued', 'manual'"
	buryText    = "DELETE FROM timers"
	cancelText  = "SET state = CASE WHEN r.state = 'running' THEN 'running' ELSE 'canceled' END"
	reserveText = "INSERT INTO idempotency_keys"
	commitText  = "commit\x00" // the whole of a simple query
)

// outline is what the database holds of a test's one schedule.
type outline struct {
	Schedules, Tombstones, Timers int
	Paused                        bool
	Version                       int64
	Spec                          string
	Manual                        int // runs
}

func (w *world) outline() outline {
	w.Helper()
	o := outline{
		Schedules: w.count("schedules"), Tombstones: w.count("schedules WHERE deleted_at IS NOT NULL"), Timers: w.count("timers"),
		Manual: w.count("runs WHERE cause = 'manual'"),
	}
	for _, s := range rows[string](w, "SELECT spec FROM schedules") {
		o.Spec = s
	}
	for _, v := range rows[int64](w, "SELECT version FROM schedules") {
		o.Version = v
	}
	for _, p := range rows[bool](w, "SELECT paused FROM schedules") {
		o.Paused = p
	}
	return o
}

// call is a call of the API with the statement that its connection breaks at.
type call struct {
	statement string
	before    func(w *world, id uuid.UUID) // on an unbroken connection; may be nil
	do        func(w *world, api *schedules.Service, id uuid.UUID) error
	want      outline
}

func calls() map[string]call {
	edit := func(w *world, api *schedules.Service, id uuid.UUID) error {
		_, err := api.Edit(w.ctx, w.tenant, id, schedules.Fields{Spec: ptr("every 2h")})
		return err
	}
	pause := func(w *world, api *schedules.Service, id uuid.UUID) error {
		_, err := api.Pause(w.ctx, w.tenant, id, schedules.PauseOptions{})
		return err
	}
	resume := func(w *world, api *schedules.Service, id uuid.UUID) error {
		_, err := api.Resume(w.ctx, w.tenant, id)
		return err
	}
	paused := func(w *world, id uuid.UUID) { w.must(pause(w, w.service(w.db), id)) }
	trigger := func(w *world, api *schedules.Service, id uuid.UUID) error {
		run, err := api.Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
		if err == nil && w.count("runs WHERE scheduled_for = $1", run.Key.Slot) != 1 {
			w.Errorf("the answer names a run that does not exist: %+v", run)
		}
		return err
	}
	remove := func(w *world, api *schedules.Service, id uuid.UUID) error { return api.Delete(w.ctx, w.tenant, id) }
	gone := outline{Schedules: 1, Tombstones: 1, Version: 2, Spec: "every 1h"}
	edited := outline{Schedules: 1, Timers: 1, Version: 2, Spec: "every 2h"}
	ran := outline{Schedules: 1, Timers: 1, Version: 1, Spec: "every 1h", Manual: 1}
	return map[string]call{
		"edit":                {applyText, nil, edit, edited},
		"edit of version 1":   {applyText, nil, ofVersion(1, edit), edited},
		"delete of version 1": {buryText, nil, ofVersion(1, remove), gone},
		"trigger with key":    {triggerText, nil, triggerTwice, ran},
		"trigger, key":        {reserveText, nil, triggerTwice, ran},
		"cancel":              {cancelText, nil, cancelRun, ran},
		"pause":               {applyText, nil, pause, outline{Schedules: 1, Timers: 1, Version: 2, Spec: "every 1h", Paused: true}},
		"resume":              {applyText, paused, resume, outline{Schedules: 1, Timers: 1, Version: 3, Spec: "every 1h"}},
		"trigger":             {triggerText, nil, trigger, ran},
		"delete, tombstone":   {buryText, nil, remove, gone},
		"delete, runs":        {cancelText, nil, remove, gone},
		"delete, commit":      {commitText, nil, remove, gone},
	}
}

// ofVersion demands a version of the schedule for a call.
func ofVersion(version int64, do func(*world, *schedules.Service, uuid.UUID) error) func(*world, *schedules.Service, uuid.UUID) error {
	return func(w *world, api *schedules.Service, id uuid.UUID) error {
		return do(w, api.If(schedules.Match{Set: true, Versions: []int64{version}}), id)
	}
}

// triggerTwice sends a trigger twice under one idempotency key.
func triggerTwice(w *world, api *schedules.Service, id uuid.UUID) error {
	w.Helper()
	r := core.Request{Key: [32]byte{1}, Body: [32]byte{2}}
	first, err := api.Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{Request: &r})
	if err != nil {
		return err
	}
	second, err := api.Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{Request: &r})
	if first.Again || !second.Again || first.Key != second.Key {
		w.Errorf("the same request was answered with %s and %s", first.Key.ID(), second.Key.ID())
	}
	return err
}

// cancelRun cancels a run that waits.
func cancelRun(w *world, api *schedules.Service, id uuid.UUID) error {
	w.Helper()
	run, err := api.Trigger(w.ctx, w.tenant, id, schedules.TriggerOptions{})
	w.must(err)
	got, err := api.CancelRun(w.ctx, w.tenant, run.Key)
	if n := w.count("runs WHERE state = 'canceled' AND reason = 'requested'"); n != 1 || got.State != core.RunCanceled {
		w.Errorf("%d canceled runs, the answer is %s", n, got.State)
	}
	return err
}

// The connection breaks at the write of an API call: the call answers with
// success, and what it asked for has happened once.
func TestCallOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range calls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMoment(t, func(w *world, when moment) {
				ahead := w.now().Truncate(time.Second).Add(30 * time.Minute)
				id := w.seed(1, "every 1h", ahead, ahead.Add(-time.Second), nil)[0]
				if c.before != nil {
					c.before(w, id)
				}
				p, url := newProxy(w)
				broken := p.arm(c.statement, when)
				w.must(c.do(w, w.service(w.open(url)), id))
				signal(w, "the connection is cut", broken.done)
				if diff := cmp.Diff(c.want, w.outline()); diff != "" {
					w.Errorf("the schedule: %s", diff)
				}
			})
		})
	}
}

// The connection breaks at the creation of a schedule: the call answers with
// it, and there is one.
func TestCreateOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	eachMoment(t, func(w *world, when moment) {
		p, url := newProxy(w)
		broken := p.arm(createText, when)
		made, err := w.service(w.open(url)).Create(w.ctx, w.tenant, schedules.Fields{
			Name: ptr("nightly"), Spec: ptr("every 1h"), Job: &core.Job{Queue: queue, Payload: []byte(`{}`)},
		})
		w.must(err)
		signal(w, "the connection is cut", broken.done)
		if made.Schedule.Name != "nightly" || made.Timer.FireAt.IsZero() {
			w.Errorf("create answered %+v", made)
		}
		if diff := cmp.Diff(outline{Schedules: 1, Timers: 1, Version: 1, Spec: "every 1h"}, w.outline()); diff != "" {
			w.Errorf("the schedule: %s", diff)
		}
	})
}

// The connection breaks at one of the statements of a creation under an
// idempotency key, alone or in a batch: sent again, the request has made the same.
func TestCreateOnceOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	r := core.Request{Key: [32]byte{1}, Body: [32]byte{2}}
	fields := schedules.Fields{Name: ptr("nightly"), Spec: ptr("every 1h"), Job: &core.Job{Queue: queue, Payload: []byte(`{}`)}}
	one := func(w *world, api *schedules.Service) (uuid.UUID, bool, error) {
		made, again, err := api.CreateOnce(w.ctx, w.tenant, fields, r)
		return made.Schedule.ID, again, err
	}
	batch := func(w *world, api *schedules.Service) (uuid.UUID, bool, error) {
		o, err := api.Reserve(w.ctx, w.tenant, r)
		w.must(err)
		got := api.Many(w.ctx, w.tenant, []schedules.Fields{fields}, schedules.ManyOptions{ID: o.ID})[0]
		return got.Scheduled.Schedule.ID, got.Again, got.Err
	}
	for name, c := range map[string]struct {
		statement string
		do        func(*world, *schedules.Service) (uuid.UUID, bool, error)
	}{"key": {reserveText, one}, "schedule": {createText, one}, "batch": {createText, batch}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMoment(t, func(w *world, when moment) {
				p, url := newProxy(w)
				broken := p.arm(c.statement, when)
				api := w.service(w.open(url))
				first, was, err := c.do(w, api)
				w.must(err)
				signal(w, "the connection is cut", broken.done)
				second, is, err := c.do(w, api)
				w.must(err)
				if first != second || was || !is {
					w.Errorf("made %s, again %t; then %s, again %t", first, was, second, is)
				}
				if diff := cmp.Diff(outline{Schedules: 1, Timers: 1, Version: 1, Spec: "every 1h"}, w.outline()); diff != "" {
					w.Errorf("the schedule: %s", diff)
				}
			})
		})
	}
}

func ptr[T any](v T) *T { return &v }
