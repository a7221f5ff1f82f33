package storetest

import (
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func manualTests() []test {
	return []test{
		{"a key stands for one request for a day", testReserve},
		{"one key makes one manual run", testTriggerOnce},
		{"one key leases the same runs again", testNoteLease},
		{"a manual run may have a payload of its own", testTriggerPayload},
		{"a cancel ends what waits and asks what runs", testCancelRun},
	}
}

func request(key, body string) core.Request {
	return core.Request{Key: sha256.Sum256([]byte(key)), Body: sha256.Sum256([]byte(body))}
}

func (w *world) reserve(tenant uuid.UUID, r core.Request) core.Reservation {
	w.Helper()
	got, err := w.Store.Reserve(w.ctx, tenant, r)
	w.must(err)
	return got
}

func testReserve(w *world) {
	first := request("key", "one")
	want := core.Reservation{Request: first, At: w.now()}
	w.same("reservation", want, w.reserve(w.tenant, first))
	w.Advance(core.ReservationTTL - time.Second)
	w.same("the same again", want, w.reserve(w.tenant, first))
	w.same("another request", want, w.reserve(w.tenant, request("key", "two")))
	other := request("key", "two")
	w.same("another tenant", core.Reservation{Request: other, At: w.now()}, w.reserve(uuid.New(), other))
	w.Advance(time.Second)
	w.same("a day later", core.Reservation{Request: other, At: w.now()}, w.reserve(w.tenant, other))
}

func testNoteLease(w *world) {
	r := request("lease", "one")
	w.reserve(w.tenant, r)
	key := core.RunKey{Region: w.Region, ScheduleID: uuid.New(), Slot: w.now().Truncate(time.Second)}
	first, other := []core.Message{{Key: key, Fence: 7}}, []core.Message{{Key: key, Fence: 8}}
	for _, msgs := range [][]core.Message{first, other} {
		got, err := w.Store.NoteLease(w.ctx, w.tenant, r.Key, msgs)
		w.must(err)
		w.same("noted", first, got)
	}
	w.same("reserved again", first, w.reserve(w.tenant, r).Leased)
	_, err := w.Store.NoteLease(w.ctx, uuid.New(), r.Key, first)
	w.fails("of another tenant", core.ErrNotFound, err)
	w.Advance(core.ReservationTTL)
	w.same("a day later", 0, len(w.reserve(w.tenant, r).Leased))
}

// ask asks for a manual run under a key.
func (w *world) ask(id uuid.UUID, key []byte, payload string) (core.Run, error) {
	w.Helper()
	m := core.Manual{ScheduleID: id, Fence: w.get(id).Timer.Fence, Slot: w.manual(), Key: key}
	if payload != "" {
		m.Payload = []byte(payload)
	}
	return w.Store.Trigger(w.ctx, w.tenant, m)
}

func testTriggerOnce(w *world) {
	id := w.add(func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	r := request("key", "one")
	w.reserve(w.tenant, r)
	run, err := w.ask(id, r.Key[:], "")
	w.must(err)
	w.same("slot of the reservation", run.Key.Slot, w.reserve(w.tenant, r).Slot)
	w.Advance(time.Second)
	_, err = w.ask(id, r.Key[:], "")
	w.fails("again", core.ErrChanged, err)
	w.same("runs", 1, len(w.runs(id)))
	_, err = w.ask(id, nil, "")
	w.must(err)
	other := request("other", "one")
	w.reserve(w.tenant, other)
	w.Advance(time.Second)
	_, err = w.ask(id, other.Key[:], "")
	w.must(err)
	w.same("runs", 3, len(w.runs(id)))
}

func testTriggerPayload(w *world) {
	id := w.add(func(s *core.Schedule) { s.Overlap = core.OverlapAllow })
	_, err := w.ask(id, nil, "{\"a\": \"\\u0000\"}")
	w.fails("a payload that cannot be stored", core.ErrBadRow, err)
	own, err := w.ask(id, nil, `{"n": 2}`)
	w.must(err)
	w.same("payload in the answer", `{"n": 2}`, string(own.Payload))
	w.same("payload of the run", `{"n": 2}`, string(w.run(own.Key).Payload))
	w.same("payload in a list", "", string(w.runs(id)[0].Payload))
	w.Advance(time.Second)
	plain, err := w.ask(id, nil, "")
	w.must(err)
	for _, r := range []core.Run{own, plain} {
		want := `{"n": 1}`
		if r.Key == own.Key {
			want = `{"n": 2}`
		}
		for _, then := range []string{"a failure", "a lost holder", "the end"} {
			started := w.start(core.Delivery{Message: core.Message{Key: r.Key, Fence: r.Fence}, Token: uuid.New()})
			w.same("payload at the start before "+then, want, string(started[0].Payload))
			switch then {
			case "a failure":
				w.end(started[0], core.RunRetrying)
			case "the end":
				w.end(started[0], core.RunSucceeded)
			}
			w.Advance(time.Hour)
			for _, swept := range w.sweep(sweepOptions()) {
				if swept.Key == r.Key {
					r.Fence = swept.Fence
				}
			}
		}
	}
}

func testCancelRun(w *world) {
	for _, state := range []core.RunState{core.RunQueued, core.RunRetrying, core.RunRunning, core.RunSucceeded, core.RunDead, core.RunCanceled} {
		_, h := w.reach(state, nil)
		before := w.run(h.Key)
		got, err := w.Store.CancelRun(w.ctx, w.tenant, h.Key)
		want := before
		switch state {
		case core.RunSucceeded, core.RunDead:
			w.fails("cancel of a run that is "+string(state), core.ErrRunFinal, err)
		case core.RunCanceled:
			w.must(err)
		case core.RunRunning:
			w.must(err)
			want.CancelRequested, want.Reason = true, core.ReasonRequested
		default:
			w.must(err)
			want.State, want.Reason, want.CancelRequested = core.RunCanceled, core.ReasonRequested, true
			want.Fence, want.WakeAt, want.FinishedAt = before.Fence+1, time.Time{}, w.now()
		}
		w.same("run that was "+string(state), want, w.run(h.Key))
		w.same("answer for one that was "+string(state), want, got)
		if err == nil {
			again, err := w.Store.CancelRun(w.ctx, w.tenant, h.Key)
			w.must(err)
			w.same("again, "+string(state), want, again)
		}
		_, err = w.Store.CancelRun(w.ctx, uuid.New(), h.Key)
		w.fails("of another tenant", core.ErrNotFound, err)
	}
}
