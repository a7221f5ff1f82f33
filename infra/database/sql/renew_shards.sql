-- A claimer says that it is alive, keeps its shards and learns how many share.
-- Index: claimers_pkey, shard_leases_pkey. Always returns one row of shard -1.
WITH me AS (
  INSERT INTO claimers (region, owner, expires_at)
  VALUES ($1, $2::TEXT, now() + $3::INTERVAL)
  ON CONFLICT (region, owner) DO UPDATE SET expires_at = excluded.expires_at
  RETURNING owner
), kept AS (
  UPDATE shard_leases AS l
  SET expires_at = now() + $3::INTERVAL
  WHERE l.region = $1 AND l.owner = $2::TEXT
  RETURNING l.shard
)
SELECT k.shard, 0::INT8 AS others
FROM kept AS k
UNION ALL
SELECT -1::INT2 AS shard, count(*) AS others
FROM claimers AS c
WHERE c.region = $1 AND c.owner <> $2::TEXT AND c.expires_at > now();
