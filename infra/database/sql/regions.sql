-- The claimers that are alive and the shards that they hold, of each region that
-- had any. Index: none needed, there is a row for each claimer and 64 a region.
SELECT r.region, sum(r.claimer)::INT8 AS claimers, sum(r.shard)::INT8 AS shards
FROM (
  SELECT c.region::TEXT AS region, CASE WHEN c.expires_at > now() THEN 1 ELSE 0 END AS claimer, 0 AS shard
  FROM claimers AS c
  UNION ALL
  SELECT l.region::TEXT AS region, 0 AS claimer, CASE WHEN l.expires_at > now() THEN 1 ELSE 0 END AS shard
  FROM shard_leases AS l
) AS r
GROUP BY r.region
ORDER BY r.region;
