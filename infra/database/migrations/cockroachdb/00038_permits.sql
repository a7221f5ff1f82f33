-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE permits (
  region        crdb_internal_region NOT NULL,
  queue         TEXT NOT NULL,
  tenant_id     UUID NOT NULL,
  n             INT4 NOT NULL,
  version       INT8 NOT NULL,
  schedule_id   UUID NULL,
  scheduled_for TIMESTAMPTZ NULL,
  fence         INT8 NULL,
  CONSTRAINT permits_pkey PRIMARY KEY (region, queue, tenant_id, n)
) LOCALITY REGIONAL BY ROW AS region;
