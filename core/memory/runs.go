package memory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Start implements core.RunStore. Of several deliveries of one run in a call
// the first that fits is used.
func (s *Store) Start(ctx context.Context, ds []core.Delivery, lease time.Duration) ([]core.Started, error) {
	now, err := s.begin(ctx, "start")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	used := map[*run]bool{}
	out := []core.Started{}
	for _, d := range ds {
		r := s.runs[own(d.Key)]
		if r == nil || used[r] {
			continue
		}
		first := r.State == core.RunQueued && r.Fence == d.Fence
		again := r.State == core.RunRunning && r.Fence == d.Fence+1 && r.holder == d.Token
		if first && !s.mayStart(r, d, now) {
			continue
		}
		if first || again {
			used[r] = true
			out = append(out, s.start(r, d, now, lease))
		}
	}
	return out, nil
}

// mayStart reports whether a queued run has the permits that it needs. One that would
// not be running after the start needs none.
func (s *Store) mayStart(r *run, d core.Delivery, now time.Time) bool {
	permitted := s.permitted(r, d)
	sch := s.schedules[r.Key.ScheduleID]
	return permitted || sch == nil || sch.deleted || r.late(now) || r.expired(now) || sch.Job.Queue != r.Queue
}

// start gives a run to a delivery, for the first time or again.
func (s *Store) start(r *run, d core.Delivery, now time.Time, lease time.Duration) core.Started {
	sch := s.schedules[r.Key.ScheduleID]
	gone := sch == nil || sch.deleted
	switch {
	case r.State == core.RunRunning:
		r.WakeAt = after(now, lease)
	case gone:
		r.State, r.Reason, r.WakeAt, r.FinishedAt = core.RunCanceled, core.ReasonDeleted, time.Time{}, now
	case r.late(now):
		r.State, r.Reason, r.WakeAt, r.FinishedAt = core.RunCanceled, core.ReasonLate, time.Time{}, now
	case r.expired(now):
		r.State, r.Reason, r.WakeAt, r.FinishedAt = core.RunDead, core.ReasonTotal, now, now
	case sch.Job.Queue != r.Queue:
		r.Queue, r.WakeAt = sch.Job.Queue, now
	default:
		r.State, r.WakeAt, r.StartedAt = core.RunRunning, after(now, lease), now
		r.Attempt++
	}
	r.Fence, r.holder, r.gate = d.Fence+1, d.Token, gateOpen
	out := core.Started{
		Execution: core.Execution{
			Key: r.Key, TenantID: r.TenantID, Cause: r.Cause, Attempt: r.Attempt, Fence: r.Fence,
			CoversFrom: r.CoversFrom, CoversTo: r.CoversTo,
		},
		State: r.State, Token: r.holder, Queue: r.Queue, MaxAttempts: r.MaxAttempts,
	}
	if !gone && !r.State.Final() {
		r.Version = sch.Version
	}
	if !r.expiresAt.IsZero() {
		left := r.expiresAt.Sub(now)
		out.Left = &left
	}
	if sch != nil {
		out.Awaited = sch.Overlap == core.OverlapQueueOne || sch.Overlap == core.OverlapCancelPrevious ||
			sch.Misfire == core.MisfireRunAll && sch.Overlap != core.OverlapAllow
		out.Retry, out.StartedAt, out.Due = sch.Rules.Retry, r.StartedAt, core.DueOf(r.Cause, r.Attempt, r.Key.Slot, &sch.Schedule)
		out.Name, out.Payload, out.Timeout = sch.Name, bytes.Clone(sch.Job.Payload), sch.Timeout
		if r.Payload != nil {
			out.Payload = bytes.Clone(r.Payload)
		}
	}
	return out
}

// running returns the run that h holds, or nil.
func (s *Store) running(h core.Held) *run {
	r := s.runs[own(h.Key)]
	if r == nil || r.State != core.RunRunning || r.Fence != h.Fence {
		return nil
	}
	return r
}

