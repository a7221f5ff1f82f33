-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE backfill_slots (
  region      crdb_internal_region NOT NULL,
  id          UUID NOT NULL,
  keys        TIMESTAMPTZ[] NOT NULL,
  covers_from TIMESTAMPTZ[] NOT NULL,
  CONSTRAINT backfill_slots_pkey PRIMARY KEY (region, id)
) LOCALITY REGIONAL BY ROW AS region;
