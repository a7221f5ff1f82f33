-- A backfill with the keys of its runs, in their order. One of the same id stays.
-- Index: backfills_pkey, backfill_slots_pkey.
WITH made AS (
  INSERT INTO backfills (region, id, tenant_id, schedule_id, shard, from_slot, to_slot, descending, rerun, concurrency, payload, state,
                         total, admitted, succeeded, dead, canceled, live, wake_at, fence, created_at)
  VALUES ($1, $2::UUID, $3::UUID, $4::UUID, $5::INT2, $6::TIMESTAMPTZ, $7::TIMESTAMPTZ, $8::BOOL, $9::BOOL, $10::INT4, $11::JSONB, 'running',
          $12::INT4, 0::INT4, 0::INT4, 0::INT4, 0::INT4, ARRAY[]::TIMESTAMPTZ[], now(), 1::INT8, now())
  ON CONFLICT (region, id) DO NOTHING
  RETURNING region, id
)
INSERT INTO backfill_slots (region, id, keys, covers_from)
SELECT m.region, m.id, $13::TIMESTAMPTZ[], $14::TIMESTAMPTZ[]
FROM made AS m
WHERE m.region = $1;
