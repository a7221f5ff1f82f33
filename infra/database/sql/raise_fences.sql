-- What was planned for soon under a calendar that has changed is void: the fences
-- of the timers rise. Returns the last schedule that was looked at.
-- Index: schedules_calendars_idx, timers_schedule_key.
-- Invariant: sent after the calendar was written. Who reads a timer before reads
-- the fence of before, and who reads it after reads the calendar as it is.
WITH users AS MATERIALIZED (
  SELECT s.id
  FROM schedules AS s
  WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.rules ? 'calendars' AND s.deleted_at IS NULL
    AND s.rules->'calendars' ? $3::TEXT AND s.id > $4::UUID
  ORDER BY s.id
  LIMIT 1000
), raised AS (
  UPDATE timers AS t
  SET fence = t.fence + 1
  FROM users AS u
  WHERE t.region = $1 AND t.schedule_id = u.id AND t.fire_at < now() + INTERVAL '5 minutes'
  RETURNING t.schedule_id
)
SELECT u.id FROM users AS u ORDER BY u.id DESC LIMIT 1;
