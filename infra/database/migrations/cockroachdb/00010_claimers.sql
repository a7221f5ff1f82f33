-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE claimers (
  region     crdb_internal_region NOT NULL,
  owner      TEXT NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  CONSTRAINT claimers_pkey PRIMARY KEY (region, owner)
) LOCALITY REGIONAL BY ROW AS region;
