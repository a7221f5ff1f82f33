-- Runs whose wake_at has passed: queued ones are published again with the same
-- fence and a doubled gap, running ones have lost their heartbeats, retrying
-- ones are due, those end that are too late to be useful or took too long in all, and
-- dead ones are told to who wants to know, or to nobody. Index: runs_wake_idx, one range a shard; runs_pkey by key.
-- Invariants: wake_at is compared again in the update itself, so that a run
-- whose heartbeat came meanwhile is left to its holder; the fence rises exactly
-- when the holder changes; a run asked to cancel is never run again; a dead run stays as it is.
-- The conditions on d.fence that are always true keep PostgreSQL's planner,
-- whatever its statistics, from reading all runs instead of looking these up.
WITH due AS MATERIALIZED (
  SELECT d.region, d.schedule_id, d.scheduled_for, d.state, d.fence
  FROM unnest($2::INT2[], $3::TIMESTAMPTZ[]) AS o(shard, low)
  CROSS JOIN LATERAL (
    SELECT r.region, r.schedule_id, r.scheduled_for, r.state, r.fence
    FROM runs AS r
    WHERE r.region = $1 AND r.shard = o.shard AND r.wake_at IS NOT NULL AND r.wake_at >= o.low AND r.wake_at <= now()
      AND (r.state = 'queued' AND r.queue = ANY ($4::TEXT[]) OR r.state <> 'queued' AND o.shard = ANY ($5::INT2[]))
    ORDER BY r.wake_at
    LIMIT 64
  ) AS d
), locked AS MATERIALIZED (
  SELECT r.region, r.schedule_id, r.scheduled_for, r.state, r.fence
  FROM due AS d
  JOIN runs AS r ON r.region = d.region AND r.schedule_id = d.schedule_id AND r.scheduled_for = d.scheduled_for
  WHERE r.region = $1 AND r.state = d.state AND d.fence + 0 = d.fence AND d.fence - 0 = d.fence
  FOR UPDATE OF r SKIP LOCKED
), moved AS (
  UPDATE runs AS r
  SET state = CASE
        WHEN r.state = 'dead' THEN 'dead'
        WHEN r.state <> 'running' AND r.late_at < now() THEN 'canceled'
        WHEN r.expires_at <= now() AND NOT r.cancel_requested THEN 'dead'
        WHEN r.state = 'queued' THEN 'queued'
        WHEN r.cancel_requested THEN 'canceled'
        WHEN r.state = 'retrying' THEN 'queued'
        WHEN r.attempt - r.credits >= r.max_attempts THEN 'dead'
        WHEN r.losses = 0 THEN 'queued'
        ELSE 'retrying' END,
      reason = CASE
        WHEN r.state = 'dead' THEN r.reason
        WHEN r.state <> 'running' AND r.late_at < now() THEN 'late'
        WHEN r.expires_at <= now() AND NOT r.cancel_requested THEN 'total_timeout'
        WHEN r.state = 'running' AND NOT r.cancel_requested AND r.attempt - r.credits >= r.max_attempts THEN 'lost'
        ELSE r.reason END,
      fence = CASE WHEN r.state = 'dead' OR r.state = 'queued' AND (r.late_at < now() OR r.expires_at <= now()) IS NOT TRUE THEN r.fence ELSE r.fence + 1 END,
      losses = CASE WHEN r.state = 'running' THEN r.losses + 1 ELSE r.losses END,
      queued_at = CASE WHEN r.state IN ('queued', 'dead') THEN r.queued_at ELSE now() END,
      holder = CASE WHEN r.state = 'queued' THEN r.holder END,
      wake_at = CASE
        WHEN r.state = 'dead' THEN now() + $10::INTERVAL
        WHEN r.state <> 'running' AND r.late_at < now() THEN NULL
        WHEN r.expires_at <= now() AND NOT r.cancel_requested THEN now()
        WHEN r.state = 'queued' THEN now() + LEAST(GREATEST($6::INTERVAL, now() - r.queued_at), $7::INTERVAL)
        WHEN r.cancel_requested THEN NULL
        WHEN r.state = 'retrying' THEN now() + CASE WHEN r.queue = ANY ($4::TEXT[]) THEN $6::INTERVAL ELSE INTERVAL '0' END
        WHEN r.attempt - r.credits >= r.max_attempts THEN now()
        WHEN r.losses = 0 THEN now() + CASE WHEN r.queue = ANY ($4::TEXT[]) THEN $6::INTERVAL ELSE INTERVAL '0' END
        ELSE now() + LEAST($8::INTERVAL * power(2, LEAST(r.losses - 1, 30)::FLOAT8), $9::INTERVAL) * (0.5 + random() * 0.5) END,
      finished_at = CASE
        WHEN r.state = 'dead' THEN r.finished_at
        WHEN r.state <> 'running' AND r.late_at < now() THEN now()
        WHEN r.expires_at <= now() AND NOT r.cancel_requested THEN now()
        WHEN r.state = 'queued' THEN NULL
        WHEN r.cancel_requested THEN now()
        WHEN r.state = 'running' AND r.attempt - r.credits >= r.max_attempts THEN now() END,
      error = CASE WHEN r.state = 'running' THEN 'heartbeats stopped' ELSE r.error END
  FROM locked AS l
  WHERE r.region = $1 AND r.schedule_id = l.schedule_id AND r.scheduled_for = l.scheduled_for
    AND l.fence + 0 = l.fence AND l.fence - 0 = l.fence
    AND r.state = l.state AND r.fence = l.fence AND r.wake_at <= now()
  RETURNING r.region, r.schedule_id, r.scheduled_for, r.tenant_id, r.shard, r.fence, r.attempt, r.state, r.queue, r.started_at, r.gate,
            l.state AS was
), lost AS (
  INSERT INTO attempts (region, schedule_id, scheduled_for, attempt, tenant_id, fence, started_at, finished_at, error)
  SELECT m.region, m.schedule_id, m.scheduled_for, m.attempt, m.tenant_id, m.fence - 1, m.started_at, now(), 'heartbeats stopped'
  FROM moved AS m
  WHERE m.was = 'running'
  ON CONFLICT (region, schedule_id, scheduled_for, attempt) DO NOTHING
  RETURNING attempt
)
SELECT c.db_now, m.schedule_id, m.scheduled_for, m.tenant_id, m.shard, m.fence, m.state, m.was, m.queue, m.gate
FROM (SELECT now() AS db_now) AS c
LEFT JOIN moved AS m ON true;
