-- Runs of these schedules have ended: timers that wait for one look again now.
-- Index: timers_schedule_key, then timers_pkey by key.
-- Invariant: only a timer that waits moves, and its fence rises, so that what a
-- claimer holds of it in memory does nothing. One that is due already, or that a
-- claim moves at this moment, is left to that claim.
-- The LIMIT keeps the look-up by schedule: without it PostgreSQL may read all timers.
UPDATE timers AS t
SET fire_at = now(), fence = t.fence + 1
FROM (
  SELECT k.shard, k.fire_at, k.schedule_id
  FROM unnest($2::UUID[]) AS n(schedule_id)
  CROSS JOIN LATERAL (
    SELECT i.shard, i.fire_at, i.schedule_id
    FROM timers AS i
    WHERE i.region = $1 AND i.schedule_id = n.schedule_id
    LIMIT 1
  ) AS k
) AS w
WHERE t.region = $1 AND t.shard = w.shard AND t.fire_at = w.fire_at AND t.schedule_id = w.schedule_id
  AND t.parked AND t.fire_at > now();
