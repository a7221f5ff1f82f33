-- A timer that no claim can carry out moves an hour ahead and opens an alert.
-- Done stays, so that nothing is lost. Index: timers_pkey by key.
WITH moved AS (
  UPDATE timers AS t
  SET fire_at = now() + INTERVAL '1 hour', fence = t.fence + 1
  WHERE t.region = $1 AND t.shard = $2::INT2 AND t.fire_at = $3::TIMESTAMPTZ AND t.schedule_id = $4::UUID AND t.fence = $5::INT8
  RETURNING t.region, t.tenant_id, t.schedule_id
)
INSERT INTO alerts (region, tenant_id, schedule_id, kind, opened_at, detail)
SELECT m.region, m.tenant_id, m.schedule_id, 'claim_refused', now(), $6::TEXT
FROM moved AS m
ON CONFLICT (region, tenant_id, schedule_id, kind) DO UPDATE SET detail = excluded.detail, opened_at = excluded.opened_at;
