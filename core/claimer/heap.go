package claimer

import (
	"container/heap"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// entry is a timer held in memory until its time comes.
type entry struct {
	core.Scheduled
	slots spec.Slots
	at    time.Time // when to claim: fire_at, or later after a miss
	index int
}

// timers holds what is due soon, a heap for each shard and each schedule once,
// up to a limit in all: what does not fit is found again by a later poll. It is
// not safe for concurrent use.
type timers struct {
	limit  int
	shards map[int16]*entries
	byID   map[uuid.UUID]*entry
	// late are the entries whose at is not their fire_at, few at any time.
	late map[uuid.UUID]*entry
}

func newTimers(limit int) *timers {
	return &timers{limit: limit, shards: map[int16]*entries{}, byID: map[uuid.UUID]*entry{}, late: map[uuid.UUID]*entry{}}
}

// put adds a timer, to be claimed at the given time, or replaces the one of the
// same schedule unless that one is newer.
func (t *timers) put(e *entry) {
	id := e.Timer.ScheduleID
	if old, ok := t.byID[id]; ok {
		if old.Timer.Fence > e.Timer.Fence {
			return
		}
		heap.Remove(t.shards[old.Timer.Shard], old.index)
		t.forget(id)
	}
	if len(t.byID) >= t.limit {
		return
	}
	h := t.shards[e.Timer.Shard]
	if h == nil {
		h = &entries{}
		t.shards[e.Timer.Shard] = h
	}
	heap.Push(h, e)
	t.byID[id] = e
	if !e.at.Equal(e.Timer.FireAt) {
		t.late[id] = e
	}
}

func (t *timers) forget(id uuid.UUID) {
	delete(t.byID, id)
	delete(t.late, id)
}

// knows reports whether the timer is held as the reference describes it.
func (t *timers) knows(r core.TimerRef) bool {
	e, ok := t.byID[r.ScheduleID]
	return ok && e.Timer.Fence == r.Fence && e.Timer.FireAt.Equal(r.FireAt)
}

// first returns when the next timer is to be claimed.
func (t *timers) first() (at time.Time, ok bool) {
	for _, h := range t.shards {
		if len(*h) > 0 && (!ok || (*h)[0].at.Before(at)) {
			at, ok = (*h)[0].at, true
		}
	}
	return at, ok
}

// due removes and returns up to n timers of each shard that are to be claimed
// by now.
func (t *timers) due(now time.Time, n int) map[int16][]*entry {
	out := map[int16][]*entry{}
	for shard, h := range t.shards {
		for len(*h) > 0 && len(out[shard]) < n && !(*h)[0].at.After(now) {
			e := heap.Pop(h).(*entry)
			t.forget(e.Timer.ScheduleID)
			out[shard] = append(out[shard], e)
		}
	}
	return out
}

// mark returns the low-water mark of a shard's polls: nothing below it can be
// due and unknown.
func (t *timers) mark(shard int16, now time.Time) time.Time {
	low := now.Add(-lowDistance)
	if h := t.shards[shard]; h != nil && len(*h) > 0 && (*h)[0].Timer.FireAt.Before(low) {
		low = (*h)[0].Timer.FireAt
	}
	for _, e := range t.late {
		if e.Timer.Shard == shard && e.Timer.FireAt.Before(low) {
			low = e.Timer.FireAt
		}
	}
	return low
}

// keepOnly drops the timers of shards that are no longer held.
func (t *timers) keepOnly(held func(int16) bool) {
	for shard, h := range t.shards {
		if held(shard) {
			continue
		}
		for _, e := range *h {
			t.forget(e.Timer.ScheduleID)
		}
		delete(t.shards, shard)
	}
}

// entries implements heap.Interface, soonest first.
type entries []*entry

func (e entries) Len() int           { return len(e) }
func (e entries) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e entries) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].index, e[j].index = i, j
}

func (e *entries) Push(x any) {
	v := x.(*entry)
	v.index = len(*e)
	*e = append(*e, v)
}

func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return last
}
