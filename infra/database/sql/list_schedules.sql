-- A page of a tenant's schedules, oldest first.
-- Index: schedules_tenant_idx, then timers_schedule_key and runs_pkey by key.
SELECT now() AS db_now, t.shard, t.fire_at, s.id AS schedule_id, s.tenant_id, t.fence, t.done, t.last_run, t.parked, t.runs_left,
       s.name, s.spec, s.time_zone, s.anchor, s.queue, s.payload, s.misfire, s.misfire_grace, s.overlap, s.spread,
       s.exact, s.dst_gap, s.dst_overlap, s.catch_up_within, s.timeout, s.max_attempts, s.paused, s.version, s.rules, s.created_at, s.updated_at, s.labels, p.state AS last_state
FROM (
  SELECT i.region, i.id, i.tenant_id, i.name, i.spec, i.time_zone, i.anchor, i.queue, i.payload, i.misfire, i.misfire_grace, i.overlap, i.spread,
         i.exact, i.dst_gap, i.dst_overlap, i.catch_up_within, i.timeout, i.max_attempts, i.paused, i.version, i.rules, i.created_at, i.updated_at, i.labels
  FROM schedules AS i
  WHERE i.region = $1 AND i.tenant_id = $2::UUID AND i.deleted_at IS NULL AND i.id > $3::UUID
  ORDER BY i.id
  LIMIT 1001
) AS s
JOIN timers AS t ON t.region = s.region AND t.schedule_id = s.id
LEFT JOIN LATERAL (
  SELECT i.state
  FROM runs AS i
  WHERE i.region = $1 AND i.schedule_id = s.id AND i.scheduled_for = t.last_run
  LIMIT 1
) AS p ON true
WHERE t.region = $1
ORDER BY s.id
LIMIT $4::INT8;
