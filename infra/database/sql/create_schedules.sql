-- Many schedules with their timers; those whose id or name is taken are left out.
-- Index: schedules_pkey, schedules_name_key, timers_pkey. Sent again with the same
-- ids it makes nothing. Lock order: by name, so that two of these never deadlock.
-- Nobody reads home: from it CockroachDB learns that the region is an enum.
WITH home AS (
  SELECT h.region FROM schedules AS h WHERE h.region = $1 LIMIT 1
), want AS (
  SELECT w.id, w.name, w.spec, w.time_zone, w.anchor, w.queue, w.payload, w.misfire, w.misfire_grace, w.overlap, w.spread, w.timeout,
         w.max_attempts, w.paused, w.dst_gap, w.dst_overlap, w.exact, w.catch_up_within, w.shard, w.fire_at, w.done, w.labels, w.rules, w.runs_left
  FROM unnest($3::UUID[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TIMESTAMPTZ[], $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::INTERVAL[],
              $12::TEXT[], $13::INTERVAL[], $14::INTERVAL[], $15::INT4[], $16::BOOL[], $17::TEXT[], $18::TEXT[], $19::BOOL[],
              $20::INTERVAL[], $21::INT2[], $22::TIMESTAMPTZ[], $23::TIMESTAMPTZ[], $24::TEXT[], $25::TEXT[], $26::INT8[])
       AS w(id, name, spec, time_zone, anchor, queue, payload, misfire, misfire_grace, overlap, spread, timeout, max_attempts, paused,
            dst_gap, dst_overlap, exact, catch_up_within, shard, fire_at, done, labels, rules, runs_left)
), made AS (
  INSERT INTO schedules (region, id, tenant_id, name, spec, time_zone, anchor, queue, payload, misfire, misfire_grace, overlap,
                         spread, timeout, max_attempts, paused, version, created_at, updated_at, dst_gap, dst_overlap, exact, catch_up_within, labels, rules)
  SELECT $1, w.id, $2::UUID, w.name, w.spec, w.time_zone, w.anchor, w.queue, w.payload::JSONB, w.misfire, w.misfire_grace, w.overlap,
         w.spread, w.timeout, w.max_attempts, w.paused, 1::INT8, now(), now(), w.dst_gap, w.dst_overlap, w.exact, w.catch_up_within, w.labels::JSONB, w.rules::JSONB
  FROM want AS w
  ORDER BY w.name
  ON CONFLICT DO NOTHING
  RETURNING region, id, tenant_id
)
INSERT INTO timers (region, shard, fire_at, schedule_id, tenant_id, fence, done, open_from, runs_left)
SELECT m.region, w.shard, GREATEST(w.fire_at, now()), m.id, m.tenant_id, 1::INT8, w.done, w.done, w.runs_left
FROM made AS m
JOIN want AS w ON w.id = m.id
RETURNING schedule_id;
