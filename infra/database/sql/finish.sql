-- Attempts end: succeeded, dead, canceled, or retrying after a delay.
-- A dead one stays awake until the sweep has told of it.
-- Index: runs_pkey by key. Invariants: only under the holder's fence; no retry
-- once the attempts or the time for all of them are used up or a cancel was requested.
-- The conditions on f.fence that are always true keep PostgreSQL's planner,
-- whatever its statistics, from reading all runs instead of looking these up.
WITH moved AS (
  UPDATE runs AS r
  SET state = CASE
        WHEN f.state <> 'retrying' THEN f.state
        WHEN r.cancel_requested THEN 'canceled'
        WHEN r.attempt - LEAST(r.credits + f.credit, 3) >= r.max_attempts THEN 'dead'
        WHEN r.expires_at <= now() + f.delay_ms * INTERVAL '1 millisecond' THEN 'dead'
        ELSE 'retrying' END,
      reason = CASE
        WHEN f.state = 'succeeded' THEN NULL
        WHEN f.state = 'dead' OR f.state = 'retrying' AND NOT r.cancel_requested AND r.attempt - LEAST(r.credits + f.credit, 3) >= r.max_attempts THEN f.reason
        WHEN f.state = 'retrying' AND NOT r.cancel_requested AND r.expires_at <= now() + f.delay_ms * INTERVAL '1 millisecond' THEN 'total_timeout'
        ELSE r.reason END,
      wake_at = CASE
        WHEN f.state = 'dead' THEN now()
        WHEN f.state <> 'retrying' OR r.cancel_requested THEN NULL
        WHEN r.attempt - LEAST(r.credits + f.credit, 3) >= r.max_attempts
          OR r.expires_at <= now() + f.delay_ms * INTERVAL '1 millisecond' THEN now()
        ELSE now() + f.delay_ms * INTERVAL '1 millisecond' END,
      finished_at = CASE
        WHEN f.state = 'retrying' AND NOT r.cancel_requested AND r.attempt - LEAST(r.credits + f.credit, 3) < r.max_attempts
          AND (r.expires_at <= now() + f.delay_ms * INTERVAL '1 millisecond') IS NOT TRUE THEN NULL
        ELSE now() END,
      credits = LEAST(r.credits + f.credit, 3),
      result = f.result::JSONB,
      error = f.error
  FROM unnest($2::UUID[], $3::TIMESTAMPTZ[], $4::INT8[], $5::TEXT[], $6::TEXT[], $7::INT8[], $8::TEXT[], $9::TEXT[], $10::INT4[])
       AS f(schedule_id, scheduled_for, fence, state, reason, delay_ms, result, error, credit)
  WHERE r.region = $1 AND r.schedule_id = f.schedule_id AND r.scheduled_for = f.scheduled_for
    AND f.fence + 0 = f.fence AND f.fence - 0 = f.fence
    AND r.fence = f.fence AND r.state = 'running'
  RETURNING r.region, r.schedule_id, r.scheduled_for, r.tenant_id, r.fence, r.attempt, r.state, r.started_at, r.error
), failed AS (
  INSERT INTO attempts (region, schedule_id, scheduled_for, attempt, tenant_id, fence, started_at, finished_at, error)
  SELECT m.region, m.schedule_id, m.scheduled_for, m.attempt, m.tenant_id, m.fence, m.started_at, now(), COALESCE(m.error, '')
  FROM moved AS m
  WHERE m.state <> 'succeeded'
  ON CONFLICT (region, schedule_id, scheduled_for, attempt) DO NOTHING
  RETURNING attempt
)
SELECT m.schedule_id, m.scheduled_for, m.fence, m.state
FROM moved AS m;
