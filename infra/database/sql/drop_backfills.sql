-- Backfills that ended long ago, 100 at a time.
-- Index: backfills_finished_idx, then backfills_pkey and backfill_slots_pkey by key.
WITH old AS MATERIALIZED (
  SELECT i.region, i.id
  FROM backfills AS i
  WHERE i.region = $1 AND i.finished_at IS NOT NULL AND i.finished_at < $2::TIMESTAMPTZ
  ORDER BY i.finished_at
  LIMIT 100
), slots AS (
  DELETE FROM backfill_slots AS q
  USING old AS o
  WHERE q.region = $1 AND q.id = o.id
  RETURNING q.id
)
DELETE FROM backfills AS b
USING old AS o
WHERE b.region = $1 AND b.id = o.id
RETURNING b.id;
