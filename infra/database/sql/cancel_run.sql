-- One run is canceled: a waiting one ends, a running one is asked to.
-- Index: runs_pkey. Sent again it changes nothing more.
UPDATE runs AS r
SET state = CASE WHEN r.state = 'running' THEN 'running' ELSE 'canceled' END,
    reason = CASE WHEN r.cancel_requested THEN r.reason ELSE 'requested' END,
    cancel_requested = true,
    fence = CASE WHEN r.state = 'running' THEN r.fence ELSE r.fence + 1 END,
    wake_at = CASE WHEN r.state = 'running' THEN r.wake_at END,
    finished_at = CASE WHEN r.state = 'running' THEN NULL ELSE now() END
WHERE r.region = $1 AND r.tenant_id = $2::UUID AND r.schedule_id = $3::UUID AND r.scheduled_for = $4::TIMESTAMPTZ
  AND r.state IN ('queued', 'running', 'retrying')
RETURNING r.schedule_id, r.scheduled_for, r.tenant_id, r.state, r.cause, r.reason, r.range_from, r.range_count, r.queue, r.version, r.fence,
       r.attempt, r.max_attempts, r.wake_at, r.cancel_requested, r.covers_from, r.covers_to, r.created_at, r.started_at, r.finished_at,
       r.result, r.error, r.payload;
