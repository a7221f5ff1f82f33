-- One schedule with its timer and the state of its last run.
-- Index: schedules_pkey, timers_schedule_key, runs_pkey by key.
-- The LIMIT keeps the look-up of the last run by its whole key: without it
-- PostgreSQL may read all runs of the schedule.
SELECT now() AS db_now, t.shard, t.fire_at, s.id AS schedule_id, s.tenant_id, t.fence, t.done, t.last_run, t.parked, t.runs_left,
       s.name, s.spec, s.time_zone, s.anchor, s.queue, s.payload, s.misfire, s.misfire_grace, s.overlap, s.spread,
       s.exact, s.dst_gap, s.dst_overlap, s.catch_up_within, s.timeout, s.max_attempts, s.paused, s.version, s.rules, s.created_at, s.updated_at, s.labels,
       p.state AS last_state
FROM schedules AS s
JOIN timers AS t ON t.region = s.region AND t.schedule_id = s.id
LEFT JOIN LATERAL (
    SELECT i.state
    FROM runs AS i
    WHERE i.region = t.region AND i.schedule_id = t.schedule_id AND i.scheduled_for = t.last_run
    LIMIT 1
  ) AS p ON true
WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.id = $3::UUID AND s.deleted_at IS NULL;
