-- A credential; one with the same hash stays. Index: api_keys_pkey.
INSERT INTO api_keys (region, hash, tenant_id, name, scopes, created_at, expires_at)
VALUES ($1, $2::BYTEA, $3::UUID, $4::TEXT, $5::TEXT, now(), now() + $6::INTERVAL)
ON CONFLICT (region, hash) DO NOTHING;
