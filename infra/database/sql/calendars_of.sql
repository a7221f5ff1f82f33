-- Calendars by tenant and name. Index: calendars_pkey by key.
SELECT c.tenant_id, c.name, c.content, c.version, c.created_at, c.updated_at
FROM unnest($2::UUID[], $3::TEXT[]) AS w(tenant_id, name)
JOIN calendars AS c ON c.region = $1 AND c.tenant_id = w.tenant_id AND c.name = w.name
ORDER BY c.tenant_id, c.name
LIMIT 10000;
