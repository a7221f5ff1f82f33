-- What waits too long, of one tenant: runs that are due and nobody has taken, or
-- taken back, and timers that nobody has claimed. It looks at 64,000 of each.
-- Index: runs_wake_idx and timers_pkey, one range a shard.
SELECT d.kind, d.queue, count(*) AS n, min(d.since) AS since
FROM unnest($3::INT2[]) AS o(shard)
CROSS JOIN LATERAL (
  SELECT i.state AS kind, i.queue, i.tenant_id, i.since
  FROM (
    SELECT r.state, r.queue, r.tenant_id, COALESCE(r.queued_at, r.created_at) AS since
    FROM runs AS r
    WHERE r.region = $1 AND r.shard = o.shard AND r.wake_at IS NOT NULL AND r.wake_at < now() - INTERVAL '1 minute'
    ORDER BY r.wake_at
    LIMIT 1000
  ) AS i
  UNION ALL
  SELECT 'due' AS kind, '' AS queue, j.tenant_id, j.fire_at AS since
  FROM (
    SELECT t.tenant_id, t.fire_at
    FROM timers AS t
    WHERE t.region = $1 AND t.shard = o.shard AND t.fire_at < now() - INTERVAL '1 minute'
    ORDER BY t.fire_at
    LIMIT 1000
  ) AS j
) AS d
WHERE d.tenant_id = $2::UUID
GROUP BY d.kind, d.queue
ORDER BY d.kind, d.queue;
