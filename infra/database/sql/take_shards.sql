-- A claimer takes up to so many shards that nobody holds; it must have registered.
-- Index: claimers_pkey, shard_leases_pkey. The epoch grows with each owner.
INSERT INTO shard_leases AS l (region, shard, owner, epoch, expires_at)
SELECT f.region, f.shard, f.owner, 1::INT8, now() + $3::INTERVAL
FROM (
  SELECT c.region, w.shard, c.owner
  FROM claimers AS c
  CROSS JOIN unnest($4::INT2[]) AS w(shard)
  LEFT JOIN shard_leases AS h ON h.region = c.region AND h.shard = w.shard AND h.expires_at >= now()
  WHERE c.region = $1 AND c.owner = $2::TEXT AND h.shard IS NULL
) AS f
ORDER BY f.shard
LIMIT $5::INT8
ON CONFLICT (region, shard) DO UPDATE
SET owner = excluded.owner, epoch = l.epoch + 1, expires_at = excluded.expires_at
WHERE l.expires_at < now()
RETURNING shard;
