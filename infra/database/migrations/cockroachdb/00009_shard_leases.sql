-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE shard_leases (
  region     crdb_internal_region NOT NULL,
  shard      INT2 NOT NULL,
  owner      TEXT NOT NULL,
  epoch      INT8 NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  CONSTRAINT shard_leases_pkey PRIMARY KEY (region, shard)
) LOCALITY REGIONAL BY ROW AS region;
