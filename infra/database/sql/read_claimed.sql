-- After a claim of unknown outcome: those of its runs that are still as a claim
-- makes them, recognized by the fence that only this claim could have given.
-- Index: runs_pkey by key.
-- The conditions on k.fence that are always true keep PostgreSQL's planner,
-- whatever its statistics, from reading all runs instead of looking these up.
SELECT r.schedule_id, r.scheduled_for, r.tenant_id, r.fence, r.state, r.queue
FROM unnest($2::UUID[], $3::TIMESTAMPTZ[], $4::INT8[]) AS k(schedule_id, scheduled_for, fence)
JOIN runs AS r ON r.region = $1 AND r.schedule_id = k.schedule_id AND r.scheduled_for = k.scheduled_for AND r.fence = k.fence
WHERE r.region = $1 AND k.fence + 0 = k.fence AND k.fence - 0 = k.fence AND r.state = 'queued';
