-- Schedules that were deleted before a time, 1,000 at a time. Their runs have gone, or
-- are found by id without them. Index: schedules_deleted_idx, then schedules_pkey by key.
WITH old AS MATERIALIZED (
  SELECT i.region, i.id
  FROM schedules AS i
  WHERE i.region = $1 AND i.deleted_at IS NOT NULL AND i.deleted_at < $2::TIMESTAMPTZ
  ORDER BY i.deleted_at
  LIMIT 1000
)
DELETE FROM schedules AS s
USING old AS o
WHERE s.region = $1 AND s.id = o.id AND s.deleted_at IS NOT NULL AND s.deleted_at < $2::TIMESTAMPTZ
RETURNING s.id;
