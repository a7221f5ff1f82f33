-- The runs of a schedule with the given slots. Index: runs_pkey by key.
-- The LIMIT keeps each look-up by its whole key: without it PostgreSQL may read
-- all runs of the schedule.
SELECT d.schedule_id, d.scheduled_for, d.tenant_id, d.state, d.cause, d.reason, d.range_from, d.range_count, d.queue, d.version, d.fence,
       d.attempt, d.max_attempts, d.wake_at, d.cancel_requested, d.covers_from, d.covers_to, d.created_at, d.started_at, d.finished_at,
       d.result, d.error, NULL::JSONB AS payload
FROM unnest($4::TIMESTAMPTZ[]) AS w(slot)
CROSS JOIN LATERAL (
  SELECT r.schedule_id, r.scheduled_for, r.tenant_id, r.state, r.cause, r.reason, r.range_from, r.range_count, r.queue, r.version, r.fence,
         r.attempt, r.max_attempts, r.wake_at, r.cancel_requested, r.covers_from, r.covers_to, r.created_at, r.started_at, r.finished_at,
         r.result, r.error
  FROM runs AS r
  WHERE r.region = $1 AND r.tenant_id = $2::UUID AND r.schedule_id = $3::UUID AND r.scheduled_for = w.slot
  LIMIT 1
) AS d;
