package storetest

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func lookTests() []test {
	return []test{
		{"looks return what is due soon, soonest first", testLooks},
		{"looks leave out other shards and what lies below the mark", testLookMarks},
		{"a poll returns a thousand timers of a shard at most", testPollLimit},
		{"named timers are read with their schedules", testReadTimers},
	}
}

// forPlanning is what looks return of a schedule with its timer.
func forPlanning(s core.Scheduled) core.Scheduled {
	s.Schedule.Job.Payload, s.Schedule.CreatedAt, s.Schedule.UpdatedAt = nil, time.Time{}, time.Time{}
	return s
}

func reference(s core.Scheduled) core.TimerRef {
	return core.TimerRef{Shard: s.Timer.Shard, FireAt: s.Timer.FireAt, ScheduleID: s.Timer.ScheduleID, Fence: s.Timer.Fence}
}

func testLooks(w *world) {
	now := w.now().Truncate(time.Second)
	ids := inShard(7, 5)
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	var want []core.Scheduled
	// The second and the third come at the same time, in the order of their
	// ids; the fourth is due exactly at the end of the look, which is too late.
	for i, in := range []time.Duration{9, 20, 20, 60, 61} {
		id := w.add(func(s *core.Schedule) {
			s.ID, s.Name, s.Spec, s.Anchor = ids[i], ids[i].String(), "every 1d", now.Add(in*time.Minute)
			s.TimeZone, s.Window, s.Overlap = "Europe/Berlin", time.Second, core.OverlapAllow
			s.DSTGap, s.DSTOverlap, s.Exact, s.CatchUpWithin = core.DSTGapSkip, core.DSTOverlapBoth, true, time.Hour
		})
		if in < 60 {
			want = append(want, forPlanning(w.get(id)))
		}
	}
	ahead := now.Add(time.Hour).Sub(w.now())
	marks := []core.ShardMark{{Shard: 6}, {Shard: 7}}
	got, at, err := w.Store.Preload(w.ctx, marks, ahead)
	w.must(err)
	w.same("preload", want, got)
	w.same("time of the preload", w.now(), at)
	refs, at, err := w.Store.Poll(w.ctx, marks, ahead)
	w.must(err)
	var wantRefs []core.TimerRef
	for _, s := range want {
		wantRefs = append(wantRefs, reference(s))
	}
	w.same("poll", wantRefs, refs)
	w.same("time of the poll", w.now(), at)
}

func testLookMarks(w *world) {
	id := w.add(nil)
	timer := w.get(id).Timer
	for _, tt := range []struct {
		name  string
		marks []core.ShardMark
		want  int
	}{
		{"no shard", nil, 0},
		{"another shard", []core.ShardMark{{Shard: (timer.Shard + 1) % core.Shards}}, 0},
		{"no mark", []core.ShardMark{{Shard: timer.Shard}}, 1},
		{"mark at the timer", []core.ShardMark{{Shard: timer.Shard, Low: timer.FireAt}}, 1},
		{"mark above the timer", []core.ShardMark{{Shard: timer.Shard, Low: timer.FireAt.Add(time.Microsecond)}}, 0},
	} {
		got, at, err := w.Store.Preload(w.ctx, tt.marks, 2*time.Hour)
		w.must(err)
		w.same(tt.name+": timers preloaded", tt.want, len(got))
		w.same(tt.name+": time", w.now(), at)
		refs, at, err := w.Store.Poll(w.ctx, tt.marks, 2*time.Hour)
		w.must(err)
		w.same(tt.name+": timers polled", tt.want, len(refs))
		w.same(tt.name+": time", w.now(), at)
	}
}

func testPollLimit(w *world) {
	const limit, more = 1000, 3
	ids := inShard(3, limit+more)
	s := w.content()
	base := w.now().Truncate(time.Second).Add(time.Minute)
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for i := part; i < len(ids); i += 4 {
				one := s
				one.ID, one.Name = ids[i], ids[i].String()
				if err := w.Store.Create(w.ctx, one, base.Add(time.Duration(i)*time.Second), w.now()); err != nil {
					w.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, _, err := w.Store.Poll(w.ctx, allShards(), 24*time.Hour)
	w.must(err)
	var found []uuid.UUID
	for _, r := range got {
		found = append(found, r.ScheduleID)
	}
	w.same("the soonest thousand", ids[:limit], found)
}

func testReadTimers(w *world) {
	first, second, gone := w.add(nil), w.add(nil), w.add(nil)
	w.must(w.Store.Delete(w.ctx, w.tenant, w.deletion(gone)))
	got, at, err := w.Store.ReadTimers(w.ctx, []uuid.UUID{second, gone, first, uuid.New()})
	w.must(err)
	slices.SortFunc(got, func(a, b core.Scheduled) int { return bytes.Compare(a.Schedule.ID[:], b.Schedule.ID[:]) })
	w.same("timers", []core.Scheduled{forPlanning(w.get(first)), forPlanning(w.get(second))}, got)
	w.same("time", w.now(), at)
	got, _, err = w.Store.ReadTimers(w.ctx, nil)
	w.must(err)
	w.same("no timers", 0, len(got))
}
