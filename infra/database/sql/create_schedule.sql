-- A schedule and its timer, together. Index: schedules_pkey, timers_pkey.
-- Sent again with the same id it makes nothing.
WITH made AS (
  INSERT INTO schedules (region, id, tenant_id, name, spec, time_zone, anchor, queue, payload, misfire, misfire_grace, overlap,
                         spread, timeout, max_attempts, paused, version, created_at, updated_at, dst_gap, dst_overlap, exact, catch_up_within, labels, rules)
  VALUES ($1, $2::UUID, $3::UUID, $4::TEXT, $5::TEXT, $6::TEXT, $7::TIMESTAMPTZ, $8::TEXT, $9::JSONB, $10::TEXT, $11::INTERVAL,
          $12::TEXT, $13::INTERVAL, $14::INTERVAL, $15::INT4, $16::BOOL, 1::INT8, now(), now(), $20::TEXT, $21::TEXT,
          $22::BOOL, $23::INTERVAL, $24::JSONB, $26::JSONB)
  ON CONFLICT (region, id) DO NOTHING
  RETURNING region, id, tenant_id
)
INSERT INTO timers (region, shard, fire_at, schedule_id, tenant_id, fence, done, open_from, runs_left)
SELECT m.region, $17::INT2, GREATEST($18::TIMESTAMPTZ, now()), m.id, m.tenant_id, 1::INT8, $19::TIMESTAMPTZ, $19::TIMESTAMPTZ, $25::INT8
FROM made AS m;
