-- The first row of a schedule, from a time on, that stands for slots rather than
-- for a run that somebody asked for. Slots end in rows in their order, so that it
-- is the row of a slot at that time, if there is one. It looks at 10,000 rows.
-- Index: runs_pkey.
SELECT d.schedule_id, d.scheduled_for, d.tenant_id, d.state, d.cause, d.reason, d.range_from, d.range_count, d.queue, d.version, d.fence,
       d.attempt, d.max_attempts, d.wake_at, d.cancel_requested, d.covers_from, d.covers_to, d.created_at, d.started_at, d.finished_at,
       d.result, d.error, NULL::JSONB AS payload
FROM (
  SELECT r.schedule_id, r.scheduled_for, r.tenant_id, r.state, r.cause, r.reason, r.range_from, r.range_count, r.queue, r.version, r.fence,
         r.attempt, r.max_attempts, r.wake_at, r.cancel_requested, r.covers_from, r.covers_to, r.created_at, r.started_at, r.finished_at,
         NULL::JSONB AS result, r.error
  FROM runs AS r
  WHERE r.region = $1 AND r.tenant_id = $2::UUID AND r.schedule_id = $3::UUID AND r.scheduled_for >= $4::TIMESTAMPTZ
  ORDER BY r.scheduled_for
  LIMIT 10000
) AS d
WHERE d.cause IN ('schedule', 'catch_up')
ORDER BY d.scheduled_for
LIMIT 1;
