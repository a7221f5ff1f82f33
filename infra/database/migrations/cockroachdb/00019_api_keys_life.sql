-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE api_keys
  ADD COLUMN id TEXT NOT NULL GENERATED ALWAYS AS ('key_' || substr(encode(hash, 'hex'), 1, 16)) STORED,
  ADD COLUMN expires_at TIMESTAMPTZ NULL,
  ADD COLUMN revoked_at TIMESTAMPTZ NULL,
  ADD COLUMN last_used_at TIMESTAMPTZ NULL;
