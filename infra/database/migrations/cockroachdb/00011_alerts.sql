-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE alerts (
  region      crdb_internal_region NOT NULL,
  tenant_id   UUID NOT NULL,
  schedule_id UUID NOT NULL,
  kind        TEXT NOT NULL,
  opened_at   TIMESTAMPTZ NOT NULL,
  detail      TEXT NOT NULL,
  CONSTRAINT alerts_pkey PRIMARY KEY (region, tenant_id, schedule_id, kind)
) LOCALITY REGIONAL BY ROW AS region;
