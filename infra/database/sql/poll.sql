-- References to the timers of the owned shards that are due soon.
-- Index: timers_pkey, one range a shard. No locks.
SELECT c.db_now, d.shard, d.fire_at, d.schedule_id, d.fence
FROM (SELECT now() AS db_now) AS c
LEFT JOIN (
  SELECT t.shard, t.fire_at, t.schedule_id, t.fence
  FROM unnest($2::INT2[], $3::TIMESTAMPTZ[]) AS o(shard, low)
  CROSS JOIN LATERAL (
    SELECT i.shard, i.fire_at, i.schedule_id, i.fence
    FROM timers AS i
    WHERE i.region = $1 AND i.shard = o.shard AND i.fire_at >= o.low AND i.fire_at < now() + $4::INTERVAL
    ORDER BY i.fire_at, i.schedule_id
    LIMIT 1000
  ) AS t
) AS d ON true;
