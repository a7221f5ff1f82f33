-- A claimer gives shards up. Index: shard_leases_pkey.
UPDATE shard_leases AS l
SET expires_at = now() - INTERVAL '1 second', owner = ''
WHERE l.region = $1 AND l.owner = $2::TEXT AND l.shard = ANY ($3::INT2[]);
