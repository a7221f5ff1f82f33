-- How many schedules name a calendar, counted up to a limit.
-- Index: schedules_calendars_idx.
SELECT count(*) AS n
FROM (
  SELECT a.id
  FROM (
    SELECT s.id
    FROM schedules AS s
    WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.rules ? 'calendars' AND s.deleted_at IS NULL
      AND s.rules->'calendars' ? $3::TEXT
    ORDER BY s.id
    LIMIT 1001
  ) AS a
  LIMIT $4::INT8
) AS b;
