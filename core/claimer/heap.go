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
// up to a limit in all: what does not fit is found again by a later look. It is
// not safe for concurrent use.
type timers struct {
	limit  int
	shards map[int16]*entries
	byID   map[uuid.UUID]*entry
	// late are the entries whose at is not their fire_at, few at any time.
	late map[uuid.UUID]*entry
	// seen is how far the last look at each shard reached: no timer that was
	// visible to it and due before then was left out.
	seen map[int16]time.Time
	// cut are the shards whose last look left timers out, for its own limit
	// or this one's.
	cut map[int16]bool
}

func newTimers(limit int) *timers {
	return &timers{
		limit: limit, shards: map[int16]*entries{}, byID: map[uuid.UUID]*entry{}, late: map[uuid.UUID]*entry{},
		seen: map[int16]time.Time{}, cut: map[int16]bool{},
	}
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
		t.leaveOut(e.Timer.Shard, e.Timer.FireAt)
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

// looked notes a look at the given shards at now, the database's time, that
// returned at most limit timers of each, soonest first. A write that was under
// way may yet become visible up to lowDistance below.
func (t *timers) looked(marks []core.ShardMark, found []core.TimerRef, limit int, now time.Time) {
	n := map[int16]int{}
	last := map[int16]time.Time{}
	for _, r := range found {
		n[r.Shard]++
		last[r.Shard] = later(last[r.Shard], r.FireAt)
	}
	for _, m := range marks {
		t.seen[m.Shard], t.cut[m.Shard] = now.Add(-lowDistance), false
		if n[m.Shard] >= limit {
			t.leaveOut(m.Shard, last[m.Shard])
		}
	}
}

// leaveOut notes that timers of the shard that are due from at on were not
// taken.
func (t *timers) leaveOut(shard int16, at time.Time) {
	t.cut[shard] = true
	t.seen[shard] = earlier(t.seen[shard], at)
}

// hungry reports whether a shard has used up what its last look brought and
// that look had left timers out, which now have room.
func (t *timers) hungry() bool {
	if len(t.byID) > t.limit/2 {
		return false
	}
	for shard, cut := range t.cut {
		if h := t.shards[shard]; cut && (h == nil || len(*h) == 0) {
			return true
		}
	}
	return false
}

// mark returns the low-water mark of a shard's looks: nothing below it can be
// due and unknown. It is zero for a shard never looked at.
func (t *timers) mark(shard int16) time.Time {
	low := t.seen[shard]
	if h := t.shards[shard]; h != nil && len(*h) > 0 {
		low = earlier(low, (*h)[0].Timer.FireAt)
	}
	for _, e := range t.late {
		if e.Timer.Shard == shard {
			low = earlier(low, e.Timer.FireAt)
		}
	}
	return low
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// keepOnly drops the timers of shards that are no longer held.
func (t *timers) keepOnly(held func(int16) bool) {
	for shard := range t.seen {
		if !held(shard) {
			delete(t.seen, shard)
			delete(t.cut, shard)
		}
	}
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
