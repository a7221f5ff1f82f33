-- Due timers of one shard become runs and move on, in one statement.
-- Index: timers_pkey and runs_pkey by key. Locks: the timers, never waiting.
-- Invariants: a timer moves only from the fire_at and fence that its plan was
-- made for, never early (database time), never by a plan that was made for another
-- time, be it by a clock ahead of the database's or long ago; a
-- slot that meets a live run is recorded or waits, and is not run, unless overlap
-- is allow; runs count against the timer's limit only if they are made.
-- The LIMIT keeps the look-up of the last run by its whole key: without it
-- PostgreSQL may read all runs.
WITH want AS (
  SELECT w.schedule_id, w.fire_at, w.fence, w.next_at, w.done, w.last_run, w.valid_from, w.valid_until, w.on_busy, w.uses, w.keep
  FROM unnest($3::UUID[], $4::TIMESTAMPTZ[], $5::INT8[], $6::TIMESTAMPTZ[], $7::TIMESTAMPTZ[], $8::TIMESTAMPTZ[],
              $9::TIMESTAMPTZ[], $10::TEXT[], $21::TIMESTAMPTZ[], $23::INT8[], $24::INTERVAL[])
       AS w(schedule_id, fire_at, fence, next_at, done, last_run, valid_until, on_busy, valid_from, uses, keep)
), locked AS MATERIALIZED (
  SELECT t.region, t.shard, t.fire_at, t.schedule_id, t.tenant_id, t.fence, w.next_at, w.done, w.last_run, w.on_busy, w.uses, w.keep,
         COALESCE(w.on_busy <> 'allow' AND p.state IN ('queued', 'running', 'retrying'), false) AS busy,
         COALESCE(t.open_from, CASE WHEN p.state = 'succeeded' THEN p.covers_to ELSE p.covers_from END, LEAST(t.last_run, t.done)) AS covers_from
  FROM want AS w
  JOIN timers AS t ON t.region = $1 AND t.shard = $2::INT2 AND t.fire_at = w.fire_at AND t.schedule_id = w.schedule_id
  LEFT JOIN LATERAL (
    SELECT i.state, i.covers_from, i.covers_to
    FROM runs AS i
    WHERE i.region = t.region AND i.schedule_id = t.schedule_id AND i.scheduled_for = t.last_run
    LIMIT 1
  ) AS p ON true
  WHERE t.region = $1 AND t.fence = w.fence AND t.fire_at <= now() AND w.valid_from <= now() AND now() < w.valid_until
  FOR UPDATE OF t SKIP LOCKED
), moved AS (
  UPDATE timers AS t
  SET fire_at = CASE
        WHEN l.busy AND l.on_busy = 'wait' THEN now() + INTERVAL '2 seconds'
        WHEN NOT l.busy AND t.runs_left <= l.uses THEN TIMESTAMPTZ '9999-01-01 00:00:00+00'
        ELSE GREATEST(l.next_at, now()) END,
      done = CASE WHEN l.busy AND l.on_busy = 'wait' THEN t.done ELSE l.done END,
      last_run = CASE WHEN l.busy THEN t.last_run ELSE COALESCE(l.last_run, t.last_run) END,
      open_from = CASE WHEN l.busy OR l.last_run IS NULL THEN t.open_from END,
      parked = l.busy AND l.on_busy = 'wait',
      runs_left = CASE WHEN l.busy THEN t.runs_left ELSE t.runs_left - l.uses END,
      purge_at = CASE
        WHEN l.busy AND l.on_busy = 'wait' THEN NULL
        WHEN l.next_at >= TIMESTAMPTZ '9999-01-01 00:00:00+00' OR NOT l.busy AND t.runs_left <= l.uses THEN now() + l.keep END,
      fence = t.fence + 1
  FROM locked AS l
  WHERE t.region = $1 AND t.shard = l.shard AND t.fire_at = l.fire_at AND t.schedule_id = l.schedule_id AND t.fence = l.fence
  RETURNING t.region, t.shard, t.schedule_id, t.tenant_id, t.fence, t.parked, l.busy, l.on_busy, l.covers_from
)
INSERT INTO runs (region, schedule_id, scheduled_for, tenant_id, shard, state, cause, reason, range_from, range_count,
                  queue, max_attempts, fence, wake_at, queued_at, covers_from, covers_to, created_at, finished_at, payload, late_at, expires_at)
SELECT m.region, m.schedule_id, s.scheduled_for, m.tenant_id, m.shard,
       CASE WHEN m.busy OR s.skipped THEN 'skipped' ELSE 'queued' END,
       s.cause,
       CASE WHEN s.skipped THEN s.reason WHEN m.busy THEN 'overlap' END,
       s.range_from, s.range_count, s.queue, s.max_attempts,
       m.fence * 65536,
       CASE WHEN m.busy OR s.skipped THEN NULL WHEN s.elsewhere THEN now() ELSE now() + $11::INTERVAL END,
       CASE WHEN m.busy OR s.skipped THEN NULL ELSE now() END,
       CASE WHEN m.busy OR s.skipped OR m.on_busy = 'allow' THEN NULL ELSE m.covers_from END,
       CASE WHEN m.busy OR s.skipped OR m.on_busy = 'allow' THEN NULL ELSE s.scheduled_for END,
       now(),
       CASE WHEN m.busy OR s.skipped THEN now() END,
       s.payload::JSONB, s.late_at, now() + s.within
FROM moved AS m
JOIN unnest($12::UUID[], $13::TIMESTAMPTZ[], $14::TIMESTAMPTZ[], $15::INT8[], $16::BOOL[], $17::TEXT[], $18::TEXT[],
            $19::TEXT[], $20::INT4[], $22::BOOL[], $25::TEXT[], $26::TIMESTAMPTZ[], $27::INTERVAL[])
     AS s(schedule_id, scheduled_for, range_from, range_count, skipped, cause, reason, queue, max_attempts, elsewhere, payload, late_at, within)
  ON s.schedule_id = m.schedule_id
WHERE NOT m.parked
ON CONFLICT (region, schedule_id, scheduled_for) DO NOTHING
RETURNING schedule_id, scheduled_for, tenant_id, fence, state, queue;
