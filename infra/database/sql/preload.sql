-- The timers of the owned shards that are due soon, with what planning needs.
-- Index: timers_pkey, one range a shard; schedules_pkey by key. No locks.
SELECT c.db_now, d.shard, d.fire_at, d.schedule_id, d.tenant_id, d.fence, d.done, d.last_run, d.parked, d.runs_left,
       d.name, d.spec, d.time_zone, d.anchor, d.queue, d.misfire, d.misfire_grace, d.overlap, d.spread,
       d.exact, d.dst_gap, d.dst_overlap, d.catch_up_within, d.timeout, d.max_attempts, d.paused, d.version, d.rules
FROM (SELECT now() AS db_now) AS c
LEFT JOIN (
  SELECT t.shard, t.fire_at, t.schedule_id, t.tenant_id, t.fence, t.done, t.last_run, t.parked, t.runs_left,
         s.name, s.spec, s.time_zone, s.anchor, s.queue, s.misfire, s.misfire_grace, s.overlap, s.spread,
         s.exact, s.dst_gap, s.dst_overlap, s.catch_up_within, s.timeout, s.max_attempts, s.paused, s.version, s.rules
  FROM unnest($2::INT2[], $3::TIMESTAMPTZ[]) AS o(shard, low)
  CROSS JOIN LATERAL (
    SELECT i.shard, i.fire_at, i.schedule_id, i.tenant_id, i.fence, i.done, i.last_run, i.parked, i.runs_left
    FROM timers AS i
    WHERE i.region = $1 AND i.shard = o.shard AND i.fire_at >= o.low AND i.fire_at < now() + $4::INTERVAL
    ORDER BY i.fire_at, i.schedule_id
    LIMIT 10000
  ) AS t
  JOIN schedules AS s ON s.region = $1 AND s.id = t.schedule_id
) AS d ON true;
