-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX api_keys_tenant_idx ON api_keys (region, tenant_id, created_at, id);
