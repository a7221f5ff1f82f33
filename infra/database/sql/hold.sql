-- Queued runs wait for a permit. They stay due: should nobody let them go, the sweep
-- comes by. Index: runs_pkey by key. Invariants: only under the fence of the message.
-- The conditions on h.fence that are always true keep PostgreSQL's planner,
-- whatever its statistics, from reading all runs instead of looking these up.
UPDATE runs AS r
SET gate = 1
FROM unnest($2::UUID[], $3::TIMESTAMPTZ[], $4::INT8[]) AS h(schedule_id, scheduled_for, fence)
WHERE r.region = $1 AND r.schedule_id = h.schedule_id AND r.scheduled_for = h.scheduled_for
  AND h.fence + 0 = h.fence AND h.fence - 0 = h.fence
  AND r.state = 'queued' AND r.fence = h.fence AND r.gate <> 1;
