-- A dead run is tried again, admitted through the timer like any other run.
-- Index: schedules_pkey, timers_schedule_key, runs_pkey by key.
-- The LIMIT keeps the look-up of the run by its whole key: without it PostgreSQL
-- may read all runs of the schedule.
-- Invariants: through the fence, so that no claim meets the run as dead and admits
-- another beside it; only the last run that was admitted, unless overlap is allow,
-- since the intervals of later runs begin where its own does; attempts go on
-- counting, with a new allowance; what was noted of the run's open interval is
-- void, since the run itself says it again.
WITH locked AS MATERIALIZED (
  SELECT t.region, t.shard, t.fire_at, t.schedule_id, t.last_run, s.queue, s.max_attempts, p.state,
         s.overlap = 'allow' OR COALESCE(t.last_run = $4::TIMESTAMPTZ, false) AS newest
  FROM schedules AS s
  JOIN timers AS t ON t.region = s.region AND t.schedule_id = s.id
  JOIN LATERAL (
    SELECT i.state
    FROM runs AS i
    WHERE i.region = t.region AND i.schedule_id = t.schedule_id AND i.scheduled_for = $4::TIMESTAMPTZ
    LIMIT 1
  ) AS p ON true
  WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.id = $3::UUID AND s.deleted_at IS NULL AND t.fence = $5::INT8
  FOR UPDATE OF t
), moved AS (
  UPDATE timers AS t
  SET open_from = CASE WHEN l.last_run = $4::TIMESTAMPTZ THEN NULL ELSE t.open_from END, fence = t.fence + 1
  FROM locked AS l
  WHERE t.region = $1 AND t.shard = l.shard AND t.fire_at = l.fire_at AND t.schedule_id = l.schedule_id AND l.newest AND l.state = 'dead'
  RETURNING t.region, t.schedule_id, t.fence, l.queue, l.max_attempts
), redriven AS (
  UPDATE runs AS r
  SET state = 'queued', reason = NULL, queue = m.queue, fence = m.fence * 65536, max_attempts = r.attempt - r.credits + m.max_attempts,
      losses = 0, holder = NULL, cancel_requested = false, wake_at = now(), queued_at = now(), late_at = NULL,
      expires_at = now() + $6::INTERVAL, finished_at = NULL
  FROM moved AS m
  WHERE r.region = m.region AND r.schedule_id = m.schedule_id AND r.scheduled_for = $4::TIMESTAMPTZ AND r.state = 'dead'
  RETURNING r.schedule_id, r.fence
)
SELECT l.newest, l.state, r.fence
FROM locked AS l
LEFT JOIN redriven AS r ON r.schedule_id = l.schedule_id;
