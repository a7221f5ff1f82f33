-- A limit is made or replaced, with a permit for each run that it lets be running.
-- Permits beyond it stay, so that their versions never repeat.
-- Index: queues_pkey and permits_pkey by key.
WITH made AS (
  INSERT INTO permits (region, queue, tenant_id, n, version)
  SELECT $1, $2::TEXT, $3::UUID, g.n, 1
  FROM generate_series(1, $4::INT4) AS g(n)
  ON CONFLICT (region, queue, tenant_id, n) DO NOTHING
  RETURNING n
)
INSERT INTO queues (region, name, tenant_id, concurrency, updated_at)
VALUES ($1, $2::TEXT, $3::UUID, $4::INT4, now())
ON CONFLICT (region, name, tenant_id) DO UPDATE SET concurrency = excluded.concurrency, updated_at = now();
