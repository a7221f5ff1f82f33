package schedules_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

func request(key, body string) core.Request {
	return core.Request{Key: sha256.Sum256([]byte(key)), Body: sha256.Sum256([]byte(body))}
}

func (w *world) reserve(t *testing.T, tenant uuid.UUID, r core.Request) schedules.Origin {
	t.Helper()
	o, err := w.service.Reserve(t.Context(), tenant, r)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func idOf(t *testing.T, o schedules.Origin, index int) uuid.UUID {
	t.Helper()
	id, err := o.ID(index)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestIDsOfARequest: they are UUIDv7 of the reservation's time in the order of the
// request, the same whenever it is sent, and nobody else's.
func TestIDsOfARequest(t *testing.T) {
	t.Parallel()
	w := newWorld()
	o := w.reserve(t, w.tenant, request("k", "one"))
	seen := map[uuid.UUID]string{}
	last := uuid.UUID{}
	for i := range schedules.MaxMany {
		id := idOf(t, o, i)
		seen[id] = "first"
		if id.Version() != 7 || id.Variant() != uuid.RFC4122 || id.String() <= last.String() {
			t.Fatalf("id %d is %s after %s", i, id, last)
		}
		if sec, nsec := id.Time().UnixTime(); !time.Unix(sec, nsec).Equal(w.clock.now.Truncate(time.Millisecond)) {
			t.Fatalf("id %d is of %s", i, time.Unix(sec, nsec))
		}
		last = id
	}
	w.clock.now = w.clock.now.Add(23 * time.Hour)
	if idOf(t, w.reserve(t, w.tenant, request("k", "one")), 7) != idOf(t, o, 7) {
		t.Error("the request sent again has another id")
	}
	if _, err := w.service.Reserve(t.Context(), w.tenant, request("k", "two")); !errors.Is(err, core.ErrKeyReused) {
		t.Errorf("another request under the key: %v", err)
	}
	w.clock.now = w.clock.now.Add(2 * time.Hour)
	for what, other := range map[string]schedules.Origin{
		"another key": w.reserve(t, w.tenant, request("l", "one")), "another tenant": w.reserve(t, uuid.New(), request("k", "one")),
		"a day later": w.reserve(t, w.tenant, request("k", "two")),
	} {
		for i := range 10 {
			if id := idOf(t, other, i); seen[id] != "" {
				t.Errorf("%s has the id %s of the request of %s", what, id, seen[id])
			}
		}
	}
}

// TestCreateOnceAfterAnyFailure: whatever became of the first tries, the request
// makes one schedule, and says whether it made it.
func TestCreateOnceAfterAnyFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		instead, after []error
		again          bool // the try after the failed one finds it made
	}{
		"crash after the reservation":    {instead: []error{core.ErrNotFound}},
		"carried out, outcome unknown":   {after: []error{core.ErrUnknownOutcome, core.ErrUnknownOutcome, core.ErrUnknownOutcome}, again: true},
		"not carried out, unknown":       {instead: []error{core.ErrUnknownOutcome, core.ErrUnknownOutcome, core.ErrUnknownOutcome}},
		"refused by the database, later": {instead: []error{core.ErrBadRow}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.store.instead, w.store.after = c.instead, c.after
			r := request("k", "one")
			if _, _, err := w.service.CreateOnce(t.Context(), w.tenant, fields(), r); err == nil {
				t.Fatal("the first try did not fail")
			}
			w.store.instead, w.store.after = nil, nil
			made, again, err := w.service.CreateOnce(t.Context(), w.tenant, fields(), r)
			if err != nil || again != c.again {
				t.Fatalf("again: %t: %v", again, err)
			}
			same, again, err := w.service.CreateOnce(t.Context(), w.tenant, fields(), r)
			if err != nil || !again || same.Schedule.ID != made.Schedule.ID || w.count(t) != 1 {
				t.Errorf("sent once more: %s and %s, again: %t, %d schedules: %v", same.Schedule.ID, made.Schedule.ID, again, w.count(t), err)
			}
		})
	}
}

// TestManyUnsure: a batch that cannot know what its first statement
// made does not claim that an earlier request made it.
func TestManyUnsure(t *testing.T) {
	t.Parallel()
	w := newWorld()
	o := schedules.ManyOptions{ID: w.reserve(t, w.tenant, request("k", "one")).ID}
	w.store.after = []error{core.ErrUnknownOutcome}
	for _, again := range []bool{false, true} {
		for i, r := range w.many(t, o, []string{"created", "created"}, lot(2)...) {
			if r.Again != again {
				t.Errorf("item %d: again is %t, want %t", i, r.Again, again)
			}
		}
	}
}

// TestManyAgainWhenItsTimeHasPassed: what a batch made is found although it would
// be refused by now.
func TestManyAgainWhenItsTimeHasPassed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	all := lot(3)
	all[1].Spec, all[2].Spec = ptr("at 2026-12-01T11:00"), ptr("61 * * * *")
	o := schedules.ManyOptions{ID: w.reserve(t, w.tenant, request("k", "one")).ID}
	first := w.many(t, o, []string{"created", "created", "invalid spec"}, all...)
	w.clock.now = w.clock.now.Add(2 * time.Hour)
	again := w.many(t, o, []string{"created", "created", "invalid spec"}, all...)
	if id := again[1].Scheduled.Schedule.ID; !again[1].Again || id != first[1].Scheduled.Schedule.ID {
		t.Errorf("again %t, %s", again[1].Again, id)
	}
	all[1].Name = ptr("another")
	o.ID = w.reserve(t, w.tenant, request("l", "one")).ID
	w.many(t, o, []string{"conflict name", "invalid spec", "invalid spec"}, all...)
}
