-- The calendars of a tenant. Index: calendars_pkey.
SELECT c.tenant_id, c.name, c.content, c.version, c.created_at, c.updated_at
FROM calendars AS c
WHERE c.region = $1 AND c.tenant_id = $2::UUID
ORDER BY c.name
LIMIT 1000;
