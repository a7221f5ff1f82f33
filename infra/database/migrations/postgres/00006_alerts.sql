-- +goose Up
CREATE TABLE alerts (
  region      TEXT NOT NULL,
  tenant_id   UUID NOT NULL,
  schedule_id UUID NOT NULL,
  kind        TEXT NOT NULL,
  opened_at   TIMESTAMPTZ NOT NULL,
  detail      TEXT NOT NULL,
  CONSTRAINT alerts_pkey PRIMARY KEY (region, tenant_id, schedule_id, kind)
);
