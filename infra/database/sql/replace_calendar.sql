-- Other content for a calendar of the expected version. Index: calendars_pkey.
UPDATE calendars AS c
SET content = $4::JSONB, version = c.version + 1, updated_at = now()
WHERE c.region = $1 AND c.tenant_id = $2::UUID AND c.name = $3::TEXT AND c.version = $5::INT8
RETURNING c.tenant_id, c.name, c.content, c.version, c.created_at, c.updated_at;
