package claimer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// readChunk is how many timers are read by key at once.
const readChunk = 1000

// marks returns the held shards with their low-water marks; a wide look has
// none.
func (c *Claimer) marks(wide bool) []core.ShardMark {
	now := c.clock.now()
	var out []core.ShardMark
	for _, shard := range c.shards.list() {
		m := core.ShardMark{Shard: shard}
		if !wide {
			m.Low = c.timers.mark(shard, now)
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
	for _, s := range found {
		c.hold(ctx, s, s.Timer.FireAt)
	}
	return nil
}

// poll finds timers that were made or edited to be due soon.
func (c *Claimer) poll(ctx context.Context, wide bool) error {
	sent := c.c.Clock.Now()
	marks := c.marks(wide)
	if len(marks) == 0 {
		return nil
	}
	refs, now, err := c.c.Store.Poll(ctx, marks, 2*c.c.PollEvery)
	if err != nil {
		return err
	}
	c.clock.observe(now, sent)
	var unknown []uuid.UUID
	for _, r := range refs {
		if !c.timers.knows(r) {
			unknown = append(unknown, r.ScheduleID)
		}
	}
	return c.read(ctx, unknown, 0)
}

// read loads timers by schedule and holds those that are due within the
// preload's reach, no earlier than delay from now.
func (c *Claimer) read(ctx context.Context, ids []uuid.UUID, delay time.Duration) error {
	for chunk := range slices.Chunk(ids, readChunk) {
		sent := c.c.Clock.Now()
		found, now, err := c.c.Store.ReadTimers(ctx, chunk)
		if err != nil {
			return fmt.Errorf("read timers again: %w", err)
		}
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
	slots, err := spec.Load(sch.Spec, sch.TimeZone, sch.Anchor, sch.ID)
	if err != nil {
		m := core.Move{ScheduleID: sch.ID, FireAt: s.Timer.FireAt, Fence: s.Timer.Fence}
		c.park(ctx, s.Timer.Shard, m, fmt.Errorf("read the stored spec: %w", err))
		return
	}
	c.timers.put(&entry{Scheduled: s, slots: slots, at: at})
}
