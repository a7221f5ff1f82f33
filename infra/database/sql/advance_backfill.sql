-- A backfill moves on: what has ended is counted, and the next of its runs are made.
-- Index: backfills_pkey, schedules_pkey, timers_schedule_key and runs_pkey by key.
-- Invariants: through the backfill's fence, so that no more runs than it may have are
-- alive, however many look at it; not once it is canceled; runs are due for their
-- queue like any other. A deleted schedule has no
-- timer, and so no more runs. A key that is taken is left alone.
WITH moved AS (
  UPDATE backfills AS b
  SET state = $4::TEXT, admitted = $5::INT4, live = $6::TIMESTAMPTZ[], succeeded = $7::INT4, dead = $8::INT4, canceled = $9::INT4,
      wake_at = CASE WHEN $4::TEXT = 'running' THEN now() END,
      finished_at = CASE WHEN $4::TEXT = 'running' THEN NULL ELSE now() END,
      fence = b.fence + 1
  WHERE b.region = $1 AND b.id = $2::UUID AND b.fence = $3::INT8 AND b.state = 'running'
  RETURNING b.region, b.tenant_id, b.schedule_id, b.shard, b.payload
)
INSERT INTO runs (region, schedule_id, scheduled_for, tenant_id, shard, state, cause, queue, max_attempts, fence, wake_at, queued_at,
                  covers_from, covers_to, created_at, payload, expires_at)
SELECT m.region, m.schedule_id, u.key, m.tenant_id, m.shard, 'queued', 'backfill', s.queue, s.max_attempts, t.fence * 65536,
       CASE WHEN $12::BOOL THEN now() ELSE now() + $13::INTERVAL END, now(),
       CASE WHEN s.overlap <> 'allow' THEN u.covers_from END,
       CASE WHEN s.overlap <> 'allow' THEN date_trunc('milliseconds', u.key) END,
       now(), m.payload, now() + $14::INTERVAL
FROM moved AS m
JOIN schedules AS s ON s.region = m.region AND s.id = m.schedule_id
JOIN timers AS t ON t.region = m.region AND t.schedule_id = m.schedule_id
JOIN unnest($10::TIMESTAMPTZ[], $11::TIMESTAMPTZ[]) AS u(key, covers_from) ON m.region = $1
ON CONFLICT (region, schedule_id, scheduled_for) DO NOTHING
RETURNING schedule_id, scheduled_for, tenant_id, fence, state, queue;
