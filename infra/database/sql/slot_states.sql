-- What is there of some slots: their own rows, and those that backfills made, whose
-- keys are some microseconds behind the slot's.
-- Index: runs_pkey, one range a slot.
SELECT u.slot, d.scheduled_for, d.state, d.cause
FROM unnest($4::TIMESTAMPTZ[]) AS u(slot)
CROSS JOIN LATERAL (
  SELECT r.scheduled_for, r.state, r.cause
  FROM runs AS r
  WHERE r.region = $1 AND r.tenant_id = $2::UUID AND r.schedule_id = $3::UUID AND r.scheduled_for >= u.slot
    AND r.scheduled_for < u.slot + INTERVAL '1 millisecond'
  ORDER BY r.scheduled_for
  LIMIT 100
) AS d;
