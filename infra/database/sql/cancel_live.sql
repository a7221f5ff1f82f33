-- The live runs of one deleted schedule: waiting ones end, running ones are asked to.
-- Index: runs_wake_idx, one shard.
UPDATE runs AS r
SET state = CASE WHEN r.state = 'running' THEN 'running' ELSE 'canceled' END,
    reason = 'deleted',
    cancel_requested = true,
    fence = CASE WHEN r.state = 'running' THEN r.fence ELSE r.fence + 1 END,
    wake_at = CASE WHEN r.state = 'running' THEN r.wake_at END,
    finished_at = CASE WHEN r.state = 'running' THEN NULL ELSE now() END
WHERE r.region = $1 AND r.tenant_id = $2::UUID AND r.schedule_id = $3::UUID AND r.shard = $4::INT2
  AND r.wake_at IS NOT NULL AND r.state IN ('queued', 'running', 'retrying')
RETURNING r.scheduled_for;
