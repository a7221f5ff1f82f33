-- An edit, a pause or a resume: the schedule, its timer and the rows of the
-- slots owed so far, whole or not at all.
-- Index: schedules_pkey, timers_schedule_key, runs_pkey by key.
-- The LIMIT keeps the look-up of the last run by its whole key: without it
-- PostgreSQL may read all runs of the schedule.
-- Invariants: guarded by version, fence and the life span of its plan, all
-- judged on the locked rows; raises version and fence, so that what a claimer
-- holds in memory cannot fire; no due time below now.
WITH locked AS MATERIALIZED (
  SELECT s.region, s.id, t.shard, t.fire_at, t.tenant_id, t.fence,
         COALESCE($21::TEXT <> 'allow' AND p.state IN ('queued', 'running', 'retrying'), false) AS busy,
         COALESCE(t.open_from, CASE WHEN p.state = 'succeeded' THEN p.covers_to ELSE p.covers_from END, LEAST(t.last_run, t.done)) AS covers_from
  FROM schedules AS s
  JOIN timers AS t ON t.region = s.region AND t.schedule_id = s.id
  LEFT JOIN LATERAL (
    SELECT i.state, i.covers_from, i.covers_to
    FROM runs AS i
    WHERE i.region = t.region AND i.schedule_id = t.schedule_id AND i.scheduled_for = t.last_run
    LIMIT 1
  ) AS p ON true
  WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.id = $3::UUID AND s.deleted_at IS NULL
    AND s.version = $4::INT8 AND t.fence = $5::INT8 AND now() < $6::TIMESTAMPTZ
  FOR UPDATE OF s, t
), edited AS (
  UPDATE schedules AS s
  SET name = $7::TEXT, spec = $8::TEXT, time_zone = $9::TEXT, anchor = $10::TIMESTAMPTZ, queue = $11::TEXT, payload = $12::JSONB,
      misfire = $31::TEXT, misfire_grace = $13::INTERVAL, overlap = $14::TEXT, spread = $15::INTERVAL, timeout = $16::INTERVAL, max_attempts = $17::INT4,
      exact = $34::BOOL, dst_gap = $32::TEXT, dst_overlap = $33::TEXT, catch_up_within = $35::INTERVAL, labels = $36::JSONB, rules = $41::JSONB, paused = $18::BOOL, version = s.version + 1, updated_at = now()
  FROM locked AS l
  WHERE s.region = $1 AND s.id = l.id
  RETURNING s.id
), moved AS (
  UPDATE timers AS t
  SET fire_at = CASE
        WHEN $19::TIMESTAMPTZ IS NULL THEN t.fire_at
        WHEN NOT l.busy AND $22::TIMESTAMPTZ IS NOT NULL AND $37::INT8 <= 1 THEN TIMESTAMPTZ '9999-01-01 00:00:00+00'
        ELSE GREATEST($19::TIMESTAMPTZ, now()) END,
      done = CASE WHEN $19::TIMESTAMPTZ IS NULL THEN t.done ELSE $20::TIMESTAMPTZ END,
      last_run = CASE WHEN l.busy THEN t.last_run ELSE COALESCE($22::TIMESTAMPTZ, t.last_run) END,
      open_from = CASE WHEN l.busy OR $22::TIMESTAMPTZ IS NULL THEN t.open_from END,
      parked = CASE WHEN $19::TIMESTAMPTZ IS NULL THEN t.parked ELSE false END,
      runs_left = CASE WHEN l.busy OR $22::TIMESTAMPTZ IS NULL THEN $37::INT8 ELSE $37::INT8 - 1 END,
      purge_at = CASE
        WHEN $19::TIMESTAMPTZ IS NULL THEN CASE WHEN t.purge_at IS NULL THEN NULL ELSE now() + $38::INTERVAL END
        WHEN $19::TIMESTAMPTZ >= TIMESTAMPTZ '9999-01-01 00:00:00+00'
          OR NOT l.busy AND $22::TIMESTAMPTZ IS NOT NULL AND $37::INT8 <= 1 THEN now() + $38::INTERVAL END,
      fence = t.fence + 1
  FROM locked AS l
  WHERE t.region = $1 AND t.shard = l.shard AND t.fire_at = l.fire_at AND t.schedule_id = l.id
  RETURNING t.region, t.shard, t.schedule_id, t.tenant_id, t.fence, l.busy, l.covers_from
), settled AS (
  INSERT INTO runs (region, schedule_id, scheduled_for, tenant_id, shard, state, cause, reason, range_from, range_count,
                    queue, max_attempts, fence, wake_at, queued_at, covers_from, covers_to, created_at, finished_at, payload, late_at, expires_at)
  SELECT m.region, m.schedule_id, r.scheduled_for, m.tenant_id, m.shard,
         CASE WHEN m.busy OR r.skipped THEN 'skipped' ELSE 'queued' END,
         r.cause,
         CASE WHEN r.skipped THEN r.reason WHEN m.busy THEN 'edited' END,
         r.range_from, r.range_count, r.queue, r.max_attempts,
         m.fence * 65536,
         CASE WHEN m.busy OR r.skipped THEN NULL ELSE now() END,
         CASE WHEN m.busy OR r.skipped THEN NULL ELSE now() END,
         CASE WHEN m.busy OR r.skipped OR $21::TEXT = 'allow' THEN NULL ELSE m.covers_from END,
         CASE WHEN m.busy OR r.skipped OR $21::TEXT = 'allow' THEN NULL ELSE r.scheduled_for END,
         now(),
         CASE WHEN m.busy OR r.skipped THEN now() END,
         r.payload::JSONB, r.late_at, now() + r.within
  FROM moved AS m
  CROSS JOIN unnest($23::TIMESTAMPTZ[], $24::TIMESTAMPTZ[], $25::INT8[], $26::BOOL[], $27::TEXT[], $28::TEXT[], $29::TEXT[], $30::INT4[], $39::TEXT[], $40::TIMESTAMPTZ[], $42::INTERVAL[])
       AS r(scheduled_for, range_from, range_count, skipped, cause, reason, queue, max_attempts, payload, late_at, within)
  ON CONFLICT (region, schedule_id, scheduled_for) DO NOTHING
  RETURNING scheduled_for
)
SELECT e.id FROM edited AS e;
