-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE backfills (
  region      crdb_internal_region NOT NULL,
  id          UUID NOT NULL,
  tenant_id   UUID NOT NULL,
  schedule_id UUID NOT NULL,
  shard       INT2 NOT NULL,
  from_slot   TIMESTAMPTZ NOT NULL,
  to_slot     TIMESTAMPTZ NOT NULL,
  descending  BOOL NOT NULL,
  rerun       BOOL NOT NULL,
  concurrency INT4 NOT NULL,
  payload     JSONB NULL,
  state       TEXT NOT NULL,
  total       INT4 NOT NULL,
  admitted    INT4 NOT NULL,
  succeeded   INT4 NOT NULL,
  dead        INT4 NOT NULL,
  canceled    INT4 NOT NULL,
  live        TIMESTAMPTZ[] NOT NULL,
  wake_at     TIMESTAMPTZ NULL,
  fence       INT8 NOT NULL,
  created_at  TIMESTAMPTZ NOT NULL,
  finished_at TIMESTAMPTZ NULL,
  CONSTRAINT backfills_pkey PRIMARY KEY (region, id),
  CONSTRAINT backfills_state_ck CHECK (state IN ('running', 'finished', 'canceled'))
) LOCALITY REGIONAL BY ROW AS region;
