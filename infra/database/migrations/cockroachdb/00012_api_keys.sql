-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE api_keys (
  region     crdb_internal_region NOT NULL,
  hash       BYTEA NOT NULL,
  tenant_id  UUID NOT NULL,
  name       TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  CONSTRAINT api_keys_pkey PRIMARY KEY (region, hash)
) LOCALITY REGIONAL BY ROW AS region;
