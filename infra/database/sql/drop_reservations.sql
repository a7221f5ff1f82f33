-- Idempotency keys whose day is over, 1,000 at a time.
-- Index: idempotency_keys_age_idx, then idempotency_keys_pkey by key.
WITH old AS MATERIALIZED (
  SELECT i.region, i.tenant_id, i.key
  FROM idempotency_keys AS i
  WHERE i.region = $1 AND i.created_at <= now() - INTERVAL '24 hours'
  ORDER BY i.created_at
  LIMIT 1000
)
DELETE FROM idempotency_keys AS k
USING old AS o
WHERE k.region = $1 AND k.tenant_id = o.tenant_id AND k.key = o.key AND k.created_at <= now() - INTERVAL '24 hours'
RETURNING k.created_at;
