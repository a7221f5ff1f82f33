-- The schedules of a tenant that have the given names, with their timers.
-- Index: schedules_name_key for each name, then timers_schedule_key and runs_pkey by key.
-- Before PostgreSQL has statistics it may read the tenant's schedules instead,
-- once, which a join with the names would do for each of them.
SELECT now() AS db_now, t.shard, t.fire_at, s.id AS schedule_id, s.tenant_id, t.fence, t.done, t.last_run, t.parked, t.runs_left,
       s.name, s.spec, s.time_zone, s.anchor, s.queue, s.payload, s.misfire, s.misfire_grace, s.overlap, s.spread,
       s.exact, s.dst_gap, s.dst_overlap, s.catch_up_within, s.timeout, s.max_attempts, s.paused, s.version, s.rules, s.created_at, s.updated_at, s.labels, p.state AS last_state
FROM schedules AS s
CROSS JOIN LATERAL (
  SELECT i.shard, i.fire_at, i.fence, i.done, i.last_run, i.parked, i.runs_left
  FROM timers AS i
  WHERE i.region = $1 AND i.schedule_id = s.id
  LIMIT 1
) AS t
LEFT JOIN LATERAL (
  SELECT i.state
  FROM runs AS i
  WHERE i.region = $1 AND i.schedule_id = s.id AND i.scheduled_for = t.last_run
  LIMIT 1
) AS p ON true
WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.name = ANY($3::TEXT[]) AND s.deleted_at IS NULL;
