-- Before a claim under overlap cancel_previous: the live runs that the due slots
-- would meet. Waiting ones end, running ones are asked to.
-- Index: timers_pkey and runs_pkey by key.
-- Invariant: only for a move that a claim would carry out now.
-- The conditions on m.fence that are always true keep PostgreSQL's planner,
-- whatever its statistics, from reading all runs instead of looking these up.
UPDATE runs AS r
SET state = CASE WHEN r.state = 'running' THEN 'running' ELSE 'canceled' END,
    reason = 'replaced',
    cancel_requested = true,
    fence = CASE WHEN r.state = 'running' THEN r.fence ELSE r.fence + 1 END,
    wake_at = CASE WHEN r.state = 'running' THEN r.wake_at END,
    finished_at = CASE WHEN r.state = 'running' THEN NULL ELSE now() END
FROM (
  SELECT t.schedule_id, t.last_run, t.fence
  FROM unnest($3::UUID[], $4::TIMESTAMPTZ[], $5::INT8[], $6::TIMESTAMPTZ[], $7::TIMESTAMPTZ[])
         AS w(schedule_id, fire_at, fence, valid_from, valid_until)
  CROSS JOIN LATERAL (
    SELECT i.schedule_id, i.last_run, i.fence
    FROM timers AS i
    WHERE i.region = $1 AND i.shard = $2::INT2 AND i.fire_at = w.fire_at AND i.schedule_id = w.schedule_id AND i.fence = w.fence
      AND i.fire_at <= now() AND w.valid_from <= now() AND now() < w.valid_until
    LIMIT 1
  ) AS t
) AS m
WHERE r.region = $1 AND r.schedule_id = m.schedule_id AND r.scheduled_for = m.last_run
  AND m.fence + 0 = m.fence AND m.fence - 0 = m.fence
  AND r.state IN ('queued', 'running', 'retrying') AND NOT r.cancel_requested
RETURNING r.schedule_id, r.scheduled_for, r.tenant_id, r.fence, r.state, r.queue;
