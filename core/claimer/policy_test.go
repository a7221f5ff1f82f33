package claimer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/plan"
	"github.com/fencepost/fencepost/core/policytest"
	"github.com/fencepost/fencepost/core/spec"
)

// TestPolicyTable plays each event of the table, under each policy, with the
// claimer on the store in memory, in virtual time. With -v it prints what became of
// the slots.
func TestPolicyTable(t *testing.T) {
	events, err := policytest.Events()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	got := map[string][]string{}
	t.Run("cells", func(t *testing.T) {
		for i := range events {
			for _, c := range events[i].Cells {
				name := cellName(&events[i], c)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						rows := play(t, &events[i], c)
						mu.Lock()
						got[name] = rows
						mu.Unlock()
					})
				})
			}
		}
	})
	t.Log(printed(events, got))
}

func cellName(e *policytest.Event, c policytest.Cell) string {
	return fmt.Sprintf("%s/%s_%s", e.Name, c.Misfire, c.Overlap)
}

// printed writes the table of what happened. Policies of the same outcome share
// their lines.
func printed(events []policytest.Event, got map[string][]string) string {
	var out strings.Builder
	for i := range events {
		e := &events[i]
		fmt.Fprintf(&out, "\n\n%s\n  %s", strings.ToUpper(e.Name), e.Story)
		said := map[string]bool{}
		for _, c := range e.Cells {
			rows := strings.Join(got[cellName(e, c)], "\n      ")
			if said[rows] {
				continue
			}
			said[rows] = true
			out.WriteString("\n")
			for _, misfire := range []core.Misfire{core.MisfireRunOnce, core.MisfireSkip, core.MisfireRunAll} {
				var overlaps []string
				for _, o := range e.Cells {
					if o.Misfire == misfire && strings.Join(got[cellName(e, o)], "\n      ") == rows {
						overlaps = append(overlaps, string(o.Overlap))
					}
				}
				if len(overlaps) > 0 {
					fmt.Fprintf(&out, "  misfire %s, overlap %s\n", misfire, strings.Join(overlaps, ", "))
				}
			}
			out.WriteString("      " + rows)
		}
	}
	return out.String()
}

