-- One run. Index: runs_pkey.
SELECT r.schedule_id, r.scheduled_for, r.tenant_id, r.state, r.cause, r.reason, r.range_from, r.range_count, r.queue, r.version, r.fence,
       r.attempt, r.max_attempts, r.wake_at, r.cancel_requested, r.covers_from, r.covers_to, r.created_at, r.started_at, r.finished_at,
       r.result, r.error, r.payload
FROM runs AS r
WHERE r.region = $1 AND r.tenant_id = $2::UUID AND r.schedule_id = $3::UUID AND r.scheduled_for = $4::TIMESTAMPTZ;
