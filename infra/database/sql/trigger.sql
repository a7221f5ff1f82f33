-- A manual run, admitted through the timer like any other.
-- Index: schedules_pkey, timers_schedule_key, runs_pkey, idempotency_keys_pkey by key.
-- The LIMIT keeps the look-up of the last run by its whole key: without it
-- PostgreSQL may read all runs of the schedule.
-- Invariants: one run for an idempotency key; through the fence; not beside a live run unless overlap is allow;
-- an empty covered interval, so that the chain of intervals passes it by.
WITH locked AS MATERIALIZED (
  SELECT t.region, t.shard, t.fire_at, t.schedule_id, t.tenant_id, t.fence, s.queue, s.max_attempts, s.overlap,
         COALESCE(s.overlap <> 'allow' AND p.state IN ('queued', 'running', 'retrying'), false) AS busy,
         COALESCE(t.open_from, CASE WHEN p.state = 'succeeded' THEN p.covers_to ELSE p.covers_from END, LEAST(t.last_run, t.done)) AS covers_from
  FROM schedules AS s
  JOIN timers AS t ON t.region = s.region AND t.schedule_id = s.id
  LEFT JOIN LATERAL (
    SELECT i.state, i.covers_from, i.covers_to
    FROM runs AS i
    WHERE i.region = t.region AND i.schedule_id = t.schedule_id AND i.scheduled_for = t.last_run
    LIMIT 1
  ) AS p ON true
  WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.id = $3::UUID AND s.deleted_at IS NULL AND t.fence = $4::INT8
    AND NOT EXISTS (
      SELECT 1 FROM idempotency_keys AS k
      WHERE k.region = $1 AND k.tenant_id = $2::UUID AND k.key = $6::BYTEA AND k.slot IS NOT NULL
    )
  FOR UPDATE OF t
), moved AS (
  UPDATE timers AS t
  SET last_run = $5::TIMESTAMPTZ, open_from = NULL, fence = t.fence + 1
  FROM locked AS l
  WHERE t.region = $1 AND t.shard = l.shard AND t.fire_at = l.fire_at AND t.schedule_id = l.schedule_id AND NOT l.busy
  RETURNING t.region, t.shard, t.schedule_id, t.tenant_id, t.fence, l.queue, l.max_attempts, l.overlap, l.covers_from
), noted AS (
  UPDATE idempotency_keys AS k
  SET slot = $5::TIMESTAMPTZ
  FROM moved AS m
  WHERE k.region = $1 AND k.tenant_id = m.tenant_id AND k.key = $6::BYTEA
  RETURNING k.slot
), made AS (
  INSERT INTO runs (region, schedule_id, scheduled_for, tenant_id, shard, state, cause, queue, max_attempts, fence,
                    wake_at, queued_at, covers_from, covers_to, created_at, payload, expires_at)
  SELECT m.region, m.schedule_id, $5::TIMESTAMPTZ, m.tenant_id, m.shard, 'queued', 'manual', m.queue, m.max_attempts, m.fence * 65536,
         now(), now(),
         CASE WHEN m.overlap <> 'allow' THEN m.covers_from END,
         CASE WHEN m.overlap <> 'allow' THEN m.covers_from END,
         now(), $7::JSONB, now() + $8::INTERVAL
  FROM moved AS m
  RETURNING schedule_id, fence, queue, max_attempts, wake_at, covers_from, covers_to, created_at
)
SELECT l.busy, n.fence, n.queue, n.max_attempts, n.wake_at, n.covers_from, n.covers_to, n.created_at
FROM locked AS l
LEFT JOIN made AS n ON n.schedule_id = l.schedule_id;
