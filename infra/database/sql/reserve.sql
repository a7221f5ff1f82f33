-- An idempotency key stands for one request for a day: this one, or the one that
-- reserved it before. Index: idempotency_keys_pkey.
INSERT INTO idempotency_keys AS k (region, tenant_id, key, request, created_at)
VALUES ($1, $2::UUID, $3::BYTEA, $4::BYTEA, now())
ON CONFLICT (region, tenant_id, key) DO UPDATE
SET request = CASE WHEN k.created_at <= now() - INTERVAL '24 hours' THEN excluded.request ELSE k.request END,
    leased = CASE WHEN k.created_at <= now() - INTERVAL '24 hours' THEN NULL ELSE k.leased END,
    slot = CASE WHEN k.created_at <= now() - INTERVAL '24 hours' THEN NULL ELSE k.slot END,
    created_at = CASE WHEN k.created_at <= now() - INTERVAL '24 hours' THEN now() ELSE k.created_at END
RETURNING k.request, k.created_at, k.slot, k.leased;
