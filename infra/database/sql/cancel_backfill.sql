-- A backfill admits no more runs. Index: backfills_pkey. Sent again it changes nothing.
UPDATE backfills AS b
SET state = 'canceled', wake_at = NULL, finished_at = now(), fence = b.fence + 1
WHERE b.region = $1 AND b.tenant_id = $2::UUID AND b.id = $3::UUID AND b.state = 'running';
