-- Running backfills of some shards, at most 100 of a shard, with the states of
-- their live runs, the next of their keys, and what their schedules say.
-- Index: backfills_wake_idx, one range a shard; backfill_slots_pkey, schedules_pkey and
-- runs_pkey by key.
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
       ) AS states,
       ARRAY(
         SELECT k.key
         FROM backfill_slots AS q
         CROSS JOIN LATERAL unnest(q.keys) WITH ORDINALITY AS k(key, n)
         WHERE q.region = b.region AND q.id = b.id AND k.n > b.admitted AND k.n <= b.admitted + b.concurrency
         ORDER BY k.n
         LIMIT 100
       ) AS next_keys,
       ARRAY(
         SELECT k.covers_from
         FROM backfill_slots AS q
         CROSS JOIN LATERAL unnest(q.covers_from) WITH ORDINALITY AS k(covers_from, n)
         WHERE q.region = b.region AND q.id = b.id AND k.n > b.admitted AND k.n <= b.admitted + b.concurrency
         ORDER BY k.n
         LIMIT 100
       ) AS next_covers,
       COALESCE(s.queue, '') AS queue, COALESCE(s.rules, '{}'::JSONB) AS rules, s.id IS NULL OR s.deleted_at IS NOT NULL AS gone
FROM unnest($2::INT2[]) AS o(shard)
CROSS JOIN LATERAL (
  SELECT i.region, i.id, i.tenant_id, i.schedule_id, i.shard, i.from_slot, i.to_slot, i.descending, i.rerun, i.concurrency, i.payload, i.state, i.total, i.admitted, i.succeeded, i.dead, i.canceled, i.live, i.fence, i.created_at, i.finished_at
  FROM backfills AS i
  WHERE i.region = $1 AND i.shard = o.shard AND i.wake_at IS NOT NULL AND i.wake_at <= now()
  ORDER BY i.wake_at
  LIMIT 100
) AS b
LEFT JOIN schedules AS s ON s.region = b.region AND s.id = b.schedule_id;
