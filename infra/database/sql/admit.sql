-- Runs that wait for a permit are let go, as many as there is room for under their
-- limits: of a queue first those of the tenants that have the fewest running, of a
-- tenant the oldest first. Room is what neither a running run has nor one that was let
-- go and has not started.
-- Index: runs_gate_idx, a look for each tenant that waits, 100 after $5 and 100 up to it; queues_pkey,
-- permits_pkey and runs_pkey by key.
-- Invariants: gate is compared again in the update itself, so that two that look at the
-- same time let go once. What is let go too many by a race is refused by start.
-- The conditions on w.fence that are always true keep PostgreSQL's planner,
-- whatever its statistics, from reading all runs instead of looking these up.
WITH RECURSIVE tenants AS (
  SELECT q.name, f.tenant_id, s.upto, 1 AS n
  FROM unnest($2::TEXT[]) AS q(name)
  CROSS JOIN (VALUES ($5::UUID, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID), ('00000000-0000-0000-0000-000000000000'::UUID, $5::UUID)) AS s(since, upto)
  CROSS JOIN LATERAL (
    SELECT i.tenant_id
    FROM runs AS i
    WHERE i.region = $1 AND i.queue = q.name AND i.state = 'queued' AND i.gate = 1 AND i.tenant_id >= s.since AND i.tenant_id < s.upto
    ORDER BY i.tenant_id
    LIMIT 1
  ) AS f
  UNION ALL
  SELECT t.name, f.tenant_id, t.upto, t.n + 1
  FROM tenants AS t
  CROSS JOIN LATERAL (
    SELECT j.tenant_id
    FROM runs AS j
    WHERE j.region = $1 AND j.queue = t.name AND j.state = 'queued' AND j.gate = 1 AND j.tenant_id > t.tenant_id AND j.tenant_id < t.upto
    ORDER BY j.tenant_id
    LIMIT 1
  ) AS f
  WHERE t.n < 100
), used AS (
  SELECT p.queue, p.tenant_id AS scope, b.tenant_id
  FROM permits AS p
  CROSS JOIN LATERAL (
    SELECT k.tenant_id
    FROM runs AS k
    WHERE k.region = p.region AND k.schedule_id = p.schedule_id AND k.scheduled_for = p.scheduled_for AND k.state = 'running' AND k.fence = p.fence
    LIMIT 1
  ) AS b
  WHERE p.region = $1 AND p.queue = ANY ($2::TEXT[])
), gone AS (
  SELECT g.queue, g.tenant_id
  FROM runs AS g
  WHERE g.region = $1 AND g.queue = ANY ($2::TEXT[]) AND g.state = 'queued' AND g.gate = 2
), taken AS (
  SELECT a.queue, a.scope, a.tenant_id, count(*) AS n
  FROM (
    SELECT u.queue, u.scope, u.tenant_id FROM used AS u
    UNION ALL
    SELECT g.queue, '00000000-0000-0000-0000-000000000000'::UUID, g.tenant_id FROM gone AS g
    UNION ALL
    SELECT g.queue, g.tenant_id, g.tenant_id FROM gone AS g
  ) AS a
  GROUP BY a.queue, a.scope, a.tenant_id
), room AS (
  SELECT q.name, q.tenant_id,
         q.concurrency - COALESCE((SELECT sum(x.n) FROM taken AS x WHERE x.queue = q.name AND x.scope = q.tenant_id), 0) AS n
  FROM queues AS q
  WHERE q.region = $1 AND q.name = ANY ($2::TEXT[])
), ranked AS (
  SELECT w.schedule_id, w.scheduled_for, w.fence, t.name,
         row_number() OVER (PARTITION BY t.name ORDER BY COALESCE(x.n, 0) + w.n, w.queued_at, w.schedule_id, w.scheduled_for) AS place
  FROM tenants AS t
  CROSS JOIN LATERAL (
    SELECT o.schedule_id, o.scheduled_for, o.fence, o.queued_at, row_number() OVER (ORDER BY o.queued_at, o.schedule_id, o.scheduled_for) AS n
    FROM (
      SELECT l.schedule_id, l.scheduled_for, l.fence, l.queued_at
      FROM runs AS l
      WHERE l.region = $1 AND l.queue = t.name AND l.state = 'queued' AND l.gate = 1 AND l.tenant_id = t.tenant_id
      ORDER BY l.queued_at
      LIMIT 100
    ) AS o
  ) AS w
  LEFT JOIN taken AS x ON x.queue = t.name AND x.tenant_id = t.tenant_id AND x.scope = '00000000-0000-0000-0000-000000000000'
  LEFT JOIN room AS m ON m.name = t.name AND m.tenant_id = t.tenant_id
  WHERE m.n IS NULL OR w.n <= m.n
), chosen AS MATERIALIZED (
  SELECT d.schedule_id, d.scheduled_for, d.fence
  FROM ranked AS d
  LEFT JOIN room AS m ON m.name = d.name AND m.tenant_id = '00000000-0000-0000-0000-000000000000'
  WHERE d.place <= LEAST($3::INT8, COALESCE(m.n, $3::INT8))
)
UPDATE runs AS r
SET gate = 2, wake_at = now() + $4::INTERVAL
FROM chosen AS w
WHERE r.region = $1 AND r.schedule_id = w.schedule_id AND r.scheduled_for = w.scheduled_for
  AND w.fence + 0 = w.fence AND w.fence - 0 = w.fence
  AND r.state = 'queued' AND r.gate = 1 AND r.fence = w.fence
RETURNING r.schedule_id, r.scheduled_for, r.tenant_id, r.fence, r.state, r.queue;
