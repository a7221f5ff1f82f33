-- The schedules of a tenant that have the given names, with their timers.
-- Index: schedules_name_key for each name, then timers_schedule_key and runs_pkey by key.
-- The two bounds are one name. Written as an equality PostgreSQL, as long as it
-- has no statistics, may read all schedules of the tenant for each name, and keep
-- that plan while a load fills the table: only this index has their order.
SELECT now() AS db_now, t.shard, t.fire_at, s.id AS schedule_id, s.tenant_id, t.fence, t.done, t.last_run, t.parked, t.runs_left,
       s.name, s.spec, s.time_zone, s.anchor, s.queue, s.payload, s.misfire, s.misfire_grace, s.overlap, s.spread,
       s.exact, s.dst_gap, s.dst_overlap, s.catch_up_within, s.timeout, s.max_attempts, s.paused, s.version, s.rules, s.created_at, s.updated_at, s.labels, p.state AS last_state
FROM unnest($3::TEXT[]) AS w(name)
CROSS JOIN LATERAL (
  SELECT i.id, i.tenant_id, i.name, i.spec, i.time_zone, i.anchor, i.queue, i.payload, i.misfire, i.misfire_grace, i.overlap, i.spread,
         i.exact, i.dst_gap, i.dst_overlap, i.catch_up_within, i.timeout, i.max_attempts, i.paused, i.version, i.rules, i.created_at,
         i.updated_at, i.labels
  FROM schedules AS i
  WHERE i.region = $1 AND i.deleted_at IS NULL
    AND (i.tenant_id, i.name) >= ($2::UUID, w.name) AND (i.tenant_id, i.name) <= ($2::UUID, w.name)
  ORDER BY i.tenant_id, i.name
  LIMIT 1
) AS s
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
) AS p ON true;
