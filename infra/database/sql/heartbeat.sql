-- The leases of running runs are extended by their holders.
-- Index: runs_pkey by key. A run that does not come back is no longer held.
-- The conditions on h.fence that are always true keep PostgreSQL's planner,
-- whatever its statistics, from reading all runs instead of looking these up.
UPDATE runs AS r
SET wake_at = now() + $2::INTERVAL
FROM unnest($3::UUID[], $4::TIMESTAMPTZ[], $5::INT8[]) AS h(schedule_id, scheduled_for, fence)
WHERE r.region = $1 AND r.schedule_id = h.schedule_id AND r.scheduled_for = h.scheduled_for
  AND h.fence + 0 = h.fence AND h.fence - 0 = h.fence
  AND r.fence = h.fence AND r.state = 'running'
RETURNING r.schedule_id, r.scheduled_for, r.fence, r.cancel_requested;
