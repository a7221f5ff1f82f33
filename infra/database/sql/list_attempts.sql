-- The failed attempts of one run. Index: attempts_pkey.
SELECT a.attempt, a.fence, a.started_at, a.finished_at, a.error
FROM attempts AS a
WHERE a.region = $1 AND a.tenant_id = $2::UUID AND a.schedule_id = $3::UUID AND a.scheduled_for = $4::TIMESTAMPTZ
ORDER BY a.attempt
LIMIT 1000;
