-- A page of a tenant's credentials, oldest first. Index: api_keys_tenant_idx.
SELECT now() AS db_now, p.hash, p.tenant_id, p.name, p.scopes, p.created_at, p.expires_at, p.revoked_at, p.last_used_at
FROM (
  SELECT k.hash, k.tenant_id, k.name, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.last_used_at, k.id
  FROM api_keys AS k
  WHERE k.region = $1 AND k.tenant_id = $2::UUID AND (k.created_at, k.id) > ($3::TIMESTAMPTZ, $4::TEXT)
  ORDER BY k.created_at, k.id
  LIMIT 1001
) AS p
ORDER BY p.created_at, p.id
LIMIT $5::INT8;
