-- The named timers with what planning needs.
-- Index: timers_schedule_key and schedules_pkey by key. No locks.
SELECT now() AS db_now, t.shard, t.fire_at, t.schedule_id, t.tenant_id, t.fence, t.done, t.last_run, t.parked, t.runs_left,
       s.name, s.spec, s.time_zone, s.anchor, s.queue, s.misfire, s.misfire_grace, s.overlap, s.spread,
       s.exact, s.dst_gap, s.dst_overlap, s.catch_up_within, s.timeout, s.max_attempts, s.paused, s.version, s.rules
FROM unnest($2::UUID[]) AS w(schedule_id)
CROSS JOIN LATERAL (
  SELECT i.shard, i.fire_at, i.schedule_id, i.tenant_id, i.fence, i.done, i.last_run, i.parked, i.runs_left
  FROM timers AS i
  WHERE i.region = $1 AND i.schedule_id = w.schedule_id
  LIMIT 1
) AS t
JOIN schedules AS s ON s.region = $1 AND s.id = w.schedule_id;
