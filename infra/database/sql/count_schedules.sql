-- How many schedules a tenant has, counted up to a limit. The order keeps the
-- planner to an index that has the tenant in it. Index: schedules_name_key.
SELECT count(*) AS n
FROM (
  SELECT a.name
  FROM (
    SELECT s.name
    FROM schedules AS s
    WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.deleted_at IS NULL
    ORDER BY s.name
    LIMIT 1000000
  ) AS a
  LIMIT $3::INT8
) AS b;
