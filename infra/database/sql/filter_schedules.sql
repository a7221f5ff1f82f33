-- The ids of a tenant's schedules that a filter chooses, oldest first. One call
-- looks at 10,000 schedules at most and stops at the last one that it returns; if
-- it looked at so many without filling the page, the row "edge" says where it
-- ended. Index: schedules_tenant_idx, then timers_schedule_key by key.
WITH matched AS MATERIALIZED (
  SELECT s.id
  FROM (
    SELECT i.id, i.name, i.queue, i.paused, i.labels, i.rules
    FROM schedules AS i
    WHERE i.region = $1 AND i.tenant_id = $2::UUID AND i.deleted_at IS NULL AND i.id > $3::UUID
    ORDER BY i.id
    LIMIT 10000
  ) AS s
  CROSS JOIN LATERAL (
    SELECT i.fire_at
    FROM timers AS i
    WHERE i.region = $1 AND i.schedule_id = s.id
    LIMIT 1
  ) AS t
  WHERE ($5::TEXT[] IS NULL
         OR CASE WHEN s.paused AND COALESCE((s.rules->>'paused_until')::TIMESTAMPTZ > now(), true) THEN 'paused' WHEN t.fire_at >= TIMESTAMPTZ '9999-01-01 00:00:00+00' THEN 'completed' ELSE 'active' END = ANY ($5::TEXT[]))
    AND ($6::TEXT = '' OR s.queue = $6::TEXT)
    AND left(s.name, length($7::TEXT)) = $7::TEXT
    AND s.labels @> $8::JSONB
    AND NOT EXISTS (SELECT 1 FROM unnest($9::TEXT[]) AS x(pair) WHERE s.labels @> x.pair::JSONB)
    AND s.labels ?& $10::TEXT[]
    AND NOT s.labels ?| $11::TEXT[]
  ORDER BY s.id
  LIMIT $4::INT8
)
SELECT m.id, false AS edge
FROM matched AS m
UNION ALL
SELECT e.id, true AS edge
FROM (
  SELECT i.id
  FROM schedules AS i
  WHERE i.region = $1 AND i.tenant_id = $2::UUID AND i.deleted_at IS NULL AND i.id > $3::UUID
  ORDER BY i.id
  LIMIT 1 OFFSET 9999
) AS e
WHERE (SELECT count(*) FROM matched) < $4::INT8
ORDER BY edge, id;
