package claimer

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// The limits of the store's looks and reads, for each shard and for each call.
const (
	preloadLimit = 10_000
	pollLimit    = 1000
	readChunk    = 1000
)

// marks returns the held shards with their low-water marks; a wide look has
// none.
func (c *Claimer) marks(wide bool) []core.ShardMark {
	var out []core.ShardMark
	for _, shard := range c.shards.list() {
		m := core.ShardMark{Shard: shard}
		if !wide {
			m.Low = c.timers.mark(shard)
		}
		out = append(out, m)
	}
	return out
}

// preload loads the timers of the coming minute.
func (c *Claimer) preload(ctx context.Context, wide bool) error {
	sent := c.c.Clock.Now()
	marks := c.marks(wide)
	if len(marks) == 0 {
		return nil
	}
	found, now, err := c.c.Store.Preload(ctx, marks, c.c.Ahead)
	if err != nil {
		return err
	}
	c.clock.observe(now, sent)
	c.timers.looked(marks, refs(found), preloadLimit, now)
	for _, s := range found {
		c.hold(ctx, s, s.Timer.FireAt)
	}
	return nil
}

func refs(found []core.Scheduled) []core.TimerRef {
	out := make([]core.TimerRef, len(found))
	for i, s := range found {
		out[i] = core.TimerRef{Shard: s.Timer.Shard, FireAt: s.Timer.FireAt, ScheduleID: s.Timer.ScheduleID, Fence: s.Timer.Fence}
	}
	return out
}

// poll finds timers that were made or edited to be due soon.
func (c *Claimer) poll(ctx context.Context, wide bool) error {
	sent := c.c.Clock.Now()
	marks := c.marks(wide)
	if len(marks) == 0 {
		return nil
	}
	found, now, err := c.c.Store.Poll(ctx, marks, 2*c.c.PollEvery)
	if err != nil {
		return err
	}
	c.clock.observe(now, sent)
	c.timers.looked(marks, found, pollLimit, now)
	var unknown []core.TimerRef
	for _, r := range found {
		if !c.timers.knows(r) {
			unknown = append(unknown, r)
		}
	}
	return c.read(ctx, unknown, 0)
}

// read loads the named timers as they are now and holds those that are due
// within the preload's reach, no earlier than delay from now. After an error
// the next look finds them.
func (c *Claimer) read(ctx context.Context, named []core.TimerRef, delay time.Duration) error {
	for len(named) > 0 {
		chunk := named[:min(len(named), readChunk)]
		ids := make([]uuid.UUID, len(chunk))
		for i, r := range chunk {
			ids[i] = r.ScheduleID
		}
		sent := c.c.Clock.Now()
		found, now, err := c.c.Store.ReadTimers(ctx, ids)
		if err != nil {
			for _, r := range named {
				c.timers.leaveOut(r.Shard, r.FireAt)
			}
			return fmt.Errorf("read timers again: %w", err)
		}
		named = named[len(chunk):]
		if len(found) > 0 {
			c.clock.observe(now, sent)
		}
		for _, s := range found {
			at := s.Timer.FireAt
			if soonest := now.Add(delay); delay > 0 && at.Before(soonest) {
				at = soonest
			}
			if at.Before(now.Add(c.c.Ahead)) {
				c.hold(ctx, s, at)
			}
		}
	}
	return nil
}

// hold keeps a timer in memory until at. One whose spec cannot be read is
// parked with an alert: it would come back each second otherwise.
func (c *Claimer) hold(ctx context.Context, s core.Scheduled, at time.Time) {
	sch := &s.Schedule
	slots, err := spec.Of(&s)
	if name := s.MissingCalendar(); err == nil && name != "" {
		err = fmt.Errorf("calendar %s is missing", name) // what it closes is not to run
	}
	if err != nil {
		m := core.Move{ScheduleID: sch.ID, FireAt: s.Timer.FireAt, Fence: s.Timer.Fence}
		c.park(ctx, s.Timer.Shard, m, fmt.Errorf("read the stored schedule: %w", err))
		return
	}
	c.timers.put(&entry{Scheduled: s, slots: slots, at: at})
}
