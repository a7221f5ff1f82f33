-- A credential by its hash. Index: api_keys_pkey.
SELECT k.tenant_id, k.name, k.scopes
FROM api_keys AS k
WHERE k.region = $1 AND k.hash = $2::BYTEA;
