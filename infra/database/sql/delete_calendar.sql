-- A calendar of the expected version goes, unless a schedule names it.
-- Index: calendars_pkey, schedules_calendars_idx.
DELETE FROM calendars AS c
WHERE c.region = $1 AND c.tenant_id = $2::UUID AND c.name = $3::TEXT AND c.version = $4::INT8
  AND NOT EXISTS (
    SELECT 1 FROM schedules AS s
    WHERE s.region = $1 AND s.tenant_id = $2::UUID AND s.rules ? 'calendars' AND s.deleted_at IS NULL
      AND s.rules->'calendars' ? $3::TEXT
  )
RETURNING c.name;
