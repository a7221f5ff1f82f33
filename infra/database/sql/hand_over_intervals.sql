-- Before rows of history go: timers whose last run lies among them, has ended and
-- did not succeed, or was manual, keep where their covered interval is still
-- open. Of all regions, since a day is dropped for all of them.
-- Index: runs_pkey of the day, timers_schedule_key.
UPDATE timers AS t
SET open_from = CASE WHEN p.state = 'succeeded' THEN p.covers_to ELSE p.covers_from END, fence = t.fence + 1
FROM runs AS p
WHERE p.region = t.region AND p.schedule_id = t.schedule_id AND p.scheduled_for = t.last_run
  AND p.scheduled_for >= $1::TIMESTAMPTZ AND p.scheduled_for < $2::TIMESTAMPTZ AND p.finished_at < $3::TIMESTAMPTZ
  AND t.open_from IS NULL AND p.state IN ('succeeded', 'dead', 'canceled') AND (p.state <> 'succeeded' OR p.cause = 'manual')
  AND p.covers_to IS NOT NULL;
