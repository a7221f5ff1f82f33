-- A page of a schedule's runs in some states, newest slot first, and where the
-- look ended: one call looks at 10,000 runs, whatever it finds.
-- Index: runs_pkey backwards.
WITH scanned AS MATERIALIZED (
  SELECT r.scheduled_for, r.state
  FROM runs AS r
  WHERE r.region = $1 AND r.tenant_id = $2::UUID AND r.schedule_id = $3::UUID AND r.scheduled_for >= $4::TIMESTAMPTZ
    AND r.scheduled_for < $5::TIMESTAMPTZ
  ORDER BY r.scheduled_for DESC
  LIMIT 10000
), matched AS (
  SELECT s.scheduled_for
  FROM scanned AS s
  WHERE s.state = ANY ($6::TEXT[])
  ORDER BY s.scheduled_for DESC
  LIMIT 1001
)
SELECT e.scanned, e.last_slot, m.scheduled_for
FROM (
  SELECT l.scheduled_for AS last_slot, (SELECT count(*) FROM scanned) AS scanned
  FROM scanned AS l
  ORDER BY l.scheduled_for
  LIMIT 1
) AS e
LEFT JOIN matched AS m ON true
ORDER BY m.scheduled_for DESC
LIMIT $7::INT8;
