-- A schedule becomes a tombstone, its timer goes, its live runs are canceled or
-- asked to, slots still owed are recorded; whole or not at all.
-- Index: schedules_pkey, timers_schedule_key, runs_wake_idx (one shard).
-- Invariant: guarded by the fence, so that no claim commits a run unseen.
WITH locked AS MATERIALIZED (
  SELECT s.region, s.id, t.shard, t.fire_at, t.tenant_id, t.fence
  FROM schedules AS s
  JOIN timers AS t ON t.region = s.region AND t.schedule_id = s.id
  WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.id = $3::UUID AND s.deleted_at IS NULL
    AND s.version = $4::INT8 AND t.fence = $5::INT8 AND now() < $6::TIMESTAMPTZ
  FOR UPDATE OF s, t
), buried AS (
  UPDATE schedules AS s
  SET deleted_at = now(), updated_at = now(), version = s.version + 1
  FROM locked AS l
  WHERE s.region = $1 AND s.id = l.id
  RETURNING s.id
), stopped AS (
  DELETE FROM timers AS t
  USING locked AS l
  WHERE t.region = $1 AND t.shard = l.shard AND t.fire_at = l.fire_at AND t.schedule_id = l.id
  RETURNING t.region, t.shard, t.schedule_id, t.tenant_id, t.fence
), settled AS (
  INSERT INTO runs (region, schedule_id, scheduled_for, tenant_id, shard, state, cause, reason, range_from, range_count,
                    queue, max_attempts, fence, created_at, finished_at)
  SELECT d.region, d.schedule_id, r.scheduled_for, d.tenant_id, d.shard, 'skipped', r.cause, r.reason, r.range_from, r.range_count,
         r.queue, r.max_attempts, (d.fence + 1) * 65536, now(), now()
  FROM stopped AS d
  CROSS JOIN unnest($7::TIMESTAMPTZ[], $8::TIMESTAMPTZ[], $9::INT8[], $10::TEXT[], $11::TEXT[], $12::TEXT[], $13::INT4[])
       AS r(scheduled_for, range_from, range_count, cause, reason, queue, max_attempts)
  ON CONFLICT (region, schedule_id, scheduled_for) DO NOTHING
  RETURNING scheduled_for
)
SELECT b.id FROM buried AS b;