// play returns the history that a cell came to.
func play(t *testing.T, e *policytest.Event, c policytest.Cell) []string {
	s := newStage(t)
	a := &actors{stage: s, e: e, c: c, takes: policytest.Takes}
	for _, step := range e.Steps {
		time.Sleep(time.Until(step.At))
		synctest.Wait() // what else happens at this time comes first
		a.do(step)
	}
	runs := s.runs(a.id)
	if diff := cmp.Diff(c.Rows, e.Rows(runs)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for _, wrong := range e.Faults(c, runs) {
		t.Error(wrong)
	}
	a.work.Wait()
	return e.Rows(runs)
}

// actors are who takes part in an event.
type actors struct {
	*stage
	e     *policytest.Event
	c     policytest.Cell
	id    uuid.UUID
	takes time.Duration
	next  *fate  // of the next claim
	rest  func() // ends the claimer
	work  sync.WaitGroup
}

func (a *actors) do(step policytest.Step) {
	a.Helper()
	switch step.Do {
	case policytest.Create:
		a.create()
	case policytest.Claim:
		if a.rest != nil {
			a.rest() // one that died
		}
		f := &fated{Store: a.db, next: a.next}
		a.next = nil
		a.rest = a.claim(func(c *claimer.Config) {
			c.Store, c.Publisher, c.DispatchLease, c.Shards = f, a, 30*time.Second, []int16{core.ShardOf(a.id)}
		})
	case policytest.Rest, policytest.End:
		a.rest()
		a.rest = nil
	case policytest.Crash, policytest.AnswerLost, policytest.ClaimLost:
		a.next = &fate{deed: step.Do}
	default:
		cur := a.get(a.id)
		edit, err := step.Edit(&cur)
		a.must(err)
		a.must(a.db.Apply(a.Context(), a.tenant, edit))
	}
}

func (a *actors) create() {
	a.Helper()
	c := a.e.Schedule(a.c)
	c.Region, c.TenantID, c.ID = "local", a.tenant, uuid.New()
	c.Name = c.ID.String()
	slots, err := spec.Load(&c)
	a.must(err)
	next, done := plan.First(&c, slots, time.Now().UTC())
	a.must(a.db.Create(a.Context(), c, next, done))
	a.id = c.ID
}

// Publish implements core.Publisher: each message is worked on at once.
func (a *actors) Publish(_ context.Context, _ string, msgs []core.Message) (int, error) {
	for _, m := range msgs {
		a.work.Go(func() { a.execute(m) })
	}
	return len(msgs), nil
}

// execute stands in for an executor.
func (a *actors) execute(m core.Message) {
	job := a.e.Jobs[m.Key.Slot]
	if job.How == policytest.Queued {
		time.Sleep(time.Until(job.Until))
	}
	got, err := a.db.Start(context.Background(), []core.Delivery{{Message: m, Token: uuid.New()}}, time.Hour)
	if err != nil || len(got) != 1 || got[0].State != core.RunRunning {
		return // a double, or a run that was canceled
	}
	o := core.Outcome{Held: core.Held{Key: got[0].Key, Fence: got[0].Fence}, State: core.RunSucceeded}
	switch {
	case job.How == policytest.Running || job.How == policytest.Deaf:
		o.State = a.hold(o.Held, job)
	case job.How == policytest.Dead:
		time.Sleep(policytest.Takes)
		o.State, o.Reason = core.RunDead, core.ReasonPermanent
	case job.How == policytest.Retrying && got[0].Attempt == 1:
		time.Sleep(policytest.Takes)
		o.State, o.Delay = core.RunRetrying, time.Until(job.Until)
	default:
		time.Sleep(a.takes)
	}
	finished, err := a.db.Finish(context.Background(), []core.Outcome{o})
	if err == nil && len(finished) == 1 && finished[0].State.Final() && got[0].Awaited {
		err = a.db.Nudge(context.Background(), []uuid.UUID{got[0].Key.ScheduleID})
	}
	if err != nil {
		a.Error(err)
	}
}

// hold keeps a run alive until its job ends and returns how it does.
func (a *actors) hold(h core.Held, job policytest.Job) core.RunState {
	asked := false
	for time.Until(job.Until) > 0 && (!asked || job.How == policytest.Deaf) {
		time.Sleep(time.Second)
		beats, err := a.db.Heartbeat(context.Background(), []core.Held{h}, time.Hour)
		asked = err == nil && len(beats) == 1 && beats[0].CancelRequested
	}
	if asked {
		return core.RunCanceled
	}
	return core.RunSucceeded
}

// fate is what will become of a claimer's next claim.
type fate struct{ deed policytest.Deed }

// fated is the store of one claimer with what goes wrong on the way.
type fated struct {
	claimer.Store
	mu   sync.Mutex
	next *fate
	dead bool
}

var errDead = errors.New("the claimer is dead")

// gone reports whether the claimer is no more.
func (f *fated) gone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

func (f *fated) Claim(ctx context.Context, shard int16, moves []core.Move, lease time.Duration) ([]core.Claimed, error) {
	f.mu.Lock()
	next := f.next
	f.next = nil
	f.mu.Unlock()
	switch {
	case f.gone():
		return nil, errDead
	case next == nil:
		return f.Store.Claim(ctx, shard, moves, lease)
	case next.deed == policytest.ClaimLost:
		return nil, core.ErrUnknownOutcome
	}
	if _, err := f.Store.Claim(ctx, shard, moves, lease); err != nil {
		return nil, err
	}
	if next.deed == policytest.AnswerLost {
		return nil, core.ErrUnknownOutcome
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = true
	return nil, errDead
}

func (f *fated) CancelPrevious(ctx context.Context, shard int16, moves []core.Move) ([]core.Claimed, error) {
	if f.gone() {
		return nil, errDead
	}
	return f.Store.CancelPrevious(ctx, shard, moves)
}

func (f *fated) Poll(ctx context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.TimerRef, time.Time, error) {
	if f.gone() {
		return nil, time.Time{}, errDead
	}
	return f.Store.Poll(ctx, marks, ahead)
}

func (f *fated) Preload(ctx context.Context, marks []core.ShardMark, ahead time.Duration) ([]core.Scheduled, time.Time, error) {
	if f.gone() {
		return nil, time.Time{}, errDead
	}
	return f.Store.Preload(ctx, marks, ahead)
}
