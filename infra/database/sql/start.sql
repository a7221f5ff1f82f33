-- Queued runs go to the deliveries that name their fence, with the newest job.
-- Index: runs_pkey and schedules_pkey by key.
-- Invariants: one delivery gets a run; a delivery sent again recognizes its own
-- row by its token and counts no second attempt; a deleted schedule starts
-- nothing, nor does a run that is too late or took too long in all; a run whose schedule names another queue now goes there instead.
-- A run starts only with a permit of each limit that it is under, and permits are taken
-- by the version at which they were seen to be free.
-- Index of these: permits_pkey and queues_pkey by key.
-- The conditions on m.fence that are always true keep PostgreSQL's planner,
-- whatever its statistics, from reading all runs instead of looking these up.
WITH taken AS (
  UPDATE permits AS p
  SET schedule_id = g.schedule_id, scheduled_for = g.scheduled_for, fence = g.fence + 1, version = p.version + 1
  FROM unnest($7::UUID[], $8::TIMESTAMPTZ[], $9::INT8[], $10::TEXT[], $11::UUID[], $12::INT4[], $13::INT8[])
       AS g(schedule_id, scheduled_for, fence, queue, tenant_id, n, version)
  WHERE p.region = $1 AND p.queue = g.queue AND p.tenant_id = g.tenant_id AND p.n = g.n AND p.version = g.version
  RETURNING p.queue, p.tenant_id, p.n, p.schedule_id, p.scheduled_for
), want AS MATERIALIZED (
  SELECT u.schedule_id, u.scheduled_for, u.fence, u.token, s.name, s.queue, s.payload, s.timeout, s.version, s.spec, s.spread, s.exact,
         s.rules->'retry' AS retry,
         COALESCE(s.overlap IN ('queue_one', 'cancel_previous') OR s.misfire = 'run_all' AND s.overlap <> 'allow', false) AS awaited,
         s.id IS NULL OR s.deleted_at IS NOT NULL AS gone,
         EXISTS (
           SELECT 1
           FROM queues AS q
           WHERE q.region = $1 AND q.name = s.queue AND (q.tenant_id = s.tenant_id OR q.tenant_id = '00000000-0000-0000-0000-000000000000')
             AND NOT EXISTS (
               SELECT 1
               FROM taken AS k
               WHERE k.schedule_id = u.schedule_id AND k.scheduled_for = u.scheduled_for
                 AND k.queue = q.name AND k.tenant_id = q.tenant_id AND k.n <= q.concurrency
             )
         ) AS limited
  FROM unnest($3::UUID[], $4::TIMESTAMPTZ[], $5::INT8[], $6::UUID[]) AS u(schedule_id, scheduled_for, fence, token)
  LEFT JOIN schedules AS s ON s.region = $1 AND s.id = u.schedule_id
), moved AS (
  UPDATE runs AS r
  SET state = CASE
        WHEN r.state = 'running' THEN 'running'
        WHEN m.gone OR r.late_at < now() THEN 'canceled'
        WHEN r.expires_at <= now() THEN 'dead'
        WHEN m.queue <> r.queue THEN 'queued'
        ELSE 'running' END,
      reason = CASE
        WHEN r.state = 'running' THEN r.reason
        WHEN m.gone THEN 'deleted'
        WHEN r.late_at < now() THEN 'late'
        WHEN r.expires_at <= now() THEN 'total_timeout'
        ELSE r.reason END,
      queue = CASE WHEN r.state = 'running' OR m.gone OR (r.late_at < now() OR r.expires_at <= now()) THEN r.queue ELSE m.queue END,
      attempt = CASE WHEN r.state = 'running' OR m.gone OR (r.late_at < now() OR r.expires_at <= now()) OR m.queue <> r.queue THEN r.attempt ELSE r.attempt + 1 END,
      wake_at = CASE
        WHEN r.state = 'running' THEN now() + $2::INTERVAL
        WHEN m.gone OR r.late_at < now() THEN NULL
        WHEN r.expires_at <= now() OR m.queue <> r.queue THEN now()
        ELSE now() + $2::INTERVAL END,
      fence = m.fence + 1,
      holder = m.token,
      gate = 0,
      version = CASE WHEN m.gone OR r.state = 'queued' AND (r.late_at < now() OR r.expires_at <= now()) THEN r.version ELSE m.version END,
      started_at = CASE WHEN r.state = 'running' OR m.gone OR (r.late_at < now() OR r.expires_at <= now()) OR m.queue <> r.queue THEN r.started_at ELSE now() END,
      finished_at = CASE WHEN r.state = 'queued' AND (m.gone OR (r.late_at < now() OR r.expires_at <= now())) THEN now() ELSE r.finished_at END
  FROM want AS m
  WHERE r.region = $1 AND r.schedule_id = m.schedule_id AND r.scheduled_for = m.scheduled_for
    AND m.fence + 0 = m.fence AND m.fence - 0 = m.fence
    AND (r.state = 'queued' AND r.fence = m.fence AND (NOT m.limited OR m.gone OR m.queue <> r.queue OR r.late_at < now() OR r.expires_at <= now())
         OR r.state = 'running' AND r.fence = m.fence + 1 AND r.holder = m.token)
  RETURNING r.schedule_id, r.scheduled_for, r.tenant_id, r.state, r.cause, r.attempt, r.max_attempts, r.fence, r.holder, r.queue,
            r.covers_from, r.covers_to, m.name, COALESCE(r.payload, m.payload) AS payload, m.timeout, m.awaited,
            m.retry, r.expires_at - now() AS total_left, r.started_at, m.spec, m.spread, m.exact
)
SELECT m.schedule_id, m.scheduled_for, m.tenant_id, m.state, m.cause, m.attempt, m.max_attempts, m.fence, m.holder, m.queue,
       m.covers_from, m.covers_to, m.name, m.payload, m.timeout, m.awaited, m.retry, m.total_left,
       m.started_at, m.spec, m.spread, m.exact
FROM moved AS m;
