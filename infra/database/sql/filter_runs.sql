-- The slots of a schedule's runs in some states, newest first. One call looks at
-- 10,000 runs at most and stops at the last one that it returns; if it looked at
-- so many without filling the page, the row "edge" says where it ended.
-- Index: runs_pkey backwards.
WITH matched AS MATERIALIZED (
  SELECT s.scheduled_for
  FROM (
    SELECT r.scheduled_for, r.state
    FROM runs AS r
    WHERE r.region = $1 AND r.tenant_id = $2::UUID AND r.schedule_id = $3::UUID AND r.scheduled_for >= $4::TIMESTAMPTZ
      AND r.scheduled_for < $5::TIMESTAMPTZ
    ORDER BY r.scheduled_for DESC
    LIMIT 10000
  ) AS s
  WHERE s.state = ANY ($6::TEXT[])
  ORDER BY s.scheduled_for DESC
  LIMIT $7::INT8
)
SELECT m.scheduled_for, false AS edge
FROM matched AS m
UNION ALL
SELECT e.scheduled_for, true AS edge
FROM (
  SELECT r.scheduled_for
  FROM runs AS r
  WHERE r.region = $1 AND r.tenant_id = $2::UUID AND r.schedule_id = $3::UUID AND r.scheduled_for >= $4::TIMESTAMPTZ
    AND r.scheduled_for < $5::TIMESTAMPTZ
  ORDER BY r.scheduled_for DESC
  LIMIT 1 OFFSET 9999
) AS e
WHERE (SELECT count(*) FROM matched) < $7::INT8
ORDER BY edge, scheduled_for DESC;
