-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE calendars (
  region     crdb_internal_region NOT NULL,
  tenant_id  UUID NOT NULL,
  name       TEXT NOT NULL,
  content    JSONB NOT NULL,
  version    INT8 NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL,
  CONSTRAINT calendars_pkey PRIMARY KEY (region, tenant_id, name)
) LOCALITY REGIONAL BY ROW AS region;
