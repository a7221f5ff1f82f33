-- Alerts that need somebody, of one tenant or, without one, of all. One about a
-- refused claim stands while its timer is where park.sql put it: claimed or edited
-- since, the timer is elsewhere. It looks at 1,000.
-- Index: alerts_pkey, one range; schedules_pkey and timers_schedule_key by key.
SELECT a.schedule_id, s.name, a.kind, a.detail, a.opened_at
FROM (
  SELECT i.region, i.tenant_id, i.schedule_id, i.kind, i.detail, i.opened_at
  FROM alerts AS i
  WHERE i.region = $1 AND ($2::UUID IS NULL OR i.tenant_id = $2::UUID)
  ORDER BY i.tenant_id, i.schedule_id, i.kind
  LIMIT 1000
) AS a
CROSS JOIN LATERAL (
  SELECT t.fire_at
  FROM timers AS t
  WHERE t.region = a.region AND t.schedule_id = a.schedule_id
  LIMIT 1
) AS f
CROSS JOIN LATERAL (
  SELECT c.name
  FROM schedules AS c
  WHERE c.region = a.region AND c.id = a.schedule_id
  LIMIT 1
) AS s
WHERE a.kind <> 'claim_refused' OR f.fire_at = a.opened_at + INTERVAL '1 hour'
ORDER BY a.tenant_id, a.schedule_id, a.kind
LIMIT 100;
