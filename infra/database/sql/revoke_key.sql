-- The end of a credential; the time of the first call stays, so that it may be
-- sent again. Index: api_keys_id_key.
UPDATE api_keys AS k
SET revoked_at = COALESCE(k.revoked_at, now())
WHERE k.region = $1 AND k.tenant_id = $2::UUID AND k.id = $3::TEXT
RETURNING k.hash, k.tenant_id, k.name, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.last_used_at;
