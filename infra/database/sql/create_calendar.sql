-- A calendar; one of the same name stays. Index: calendars_pkey.
INSERT INTO calendars (region, tenant_id, name, content, version, created_at, updated_at)
VALUES ($1, $2::UUID, $3::TEXT, $4::JSONB, 1::INT8, now(), now())
ON CONFLICT (region, tenant_id, name) DO NOTHING
RETURNING tenant_id, name, content, version, created_at, updated_at;
