-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE idempotency_keys (
  region     crdb_internal_region NOT NULL,
  tenant_id  UUID NOT NULL,
  key        BYTEA NOT NULL,
  request    BYTEA NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  slot       TIMESTAMPTZ NULL,
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (region, tenant_id, key)
) WITH (
  ttl_expiration_expression = '((created_at AT TIME ZONE ''UTC'') + INTERVAL ''25 hours'') AT TIME ZONE ''UTC''',
  ttl_job_cron = '47 * * * *',
  ttl_select_batch_size = 1000,
  ttl_delete_batch_size = 500
) LOCALITY REGIONAL BY ROW AS region;
