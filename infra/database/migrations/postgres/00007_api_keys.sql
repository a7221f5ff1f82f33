-- +goose Up
CREATE TABLE api_keys (
  region     TEXT NOT NULL,
  hash       BYTEA NOT NULL,
  tenant_id  UUID NOT NULL,
  name       TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL,
  CONSTRAINT api_keys_pkey PRIMARY KEY (region, hash)
);
