-- What waits too long, of one tenant or, without one, of all: runs that nobody took
-- although they have been queued for a minute (a queue that is full or has no
-- executor: they are published again and again), runs whose lease or retry time is
-- over and nobody looked, and timers that nobody has claimed. Of each shard it looks
-- at the 1,000 runs and timers that come first.
-- Index: runs_wake_idx and timers_pkey, one range a shard.
SELECT d.kind, d.queue, count(*) AS n, min(d.since) AS since
FROM unnest($3::INT2[]) AS o(shard)
CROSS JOIN LATERAL (
  SELECT i.state AS kind, i.queue, i.tenant_id, i.since
  FROM (
    SELECT r.state, r.queue, r.tenant_id,
           CASE WHEN r.state = 'queued' THEN COALESCE(r.queued_at, r.created_at) ELSE r.wake_at END AS since
    FROM runs AS r
    WHERE r.region = $1 AND r.shard = o.shard AND r.wake_at IS NOT NULL
    ORDER BY r.wake_at
    LIMIT 1000
  ) AS i
  WHERE i.state <> 'dead' AND i.since < now() - INTERVAL '1 minute'
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
WHERE $2::UUID IS NULL OR d.tenant_id = $2::UUID
GROUP BY d.kind, d.queue
ORDER BY since, d.kind, d.queue
LIMIT 100;
