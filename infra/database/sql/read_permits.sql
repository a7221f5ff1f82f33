-- Which limits the runs of some messages are under, and after these rows the permits
-- of these limits that no running run has. Such a permit stays free until its version
-- changes: whoever starts its run later has to take another one, or this one anew.
-- Index: runs_pkey, queues_pkey and permits_pkey by key.
WITH want AS MATERIALIZED (
  SELECT u.schedule_id, u.scheduled_for, q.name, q.tenant_id, q.concurrency
  FROM unnest($2::UUID[], $3::TIMESTAMPTZ[], $4::INT8[]) AS u(schedule_id, scheduled_for, fence)
  CROSS JOIN LATERAL (
    SELECT i.queue, i.tenant_id
    FROM runs AS i
    WHERE i.region = $1 AND i.schedule_id = u.schedule_id AND i.scheduled_for = u.scheduled_for AND i.state = 'queued' AND i.fence = u.fence
    LIMIT 1
  ) AS r
  JOIN queues AS q ON q.region = $1 AND q.name = r.queue AND (q.tenant_id = r.tenant_id OR q.tenant_id = '00000000-0000-0000-0000-000000000000')
)
SELECT w.schedule_id, w.scheduled_for, w.name AS queue, w.tenant_id, 0::INT4 AS n, 0::INT8 AS version
FROM want AS w
UNION ALL
SELECT NULL::UUID, NULL::TIMESTAMPTZ, p.queue, p.tenant_id, p.n, p.version
FROM (SELECT DISTINCT w.name, w.tenant_id, w.concurrency FROM want AS w) AS s
JOIN permits AS p ON p.region = $1 AND p.queue = s.name AND p.tenant_id = s.tenant_id AND p.n <= s.concurrency
LEFT JOIN LATERAL (
  SELECT j.fence
  FROM runs AS j
  WHERE j.region = p.region AND j.schedule_id = p.schedule_id AND j.scheduled_for = p.scheduled_for AND j.state = 'running' AND j.fence = p.fence
  LIMIT 1
) AS b ON true
WHERE b.fence IS NULL;
