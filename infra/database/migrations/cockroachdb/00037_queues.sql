-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE queues (
  region      crdb_internal_region NOT NULL,
  name        TEXT NOT NULL,
  tenant_id   UUID NOT NULL,
  concurrency INT4 NOT NULL,
  updated_at  TIMESTAMPTZ NOT NULL,
  CONSTRAINT queues_pkey PRIMARY KEY (region, name, tenant_id),
  CONSTRAINT queues_concurrency_ck CHECK (concurrency BETWEEN 0 AND 1000)
) LOCALITY REGIONAL BY ROW AS region;
