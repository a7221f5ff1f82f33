-- The ids of a tenant's schedules that a filter chooses, oldest first, and where
-- the look ended: one call looks at 10,000 schedules, whatever it finds.
-- Index: schedules_tenant_idx, then timers_schedule_key by key.
WITH scanned AS MATERIALIZED (
  SELECT s.id, s.name, s.queue, s.paused, s.labels
  FROM schedules AS s
  WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.deleted_at IS NULL AND s.id > $3::UUID
  ORDER BY s.id
  LIMIT 10000
), matched AS (
  SELECT s.id
  FROM scanned AS s
  CROSS JOIN LATERAL (
    SELECT i.fire_at
    FROM timers AS i
    WHERE i.region = $1 AND i.schedule_id = s.id
    LIMIT 1
  ) AS t
  WHERE ($5::TEXT[] IS NULL
         OR CASE WHEN s.paused THEN 'paused' WHEN t.fire_at >= TIMESTAMPTZ '9999-01-01 00:00:00+00' THEN 'completed' ELSE 'active' END = ANY ($5::TEXT[]))
    AND ($6::TEXT = '' OR s.queue = $6::TEXT)
    AND left(s.name, length($7::TEXT)) = $7::TEXT
    AND s.labels @> $8::JSONB
    AND NOT EXISTS (SELECT 1 FROM unnest($9::TEXT[]) AS x(pair) WHERE s.labels @> x.pair::JSONB)
    AND s.labels ?& $10::TEXT[]
    AND NOT s.labels ?| $11::TEXT[]
  ORDER BY s.id
  LIMIT 1001
)
SELECT e.scanned, e.last_id, m.id
FROM (
  SELECT l.id AS last_id, (SELECT count(*) FROM scanned) AS scanned
  FROM scanned AS l
  ORDER BY l.id DESC
  LIMIT 1
) AS e
LEFT JOIN matched AS m ON true
ORDER BY m.id
LIMIT $4::INT8;
