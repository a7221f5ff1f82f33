-- Schedules that have been completed for as long as they are to stay.
-- Index: timers_purge_idx; runs_wake_idx, one shard, for what is alive. The ids are
-- compared as text so that no planner reads the history of a schedule instead.
SELECT t.tenant_id, t.schedule_id
FROM (
  SELECT i.tenant_id, i.schedule_id, i.shard
  FROM timers AS i
  WHERE i.region = $1 AND i.purge_at IS NOT NULL AND i.purge_at <= now()
  ORDER BY i.purge_at
  LIMIT 1000
) AS t
LEFT JOIN LATERAL (
  SELECT true AS alive
  FROM runs AS r
  WHERE r.region = $1 AND r.shard = t.shard AND r.wake_at IS NOT NULL AND r.schedule_id::TEXT = t.schedule_id::TEXT
  LIMIT 1
) AS l ON true
WHERE l.alive IS NULL
LIMIT 100;
