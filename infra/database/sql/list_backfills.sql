-- The newest backfills of a schedule with the states of their live runs.
-- Index: backfills_schedule_idx; runs_pkey by key.
SELECT b.id, b.tenant_id, b.schedule_id, b.shard, b.from_slot, b.to_slot, b.descending, b.rerun, b.concurrency, b.payload, b.state,
       b.total, b.admitted, b.succeeded, b.dead, b.canceled, b.live, b.fence, b.created_at, b.finished_at,
       ARRAY(
         SELECT COALESCE(p.state, '')
         FROM unnest(b.live) WITH ORDINALITY AS l(key, n)
         LEFT JOIN LATERAL (
           SELECT r.state
           FROM runs AS r
           WHERE r.region = b.region AND r.schedule_id = b.schedule_id AND r.scheduled_for = l.key
           LIMIT 1
         ) AS p ON true
         ORDER BY l.n
         LIMIT 100
       ) AS states
FROM backfills AS b
WHERE b.region = $1 AND b.tenant_id = $2::UUID AND b.schedule_id = $3::UUID
ORDER BY b.id DESC
LIMIT 100;
