-- The runs that an idempotency key leases, noted once.
-- Index: idempotency_keys_pkey.
UPDATE idempotency_keys AS k
SET leased = COALESCE(k.leased, $4::JSONB)
WHERE k.region = $1 AND k.tenant_id = $2::UUID AND k.key = $3::BYTEA
RETURNING k.leased;
