-- The limits of a tenant, and those of all tenants, with how many runs of the tenant are
-- running under each and how many wait, of 10,000 at most.
-- Index: queues_pkey, permits_pkey, runs_pkey by key; runs_gate_idx.
SELECT q.name, q.tenant_id, q.concurrency,
       (SELECT count(*)
        FROM permits AS p
        CROSS JOIN LATERAL (
          SELECT r.fence
          FROM runs AS r
          WHERE r.region = p.region AND r.schedule_id = p.schedule_id AND r.scheduled_for = p.scheduled_for AND r.state = 'running' AND r.fence = p.fence AND r.tenant_id = $2::UUID
          LIMIT 1
        ) AS b
        WHERE p.region = q.region AND p.queue = q.name AND p.tenant_id = q.tenant_id) AS running,
       (SELECT count(*)
        FROM (
          SELECT i.fence
          FROM runs AS i
          WHERE i.region = q.region AND i.queue = q.name AND i.state = 'queued' AND i.gate = 1 AND i.tenant_id = $2::UUID
          LIMIT 10000
        ) AS w) AS waiting
FROM queues AS q
WHERE q.region = $1 AND (q.tenant_id = $2::UUID OR q.tenant_id = '00000000-0000-0000-0000-000000000000')
ORDER BY q.name, q.tenant_id
LIMIT 1000;
