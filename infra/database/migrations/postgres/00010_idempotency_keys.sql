-- +goose Up
CREATE TABLE idempotency_keys (
  region     TEXT NOT NULL,
  tenant_id  UUID NOT NULL,
  key        BYTEA NOT NULL,
  request    BYTEA NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  slot       TIMESTAMPTZ NULL,
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant_id, key, region)
);
CREATE INDEX idempotency_keys_age_idx ON idempotency_keys (region, created_at);
