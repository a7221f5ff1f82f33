-- A credential by its hash, while it works. Index: api_keys_pkey.
SELECT k.hash, k.tenant_id, k.name, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
FROM api_keys AS k
WHERE k.region = $1 AND k.hash = $2::BYTEA AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now());
