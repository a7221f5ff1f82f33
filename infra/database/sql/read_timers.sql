-- The named timers with what planning needs.
-- Index: timers_schedule_key and schedules_pkey by key. No locks.
SELECT now() AS db_now, t.shard, t.fire_at, t.schedule_id, t.tenant_id, t.fence, t.done, t.last_run, t.parked,
       s.name, s.spec, s.time_zone, s.anchor, s.queue, s.misfire, s.misfire_grace, s.overlap, s.spread,
       s.timeout, s.max_attempts, s.paused, s.version
FROM unnest($2::UUID[]) AS w(schedule_id)
JOIN timers AS t ON t.region = $1 AND t.schedule_id = w.schedule_id
JOIN schedules AS s ON s.region = $1 AND s.id = w.schedule_id
WHERE t.region = $1;
