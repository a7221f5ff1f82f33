package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/spec"
)

const (
	lease         = time.Minute
	dispatchLease = 30 * time.Second
	patience      = time.Minute
	queue         = "test"
)

// world is one store under test with what the tests do to it.
type world struct {
	*testing.T
	ctx context.Context
	Harness
	tenant uuid.UUID
}

func newWorld(t *testing.T, h Harness) *world {
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the store took too long"))
	t.Cleanup(cancel)
	return &world{T: t, ctx: ctx, Harness: h, tenant: uuid.New()}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// same compares; want and got are what JSON, times and emptiness make equal.
func (w *world) same(what string, want, got any) {
	w.Helper()
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// fails wants err to match target.
func (w *world) fails(what string, target, err error) {
	w.Helper()
	if !errors.Is(err, target) {
		w.Errorf("%s: got error %v, want %v", what, err, target)
	}
}

func (w *world) now() time.Time {
	w.Helper()
	now, err := w.Store.Now(w.ctx)
	w.must(err)
	return now
}

// to moves the time to t.
func (w *world) to(t time.Time) {
	w.Helper()
	w.Advance(t.Sub(w.now()))
}

// content returns an hourly schedule whose first slot comes in an hour.
func (w *world) content() core.Schedule {
	w.Helper()
	id, err := uuid.NewV7()
	w.must(err)
	return core.Schedule{
		Region: w.Region, TenantID: w.tenant, ID: id, Name: id.String(), Spec: "every 1h", Anchor: w.now().Truncate(time.Second).Add(time.Hour),
		Job: core.Job{Queue: queue, Payload: []byte(`{"n": 1}`)}, Misfire: core.MisfireRunOnce, MisfireGrace: time.Minute,
		Overlap: core.OverlapSkip, Timeout: 90 * time.Second, MaxAttempts: 3,
	}
}

// add creates a schedule, settled up to now; change may be nil.
func (w *world) add(change func(*core.Schedule)) uuid.UUID {
	w.Helper()
	s := w.content()
	if change != nil {
		change(&s)
	}
	now := w.now()
	next, done := plan.First(&s, w.slots(&s), now)
	w.must(w.Store.Create(w.ctx, s, next, done))
	return s.ID
}

func (w *world) slots(s *core.Schedule) spec.Spec {
	w.Helper()
	slots, err := spec.Load(s)
	w.must(err)
	return slots
}

func (w *world) get(id uuid.UUID) core.Scheduled {
	w.Helper()
	s, err := w.Store.Get(w.ctx, w.tenant, id)
	w.must(err)
	return s
}

// due waits for a schedule's timer and plans its claim.
func (w *world) due(id uuid.UUID) core.Move {
	w.Helper()
	if at := w.get(id).Timer.FireAt; at.After(w.now()) {
		w.to(at)
	}
	s := w.get(id)
	return plan.Move(&s.Schedule, &s.Timer, w.slots(&s.Schedule), s.Now)
}

func (w *world) claim(moves ...core.Move) []core.Claimed {
	w.Helper()
	got, err := w.Store.Claim(w.ctx, core.ShardOf(moves[0].ScheduleID), moves, dispatchLease)
	w.must(err)
	slices.SortFunc(got, func(a, b core.Claimed) int { return a.Key.Slot.Compare(b.Key.Slot) })
	return got
}

// next claims the next slot of a schedule, which becomes a run.
func (w *world) next(id uuid.UUID) core.Claimed {
	w.Helper()
	got := w.claim(w.due(id))
	if len(got) != 1 || got[0].State != core.RunQueued {
		w.Fatalf("the claim made %+v, want one run", got)
	}
	return got[0]
}

func message(c core.Claimed) core.Delivery {
	return core.Delivery{Message: core.Message{Key: c.Key, Fence: c.Fence}, Token: uuid.New()}
}

func (w *world) start(ds ...core.Delivery) []core.Started {
	w.Helper()
	got, err := w.Store.Start(w.ctx, ds, lease)
	w.must(err)
	return got
}

// begin claims and starts the next slot of a schedule.
func (w *world) begin(id uuid.UUID) core.Started {
	w.Helper()
	got := w.start(message(w.next(id)))
	if len(got) != 1 || got[0].State != core.RunRunning {
		w.Fatalf("start answered %+v, want one running", got)
	}
	return got[0]
}

func held(s core.Started) core.Held { return core.Held{Key: s.Key, Fence: s.Fence} }

func (w *world) finish(os ...core.Outcome) []core.Finished {
	w.Helper()
	got, err := w.Store.Finish(w.ctx, os)
	w.must(err)
	return got
}

// end ends an attempt in a state.
func (w *world) end(s core.Started, state core.RunState) {
	w.Helper()
	o := core.Outcome{Held: held(s), State: state, Reason: core.ReasonExhausted, Delay: 10 * time.Second, Error: "it failed"}
	if got := w.finish(o); len(got) != 1 {
		w.Fatalf("the finish as %s was refused", state)
	}
}

// reach makes a schedule whose first run is in a state.
func (w *world) reach(state core.RunState, change func(*core.Schedule)) (uuid.UUID, core.Held) {
	w.Helper()
	id := w.add(change)
	if state == core.RunQueued {
		c := w.next(id)
		return id, core.Held{Key: c.Key, Fence: c.Fence}
	}
	s := w.begin(id)
	if state != core.RunRunning {
		w.end(s, state)
	}
	return id, held(s)
}

// twin makes a second schedule with the slots of the first, whose run of a slot
// ends as given. It shows statements that look at another's rows.
func (w *world) twin(id uuid.UUID, slot time.Time, state core.RunState) {
	w.Helper()
	anchor := w.get(id).Schedule.Anchor
	now := w.now()
	w.to(slot.Add(-time.Minute))
	twin := w.add(func(s *core.Schedule) { s.Anchor = anchor })
	s := w.begin(twin)
	if !s.Key.Slot.Equal(slot) {
		w.Fatalf("the twin's run is of %s, want %s", s.Key.Slot, slot)
	}
	if state != core.RunRunning {
		w.end(s, state)
	}
	w.to(now)
}

// contrary returns a state that is live if the given one is not.
func contrary(state core.RunState) core.RunState {
	if state.Final() {
		return core.RunRunning
	}
	return core.RunSucceeded
}

func (w *world) run(k core.RunKey) core.Run {
	w.Helper()
	r, _, err := w.Store.Run(w.ctx, w.tenant, k)
	w.must(err)
	return r
}

func (w *world) failed(k core.RunKey) []core.Attempt {
	w.Helper()
	_, failed, err := w.Store.Run(w.ctx, w.tenant, k)
	w.must(err)
	return failed
}

// runs returns a schedule's runs, oldest slot first.
func (w *world) runs(id uuid.UUID) []core.Run {
	w.Helper()
	got, err := w.Store.Runs(w.ctx, w.tenant, id, core.RunQuery{Limit: 1000})
	w.must(err)
	slices.Reverse(got.Items)
	return got.Items
}

func allShards() []core.ShardMark {
	out := make([]core.ShardMark, core.Shards)
	for i := range out {
		out[i].Shard = int16(i)
	}
	return out
}

func sweepOptions() core.SweepOptions {
	return core.SweepOptions{
		Marks: allShards(), DispatchLease: dispatchLease, MaxDispatchLease: 10 * time.Minute,
		Backoff: core.Backoff{Initial: 10 * time.Second, Max: time.Hour}, Queues: []string{queue}, LostIn: core.AllShards(),
	}
}

func (w *world) sweep(o core.SweepOptions) []core.Swept {
	w.Helper()
	got, now, err := w.Store.Sweep(w.ctx, o)
	w.must(err)
	w.same("time of the sweep", w.now(), now)
	slices.SortFunc(got, func(a, b core.Swept) int {
		return cmp.Or(a.Key.Slot.Compare(b.Key.Slot), bytes.Compare(a.Key.ScheduleID[:], b.Key.ScheduleID[:]))
	})
	return got
}

// inShard returns n new ids of schedules in one shard.
func inShard(shard int16, n int) []uuid.UUID {
	var out []uuid.UUID
	for len(out) < n {
		if id := uuid.New(); core.ShardOf(id) == shard {
			out = append(out, id)
		}
	}
	return out
}
