-- Dead runs that somebody was told of sleep for good.
-- Index: runs_pkey by key. Invariant: one that was redriven meanwhile has another fence.
-- The conditions on f.fence that are always true keep PostgreSQL's planner,
-- whatever its statistics, from reading all runs instead of looking these up.
UPDATE runs AS r
SET wake_at = NULL
FROM unnest($2::UUID[], $3::TIMESTAMPTZ[], $4::INT8[]) AS f(schedule_id, scheduled_for, fence)
WHERE r.region = $1 AND r.schedule_id = f.schedule_id AND r.scheduled_for = f.scheduled_for
  AND f.fence + 0 = f.fence AND f.fence - 0 = f.fence
  AND r.fence = f.fence AND r.state = 'dead';
