-- +goose Up
ALTER TABLE api_keys
  ADD COLUMN id TEXT NOT NULL GENERATED ALWAYS AS ('key_' || substr(encode(hash, 'hex'), 1, 16)) STORED,
  ADD COLUMN expires_at TIMESTAMPTZ NULL,
  ADD COLUMN revoked_at TIMESTAMPTZ NULL,
  ADD COLUMN last_used_at TIMESTAMPTZ NULL;
CREATE UNIQUE INDEX api_keys_id_key ON api_keys (region, tenant_id, id);
CREATE INDEX api_keys_tenant_idx ON api_keys (region, tenant_id, created_at, id);