// Heartbeat implements core.RunStore.
func (s *Store) Heartbeat(ctx context.Context, hs []core.Held, lease time.Duration) ([]core.Beat, error) {
	now, err := s.begin(ctx, "heartbeat")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	seen := map[*run]bool{}
	out := []core.Beat{}
	for _, h := range hs {
		r := s.running(h)
		if r == nil || seen[r] {
			continue
		}
		seen[r] = true
		r.WakeAt = after(now, lease)
		out = append(out, core.Beat{Held: core.Held{Key: r.Key, Fence: r.Fence}, CancelRequested: r.CancelRequested})
	}
	return out, nil
}

// Finish implements core.RunStore.
func (s *Store) Finish(ctx context.Context, os []core.Outcome) ([]core.Finished, error) {
	now, err := s.begin(ctx, "finish")
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, o := range os {
		if err := s.checkOutcome(o); err != nil {
			return nil, err
		}
	}
	seen := map[*run]bool{}
	out := []core.Finished{}
	for _, o := range os {
		r := s.running(o.Held)
		if r != nil {
			r.end(o, now)
		} else if r = s.runs[own(o.Key)]; r == nil || r.Fence != o.Fence || !wasFinished(r.State) {
			continue
		}
		if !seen[r] {
			seen[r] = true
			out = append(out, core.Finished{Held: core.Held{Key: r.Key, Fence: r.Fence}, State: r.State})
		}
	}
	return out, nil
}

// Nudge implements core.RunStore.
func (s *Store) Nudge(ctx context.Context, schedules []uuid.UUID) error {
	now, err := s.begin(ctx, "nudge")
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, id := range schedules {
		if t, ok := s.timers[id]; ok && t.Parked && t.FireAt.After(now) {
			t.FireAt = now
			t.Fence++
		}
	}
	return nil
}

// checkOutcome refuses what the database refuses: its texts in any case, its
// state and result only if they would be written.
func (s *Store) checkOutcome(o core.Outcome) error {
	if err := checkText(string(o.State), string(o.Reason), o.Error, string(o.Result)); err != nil {
		return err
	}
	if s.running(o.Held) == nil {
		return nil
	}
	if !wasFinished(o.State) && o.State != core.RunSkipped {
		return bad("an attempt cannot end in this state")
	}
	if len(o.Result) > 0 {
		return checkJSON(o.Result)
	}
	return nil
}

// wasFinished reports whether a finish may have left a run in this state.
func wasFinished(s core.RunState) bool {
	return slices.Contains([]core.RunState{core.RunSucceeded, core.RunDead, core.RunCanceled, core.RunRetrying}, s)
}

// end records the outcome of the attempt under way.
func (r *run) end(o core.Outcome, now time.Time) {
	r.Result, r.Error, r.WakeAt, r.FinishedAt = nil, o.Error, time.Time{}, now
	if len(o.Result) > 0 {
		r.Result = bytes.Clone(o.Result)
	}
	if o.HandedBack {
		r.credits = min(r.credits+1, core.MaxHandBacks)
	}
	switch {
	case o.State != core.RunRetrying:
		r.State = o.State
	case r.CancelRequested:
		r.State = core.RunCanceled
	case r.Attempt-r.credits >= r.MaxAttempts:
		r.State = core.RunDead
	case r.expired(now.Add(o.Delay.Truncate(time.Millisecond))):
		r.State, o.Reason = core.RunDead, core.ReasonTotal
	default:
		r.State, r.FinishedAt = core.RunRetrying, time.Time{}
		r.WakeAt = now.Add(o.Delay.Truncate(time.Millisecond))
	}
	switch r.State {
	case core.RunDead:
		r.Reason, r.WakeAt = o.Reason, now // until the sweep has told of it
	case core.RunSucceeded:
		r.Reason = ""
	}
	if r.State != core.RunSucceeded {
		r.fail(r.Fence, now, o.Error)
	}
}

// fail records the attempt under way as failed, unless it is recorded.
func (r *run) fail(fence int64, now time.Time, text string) {
	for _, a := range r.failed {
		if a.Number == r.Attempt {
			return
		}
	}
	r.failed = append(r.failed, core.Attempt{Number: r.Attempt, Fence: fence, StartedAt: r.StartedAt, FinishedAt: now, Error: text})
}
